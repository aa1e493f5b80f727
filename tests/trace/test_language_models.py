"""Every language model of ours is watched and edited as any other: GPT, Llama and its fields, BERT and its heads."""

import copy
import gc
import weakref
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import regard
from regard.attention.observe import has_listeners
from regard.decode import stream
from regard.models import BertConfig
from regard.models.bert_config import HEADS as BERT_HEADS
from regard.models.convert import from_transformers
from regard.models.sentence_encoder import SentenceEncoderConfig
from tests.models.causal_models import CONFIGS, LAYERS, H, V, draw_ids, shaken
from tests.models.convert import encoders
from tests.trace.look import by_hand, tensors
from tests.trace.rounding import rounding

T = 13
BERT = BertConfig(vocab_size=V, width=18, heads=H, layers=LAYERS, context=17, hidden=20, labels=5)
BERTS = {f"bert {head}": replace(BERT, head=head) for head in BERT_HEADS} | {
    "roberta": replace(BERT, after_pad=True, pad=1, head="classify", head_dense=True),
    "electra": replace(BERT, embed_width=10, head="discriminate"),
    "sentence encoder": SentenceEncoderConfig(**{**vars(BERT), "pooling": "mean"}),
}
EVERY = CONFIGS | BERTS


def make(name):
    """A model in float64, and ids for it: of an encoder the second row is shorter."""
    model, ids = shaken(EVERY[name].build()), draw_ids(2, T)
    if name in BERTS:
        ids = ids.clamp(min=2)
        ids[1, T - 4 :] = model.config.pad
    return model, ids


def allowed_by_rule(model, ids, layer: int):
    """Which keys each query may look at, from the words of the config alone: (b, 1, q, k)."""
    q, k = torch.arange(T)[:, None], torch.arange(T)
    if isinstance(model.config, BertConfig):
        return (ids != model.config.pad)[:, None, None].expand(-1, 1, T, T)
    window = model.windows[layer]
    return ((k <= q) & (k > q - (T if window is None else window))).expand(len(ids), 1, T, T)


def state_of(model):
    """What a watch could leave behind: hooks, attributes, patched methods, of every module."""
    return [(name, sorted(vars(module)), {key: len(value) for key, value in vars(module).items() if "hooks" in key})
            for name, module in model.named_modules()]  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_a_watched_model_gives_the_same_and_every_map_is_the_formula(name):
    model, ids = make(name)
    before, random = state_of(model), torch.get_rng_state()
    with torch.no_grad():
        plain = list(tensors(model(ids)))
        with regard.watch(model) as trace:
            watched = list(tensors(model(ids)))
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))
    assert torch.equal(random, torch.get_rng_state())
    assert state_of(model) == before
    assert not has_listeners()
    assert [layer.name for layer in trace.layers] == [f"blocks.{i}.attention" for i in range(LAYERS)]
    for number, layer in enumerate(trace.layers):
        assert layer.kind == "self"
        assert layer.weights.kind == "computed"
        assert layer.weights.shape == (2, H, T, T)
        wanted = allowed_by_rule(model, ids, number)
        assert torch.equal(layer.weights.allowed[...], wanted.expand(2, H, T, T))
        exact = by_hand(layer)
        assert exact is not None
        assert_close(layer.weights.dense(), exact, atol=1e-13, rtol=0)
    assert trace.verify(), trace.verify()


@pytest.mark.parametrize("name", EVERY)
def test_gradients_of_a_watched_model_are_its_own(name):
    model, ids = make(name)

    def gradients(watched: bool):
        model.zero_grad()
        if watched:
            with regard.watch(model):
                sum(one.square().sum() for one in tensors(model(ids))).backward()
        else:
            sum(one.square().sum() for one in tensors(model(ids))).backward()
        return {name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None}

    plain, seen = gradients(watched=False), gradients(watched=True)
    assert plain.keys() == seen.keys()
    assert plain
    assert all(torch.equal(plain[key], seen[key]) for key in plain)


@pytest.mark.parametrize("name", ["gpt alibi", "gpt2", "qwen3", "bert masked_words"])
def test_a_watched_model_is_not_kept_alive(name):
    def read_once():  # a frame of its own, whose variables end with it
        model, ids = make(name)
        with torch.no_grad(), regard.watch(model) as trace:
            model(ids)
        return trace, weakref.ref(model)

    trace, gone = read_once()
    gc.collect()
    assert len(trace.layers) == LAYERS
    assert gone() is None


