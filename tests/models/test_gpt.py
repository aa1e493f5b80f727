"""The decoder-only model: against GPT-2 and Llama of another library, with and without a cache."""

import itertools

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.decode import stream
from regard.layers import listen
from regard.models import GPT, GPTConfig
from regard.models.convert import convert_weights, from_transformers
from regard.models.convert.gpt2 import GPT2
from tests.trace.checkpoints import gpt_nano_sort

V, M, H, LAYERS, T, B, HIDDEN = 29, 12, 3, 2, 17, 4, 20
EVERY = ["learned", "sinusoid", "rotary", "alibi", "none"]


def draw_ids(rows=B, length=11):
    return torch.randint(V, (rows, length))


def exactly(steps):
    """So many tokens, none of which ends a text or is never said."""
    return regard.Limits(longest=steps, end=None, never=())


def continued(model, ids, steps):
    """The ids, and after them the likeliest tokens."""
    texts = regard.greedy(model.begin(ids), len(ids), limits=exactly(steps))
    return torch.cat((ids, torch.tensor([text.ids for text in texts])), 1)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def shaken(model):
    """Weights far from where they start, so that nothing hides behind a zero or a one."""
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.double().eval()


def gpt2(tied):
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": V, "n_embd": M, "n_head": H, "n_layer": LAYERS, "n_positions": T, "n_inner": HIDDEN}
    config = GPT2Config(**sizes, activation_function="gelu", tie_word_embeddings=tied, eos_token_id=None)
    return shaken(GPT2LMHeadModel(config))


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_logits_and_greedy_text_equal_those_of_gpt2_with_the_same_weights(tied):
    theirs = gpt2(tied)
    ours = from_transformers(theirs.config.to_dict(), theirs.state_dict())
    ids = draw_ids()
    assert_close(ours(ids), theirs(ids).logits)
    said = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False, pad_token_id=0)
    assert torch.equal(continued(ours, ids, 6), said)


def test_attention_alone_equals_gpt2_whose_networks_say_nothing():
    theirs = gpt2(False)
    for block in theirs.transformer.h:
        block.mlp.c_proj.weight.data.zero_()
        block.mlp.c_proj.bias.data.zero_()
    config = GPTConfig(V, M, H, LAYERS, T, hidden=0, tied=False)
    ours = config.build().double().eval()
    state = {name: tensor for name, tensor in theirs.state_dict().items() if ".mlp." not in name and "ln_2" not in name}
    ours.load_state_dict(convert_weights(GPT2, state, config))
    assert not any("feed_forward" in name for name, _ in ours.named_modules())
    ids = draw_ids()
    assert_close(ours(ids), theirs(ids).logits)


def test_logits_equal_those_of_llama_with_the_same_weights():
    from transformers import LlamaConfig, LlamaForCausalLM

    heads, shared, width = 4, 2, 24
    config = LlamaConfig(
        vocab_size=V,
        hidden_size=width,
        intermediate_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=heads,
        num_key_value_heads=shared,
        max_position_embeddings=T,
        tie_word_embeddings=False,
    )
    theirs = shaken(LlamaForCausalLM(config))
    ours = from_transformers(theirs.config.to_dict(), theirs.state_dict())
    assert ours.config.kv_heads == shared
    ids = draw_ids()
    assert_close(ours(ids), theirs(ids).logits, rtol=1e-5, atol=1e-5)  # they turn in float32


def test_a_real_gpt_sorts_every_input():
    """minGPT's demo model."""
    theirs, _ = gpt_nano_sort()
    ours = from_transformers(theirs.config.to_dict(), theirs.state_dict())
    ids = torch.tensor(list(itertools.product(range(3), repeat=6)))
    assert torch.equal(continued(ours, ids, 6)[:, 6:], ids.sort(-1).values)


@pytest.mark.parametrize("hidden", [0, HIDDEN], ids=["attention alone", "with a network"])
@pytest.mark.parametrize("positions", EVERY)
def test_writing_with_a_cache_equals_reading_everything_again(positions, hidden):
    model = shaken(GPTConfig(V, M, H, LAYERS, T, positions=positions, hidden=hidden).build())
    ids = draw_ids()
    wanted = ids
    for _ in range(6):
        wanted = torch.cat((wanted, model(wanted)[:, -1:].argmax(-1)), 1)
    assert torch.equal(continued(model, ids, 6), wanted)
    cache = model.make_cache()
    parts = [model(part, cache) for part in wanted.split([5, 1, 3, 8], 1)]
    assert_close(torch.cat(parts, 1), model(wanted))
    assert [one.seen for one in cache] == [17, 17]


@pytest.mark.parametrize("positions", EVERY)
def test_no_token_hears_of_those_after_it(positions):
    model, ids = shaken(GPTConfig(V, M, H, LAYERS, T, positions=positions).build()), draw_ids()
    other = ids.clone()
    other[:, 7:] = (ids[:, 7:] + 1) % V
    assert_close(model(other)[:, :7], model(ids)[:, :7])
    assert not torch.allclose(model(other)[:, 7:], model(ids)[:, 7:])


def test_drawn_tokens_come_as_often_as_their_probability_says():
    model = shaken(GPTConfig(V, M, H, LAYERS, T).build())
    ids = torch.tensor([[3, 1, 4]])
    for temperature in (2, 0.7):
        wanted = (model(ids)[0, -1] / temperature).softmax(-1)
        [step] = stream(model.begin(ids.expand(20_000, 3)), 20_000, temperature=temperature, limits=exactly(1))
        assert_close(step.tokens.bincount(minlength=V) / 20_000, wanted.float(), atol=0.015, rtol=0)


def test_a_generator_decides_what_is_drawn():
    model, ids = shaken(GPTConfig(V, M, H, LAYERS, T).build()), draw_ids()
    draw = lambda seed: stream(  # noqa: E731
        model.begin(ids), B, temperature=1.5, generator=seeded(seed), limits=exactly(5)
    )
    one, same, other = (torch.stack([step.tokens for step in draw(seed)]) for seed in (7, 7, 8))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert one.shape == (5, B)
    assert not [*stream(model.begin(ids), B, limits=exactly(0))]


def test_drawing_takes_one_number_per_row_and_the_token_whose_share_of_the_softmax_it_falls_into():
    model, ids = shaken(GPTConfig(V, M, H, LAYERS, T).build()), draw_ids()
    one, other, wanted = seeded(5), seeded(5), ids
    for step in stream(model.begin(ids), B, temperature=0.8, generator=one, limits=exactly(6)):
        chances = (model(wanted)[:, -1] / 0.8).softmax(-1).cumsum(-1)
        numbers = torch.rand(B, dtype=torch.float64, generator=other)
        right = (chances > numbers[:, None]).int().argmax(-1)
        assert torch.equal(step.tokens, right)
        wanted = torch.cat((wanted, right[:, None]), 1)


def test_a_learned_table_is_used_to_its_end_and_not_beyond():
    model, ids = GPTConfig(V, M, H, LAYERS, T).build().eval(), draw_ids()
    assert continued(model, ids, 7).shape == (B, 18)  # the last of them is not read
    for way in (regard.greedy, regard.sample, regard.beam):
        assert len(way(model.begin(ids), B, limits=exactly(7))) == B
        with pytest.raises(
            regard.errors.PositionError, match=r"11 tokens and 8 steps came, .* at most 17; ask for at most 7"
        ):
            way(model.begin(ids), B, limits=exactly(8))
    with pytest.raises(regard.errors.PositionError, match="18 tokens came, but this model reads at most 17"):
        model(draw_ids(length=18))
    cache = model.make_cache()
    model(ids, cache)
    with pytest.raises(regard.errors.PositionError, match="18 tokens came"):
        model(draw_ids(length=7), cache)
    assert continued(GPTConfig(V, M, H, LAYERS, T, positions="alibi").build(), ids, 30).shape == (B, 41)