# Edits, against the same arithmetic written out


def head_columns(model, head: int) -> slice:
    width = model.blocks[0].attention.to_out.in_features // H
    return slice(head * width, (head + 1) * width)


@pytest.mark.parametrize("name", EVERY)
def test_muting_a_head_is_zeroing_its_columns_of_the_output_projection(name):
    model, ids = make(name)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for layer, heads in ((1, (2, 4)), (2, (0,))):
            for head in heads:
                other.blocks[layer].attention.to_out.weight[:, head_columns(model, head)] = 0
        wanted = list(tensors(other(ids)))
        plain = list(tensors(model(ids)))
        with regard.edit(model) as e:
            e.mute("blocks.1", [2, 4])
            e.mute("blocks.2.attention", 0)
            found = list(tensors(model(ids)))
        again = list(tensors(model(ids)))
    for one, right, before, after in zip(found, wanted, plain, again, strict=True):
        assert_close(one, right, atol=1e-10, rtol=1e-10)
        assert not torch.allclose(one, before)
        assert torch.equal(before, after)


def mixes_of(model, ids, layer: int, ask=lambda e: None):
    """What goes into the output projection of a layer, (b, h, q, e), under an edit."""
    taken: list[torch.Tensor] = []
    handle = model.blocks[layer].attention.to_out.register_forward_pre_hook(lambda _, x: taken.append(x[0]))
    try:
        with torch.no_grad(), regard.edit(model) as e:
            ask(e)
            model(ids)
    finally:
        handle.remove()
    return taken[0].unflatten(-1, (H, -1)).transpose(1, 2)


EDITS = {
    "block": (lambda e: e.block(6, 3, "blocks.1", 2), lambda w: blocked(w, 6, 3)),
    "zero": (lambda e: e.zero(6, 3, "blocks.1", 2), lambda w: put(w, 6, 3, 0.0)),
    "uniform": (lambda e: e.replace("blocks.1", 2), lambda w: (w > 0).double() / (w > 0).sum(-1, keepdim=True)),
    "force": (lambda e: e.force(6, 3, 0.75, "blocks.1", 2), lambda w: put(blocked(w, 6, 3) * row(6, 0.25), 6, 3, 0.75)),
    "scale": (lambda e: e.scale("blocks.1", 2, -1.5), lambda w: w * -1.5),
}


def row(query: int, factor: float):
    return torch.ones(T, 1, dtype=torch.float64).index_fill(0, torch.tensor(query), factor)


def put(weights, query: int, key: int, value: float):
    weights = weights.clone()
    weights[..., query, key] = value
    return weights


def blocked(weights, query: int, key: int):
    without = put(weights, query, key, 0.0)
    without[..., query, :] /= without[..., query, :].sum(-1, keepdim=True)
    return without