def test_listening_hears_every_layer_under_its_causal_mask():
    model = GPTConfig(V, M, H, LAYERS, T, hidden=0).build()
    with listen() as heard:
        model(draw_ids())
    assert [module for module, _ in heard] == [block.attention for block in model.blocks]
    assert [name for name, module in model.named_modules() if isinstance(module, regard.MultiHead)] == [
        "blocks.0.attention",
        "blocks.1.attention",
    ]
    assert torch.equal(heard[0][1].weights.allowed[0, 0], torch.ones(11, 11, dtype=torch.bool).tril())


@pytest.mark.parametrize(
    ("ids", "kind", "sentence"),
    [
        (torch.ones(2, 3), regard.errors.DtypeError, "ids came as torch.float32, wanted whole numbers"),
        (torch.ones(3, dtype=torch.long), regard.errors.ShapeError, r"ids came with shape \(3,\), wanted \(b, t\)"),
        (torch.tensor([[0, 29]]), regard.errors.ShapeError, "an id is 29, .* knows 29 tokens; give ids from 0 to 28"),
        (torch.tensor([[-1, 3]]), regard.errors.ShapeError, "an id is -1"),
    ],
    ids=["floats", "one axis", "too large", "negative"],
)
def test_ids_that_are_none_are_refused_in_words(ids, kind, sentence):
    model = GPTConfig(V, M, H, LAYERS, T).build()
    for call in (model, model.begin):
        with pytest.raises(kind, match=sentence):
            call(ids)


def test_what_cannot_be_is_refused_in_words():
    with pytest.raises(ValueError, match="positions is 'rope'; choose one of 'learned', 'sinusoid', 'rotary'"):
        GPTConfig(V, M, H, LAYERS, T, positions="rope").build()
    with pytest.raises(regard.errors.ShapeError, match="layers is 0"):
        GPTConfig(V, M, H, 0, T).build()
    with pytest.raises(regard.errors.ShapeError, match="width 13 does not split into 3 equal heads"):
        GPTConfig(V, 13, H, LAYERS, T).build()
    model = GPTConfig(V, M, H, LAYERS, T).build()
    with pytest.raises(regard.errors.CacheError, match="1 caches came for 2 layers"):
        model(draw_ids(), [regard.KeyValueCache()])
    with pytest.raises(regard.errors.ShapeError, match="there is no token to begin with"):
        model.begin(draw_ids(length=0))
    with pytest.raises(regard.errors.ShapeError, match="2 rows are to be written, but the prompt has"):
        regard.greedy(model.begin(draw_ids()), 2, limits=exactly(3))


def test_a_config_builds_what_the_class_makes_of_it():
    config = GPTConfig(V, M, H, LAYERS, T, positions="rotary", hidden=HIDDEN, norm="rms", tied=False, dropout=0.5)
    torch.manual_seed(3)
    built = config.build()
    torch.manual_seed(3)
    made = GPT(config)
    assert str(built) == str(made)
    assert_close(built.state_dict(), made.state_dict())
    with pytest.raises(AttributeError):
        config.width = 3


def test_weights_start_small_and_what_is_added_smaller():
    model = GPTConfig(97, 60, 4, 8, T).build()
    assert_close(model.embed.weight.std().item(), 0.02, atol=1e-3, rtol=0)
    assert_close(model.blocks[3].attention.to_q.weight.std().item(), 0.02, atol=1e-3, rtol=0)
    assert_close(model.blocks[3].attention.to_out.weight.std().item(), 0.005, atol=5e-4, rtol=0)
    assert not model.blocks[3].feed_forward.to_out.bias.any()


@pytest.mark.compiled
@pytest.mark.parametrize("positions", EVERY)
def test_a_compiled_model_is_one_graph_for_all_lengths(positions, count):
    model = shaken(GPTConfig(V, M, H, LAYERS, T, positions=positions).build())
    compiled = torch.compile(model, backend=count, fullgraph=True, dynamic=True)
    for rows, length in ((3, 5), (2, 9), (5, 13)):
        ids = draw_ids(rows, length)
        assert_close(compiled(ids), model(ids))
    assert count.graphs == 1