@pytest.mark.parametrize("how", EDITS)
@pytest.mark.parametrize("name", ["gpt learned", "gpt alibi", "gpt2", "llama scaled", "mistral", "qwen3", "roberta"])
def test_an_edit_is_the_same_arithmetic_written_out(name, how):
    model, ids = make(name)
    with torch.no_grad(), regard.watch(model) as trace:
        model(ids)
    layer, (ask, change) = trace.layers[1], EDITS[how]
    weights, values = by_hand(layer), layer.v.repeat_interleave(H // layer.v.shape[1], 1)
    wanted = weights @ values  # b h q e
    wanted[:, 2] = change(weights[:, 2]) @ values[:, 2]
    assert_close(mixes_of(model, ids, 1), weights @ values, atol=1e-12, rtol=0)
    assert_close(mixes_of(model, ids, 1, ask), wanted, atol=1e-12, rtol=0)
    assert not torch.allclose(wanted, weights @ values)


@pytest.mark.parametrize("name", ["gpt rotary", "qwen2", "bert none"])
def test_a_watch_inside_an_edit_shows_the_edited_map(name):
    model, ids = make(name)
    with torch.no_grad(), regard.edit(model) as e:
        e.block(6, 3, "blocks.1", 2)
        with regard.watch(model) as trace:
            model(ids)
    assert float(trace["blocks.1"].weights[1, 2, 6, 3]) == 0.0
    assert_close(trace["blocks.1"].weights[1, 2, 6].sum(), torch.tensor(1.0, dtype=torch.float64))
    assert trace.edits


# Writing


def limits(longest: int):
    return regard.Limits(longest=longest, end=None, never=())


@pytest.mark.parametrize("name", CONFIGS)
def test_a_watched_text_is_the_same_text_and_one_map_per_layer(name):
    model, ids = make(name)
    write = partial(regard.greedy, rows=2, limits=limits(7))
    with torch.no_grad():
        plain = write(model.begin(ids))
        with regard.watch(model) as trace:
            watched = write(model.begin(ids))
        whole = torch.cat((ids, torch.tensor([one.ids for one in plain])), 1)
        with regard.watch(model) as read:
            model(whole)
    assert [one.ids for one in plain] == [one.ids for one in watched]
    assert len(trace.runs) == 1
    assert [layer.name for layer in trace.layers] == [layer.name for layer in read.layers]
    for ours, right in zip(trace.layers, read.layers, strict=True):
        assert ours.queries is not None
        fed = ours.weights.shape[-1]
        assert fed in (T + 6, T + 7)  # the last token may stay unread
        assert ours.queries[1].ids == tuple(whole[1, :fed].tolist())
        assert_close(ours.weights.dense(), right.weights.dense()[..., :fed, :fed], atol=1e-12, rtol=0)
    assert trace.verify(), trace.verify()


@pytest.mark.parametrize("name", CONFIGS)
def test_a_stream_is_heard_step_by_step_and_stitched(name):
    model, ids = make(name)
    plain = [step.tokens.tolist() for step in stream(model.begin(ids), 2, limits=limits(5))]
    tokens, heard = [], []
    with torch.no_grad(), regard.watch(model) as trace:
        for step in stream(model.begin(ids), 2, limits=limits(5)):
            tokens.append(step.tokens.tolist())
            heard.append(len(trace.layers) and trace.layers[0].weights.shape[-2])
    assert tokens == plain
    assert heard == sorted(heard)
    fed = torch.cat((ids, torch.tensor(tokens[:-1]).T), 1)
    with torch.no_grad(), regard.watch(model) as read:
        model(fed)
    for ours, right in zip(trace.layers, read.layers, strict=True):
        assert ours.weights.shape == (2, H, T + 4, T + 4)
        assert_close(ours.weights.dense(), right.weights.dense(), atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", ["gpt2", "gpt alibi", "llama", "mistral", "qwen3"])
def test_prompts_of_different_lengths_look_as_each_alone(name):
    model, ids = make(name)
    prompts = [ids[0, :9].tolist(), ids[1, :4].tolist()]
    with torch.no_grad(), regard.watch(model) as trace:
        texts = regard.greedy(model.begin(prompts), 2, limits=limits(5))
    for number, (prompt, text) in enumerate(zip(prompts, texts, strict=True)):
        whole = torch.tensor([[*prompt, *text.ids]])
        with torch.no_grad(), regard.watch(model) as alone:
            model(whole)
        for ours, right in zip(trace.layers, alone.layers, strict=True):
            n = min(whole.shape[1], ours.weights.shape[-1])
            assert_close(ours.weights[number, :, :n, :n], right.weights[0, :, :n, :n], atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", ["gpt alibi", "llama", "llama scaled", "qwen3"])
def test_writing_in_a_window_is_one_map_with_a_band(name):
    model, ids = make(name)
    plain = regard.greedy(model.begin(ids, window=5), 2, limits=limits(6))
    with torch.no_grad(), regard.watch(model) as trace:
        watched = regard.greedy(model.begin(ids, window=5), 2, limits=limits(6))
    assert [one.ids for one in plain] == [one.ids for one in watched]
    assert len(trace.runs) == 1
    at = torch.arange(T + 5)
    band = (at <= at[:, None]) & (at >= at[:, None] - 5)
    for layer in trace.layers:
        assert torch.equal(layer.weights.allowed[...], band.expand(2, H, T + 5, T + 5))
        assert_close(layer.weights.dense(), by_hand(layer), atol=1e-13, rtol=0)
    assert trace.verify(), trace.verify()


@pytest.mark.parametrize("name", ["gpt alibi", "llama"])
def test_with_sinks_every_step_is_a_run_whose_keys_are_slots(name):
    model, ids = make(name)
    plain = regard.greedy(model.begin(ids, window=5, sinks=2), 2, limits=limits(6))
    with torch.no_grad(), regard.watch(model) as trace:
        watched = regard.greedy(model.begin(ids, window=5, sinks=2), 2, limits=limits(6))
    assert [one.ids for one in plain] == [one.ids for one in watched]
    for run in trace.runs[-5:]:  # the first keys move on with every token, so rows of two steps have no common keys
        for layer in run.layers:
            assert layer.weights.shape == (2, H, 1, 2 + 5 + 1)
            assert layer.keys[0].shown[:2] == ("slot 0", "slot 1")
            assert_close(layer.weights.dense(), by_hand(layer), atol=1e-13, rtol=0)
    assert trace.verify(), trace.verify()


# A file, and the other library


@pytest.mark.parametrize("name", ["gpt attention alone", "gpt2", "mistral", "qwen3", "bert pretrain", "electra"])
def test_a_trace_is_the_same_from_a_file(name, tmp_path):
    model, ids = make(name)
    with torch.no_grad(), regard.watch(model) as trace:
        model(ids)
    trace.save(tmp_path / "kept.trace")
    found = regard.load(tmp_path / "kept.trace")
    assert [layer.name for layer in found.layers] == [layer.name for layer in trace.layers]
    for ours, right in zip(found.layers, trace.layers, strict=True):
        assert torch.equal(ours.weights.dense(), right.weights.dense())
        assert torch.equal(ours.weights.allowed[...], right.weights.allowed[...])
    assert found.verify(), found.verify()


def their_decoder(family: str, **options):
    import transformers

    sizes = {
        "vocab_size": V, "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 6,
        "num_key_value_heads": 2, "max_position_embeddings": 40, "bos_token_id": None, "eos_token_id": None,
        "pad_token_id": None,
    }  # fmt: skip
    if family == "GPT2":
        sizes = {"vocab_size": V, "n_embd": 24, "n_head": 6, "n_layer": 2, "n_positions": 40}
        config, made = transformers.GPT2Config, transformers.GPT2LMHeadModel
    else:
        config, made = getattr(transformers, f"{family}Config"), getattr(transformers, f"{family}ForCausalLM")
    torch.manual_seed(4)
    model = made(config(**sizes | options))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.eval()


LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 10000.0, "factor": 4.0, "low_freq_factor": 0.2, "high_freq_factor": 1.5,
    "original_max_position_embeddings": 11,
}  # fmt: skip
DECODERS = {
    "gpt2": ("GPT2", {}),
    "llama": ("Llama", {}),
    "llama 3 scaling": ("Llama", {"rope_parameters": LLAMA3}),
    "llama biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "mistral": ("Mistral", {"sliding_window": 5, "head_dim": 10}),
    "qwen2": ("Qwen2", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
    "qwen3": ("Qwen3", {"head_dim": 6}),
}


def must_be_same_maps(ours, theirs, real=None) -> None:
    assert len(ours.layers) == len(theirs.layers) == 2
    for mine, right in zip(ours.layers, theirs.layers, strict=True):
        assert mine.kind == right.kind
        a, b = mine.weights.dense(), right.weights.dense()
        if real is not None:
            a, b = (x.transpose(1, 2)[real] for x in (a, b))
        assert_close(a, b, atol=max(1e-5, rounding(right)), rtol=0)


@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_has_the_trace_of_transformers_with_the_same_weights(name):
    family, options = DECODERS[name]
    theirs = their_decoder(family, **options)
    ours, ids = from_transformers(theirs.config.to_dict(), theirs.state_dict()), draw_ids(3, T)
    with torch.no_grad():
        with regard.watch(ours) as mine:
            ours(ids)
        with regard.watch(theirs) as right:
            theirs(ids)
    must_be_same_maps(mine, right)


@pytest.mark.parametrize(
    "name", ["BertModel", "BertForMaskedLM", "RobertaForTokenClassification", "ElectraForPreTraining"]
)
def test_an_encoder_has_the_trace_of_transformers_with_the_same_weights(name):
    torch.manual_seed(6)
    theirs = encoders.make(name)
    ours, (ids, types, real) = from_transformers(*encoders.parts(theirs)), encoders.draw_batch(theirs)
    with torch.no_grad():
        with regard.watch(ours) as mine:
            ours(ids, types)
        with regard.watch(theirs) as right:
            theirs(input_ids=ids, token_type_ids=types, attention_mask=real.long())
    must_be_same_maps(mine, right, real)
