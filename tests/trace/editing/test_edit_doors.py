"""Edits of models of the `transformers` library, through whichever door they compute."""

import logging
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from regard.errors import WatchError
from regard.trace.editing.edit import edit
from regard.trace.file import load, save
from regard.trace.numbers.summary import summarise
from regard.trace.verify import verify
from regard.trace.watch import watch
from tests.trace.editing.helpers import under
from tests.trace.look import tensors
from tests.trace.zoo import ZOO

transformers = pytest.importorskip("transformers")
logging.getLogger("transformers").setLevel(logging.ERROR)

HEADS, LAYERS, LENGTH = 4, 2, 7
SMALL = {
    "GPT2LMHeadModel": transformers.GPT2Config(vocab_size=31, n_positions=16, n_embd=24, n_layer=LAYERS, n_head=HEADS),
    "LlamaForCausalLM": transformers.LlamaConfig(
        vocab_size=31,
        hidden_size=24,
        intermediate_size=20,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=2,
        max_position_embeddings=32,
    ),
    "BertModel": transformers.BertConfig(
        vocab_size=31,
        hidden_size=24,
        intermediate_size=20,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=16,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    ),
}
PATHS = {"GPT2LMHeadModel": "h.1", "LlamaForCausalLM": "layers.1", "BertModel": "encoder.layer.1"}
BOTH = pytest.mark.parametrize("how", ["sdpa", "eager"])
EACH = pytest.mark.parametrize("name", SMALL)


def built(name: str, how: str = "sdpa", config: Any = None, **more: Any) -> Any:
    torch.manual_seed(5)
    config = SMALL[name] if config is None else config
    config._attn_implementation = how
    model = getattr(transformers, name)(config, **more)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape) * 0.3)
    return model.double().eval()


def ids(batch: int = 2, length: int = LENGTH) -> Tensor:
    return torch.randint(1, 31, (batch, length), generator=torch.Generator().manual_seed(2))


def first(output: Any) -> Tensor:
    return output.logits if hasattr(output, "logits") else output[0]


def silence(model: Any, name: str, layer: int, head: int) -> None:
    """Zero what the output projection of a layer takes from one head."""
    width = 24 // HEADS
    columns = slice(head * width, (head + 1) * width)
    with torch.no_grad():
        if name.startswith("GPT2"):
            model.transformer.h[layer].attn.c_proj.weight[columns] = 0
        elif name.startswith("Llama"):
            model.model.layers[layer].self_attn.o_proj.weight[:, columns] = 0
        else:
            model.encoder.layer[layer].attention.output.dense.weight[:, columns] = 0


@BOTH
@EACH
def test_an_edit_of_nothing_leaves_a_library_model_bit_equal(name, how):
    model, x = built(name, how).float(), ids()
    with torch.no_grad():
        plain = first(model(x))
        with edit(model):
            assert torch.equal(first(model(x)), plain)


@BOTH
@EACH
def test_muting_a_library_models_head_is_zeroing_its_columns(name, how):
    model, x = built(name, how), ids()
    with torch.no_grad(), edit(model) as e:
        e.mute(PATHS[name], heads=3)
        found = first(model(x))
    plain = first(model(x))
    silence(model, name, 1, 3)
    assert_close(found, first(model(x)))
    assert (found - plain).abs().max() > 1e-3


@BOTH
@EACH
def test_blocking_an_edge_everywhere_is_an_attention_mask_with_that_cell_hidden(name, how):
    model, x = built(name, how), ids()
    causal = not name.startswith("Bert")
    mask = torch.ones(2, 1, LENGTH, LENGTH, dtype=torch.bool)
    mask = mask.tril() if causal else mask
    mask[:, :, 5, 1] = mask[:, :, 3, 0] = False
    given = mask if how == "sdpa" else torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -1e300)
    with torch.no_grad(), edit(model) as e:
        e.block(query=5, key=1)
        e.block(query=3, key=0)
        found = first(model(x))
    assert_close(found, first(model(x, attention_mask=given)))


@BOTH
def test_gradients_of_an_edited_library_model_are_those_of_the_masked_one(how):
    model, x = built("LlamaForCausalLM", how), ids()
    mask = torch.ones(2, 1, LENGTH, LENGTH, dtype=torch.bool).tril()
    mask[:, :, 5, 1] = False
    given = mask if how == "sdpa" else torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -1e300)
    with edit(model) as e:
        e.block(query=5, key=1)
        found = torch.autograd.grad(first(model(x)).square().mean(), list(model.parameters()))
    wanted = torch.autograd.grad(first(model(x, attention_mask=given)).square().mean(), list(model.parameters()))
    assert_close(found, wanted)


@BOTH
def test_edits_and_padding_go_together(how):
    model, x = built("BertModel", how), ids()
    lengths = torch.tensor([LENGTH, 4])
    padding = torch.arange(LENGTH) < lengths[:, None]
    mask = padding[:, None, None, :].repeat(1, 1, LENGTH, 1)
    mask[:, :, 2, 0] = False
    with torch.no_grad(), edit(model) as e:
        e.block(query=2, key=0)
        found = first(model(x, attention_mask=padding.long()))
    given = mask if how == "sdpa" else torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -1e300)
    assert_close(found[padding], first(model(x, attention_mask=given))[padding])


@BOTH
@EACH
def test_what_is_watched_of_a_library_model_is_what_it_used(name, how):
    model, x = built(name, how).float(), ids()
    with torch.no_grad(), edit(model) as e, watch(model) as trace:
        e.force(query=4, key=[0, 2], weight=0.5, path=PATHS[name], heads=[0, 3])
        e.block(query=6, key=1, path=PATHS[name])
        edited = first(model(x))
    plain, changed = trace.layers
    assert not plain.notes
    assert not bool((changed.weights[..., 6, 1] > 0).any())
    assert_close(changed.weights[:, [0, 3]].dense()[:, :, 4, [0, 2]], torch.full((2, 2, 2), 0.25))
    assert_close(changed.weights.dense().sum(-1), torch.ones(2, HEADS, LENGTH))
    assert all(proof.status == "proven" for proof in verify(trace.runs[0]) if proof.name == changed.name)
    with torch.no_grad(), edit(model) as e:
        e.replace(PATHS[name], by=changed)
        assert_close(first(model(x)), edited)


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "LlamaForCausalLM"])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_positions_under_a_cache_are_those_of_the_whole_text(name, cache):
    model, x = built(name), ids(batch=1, length=3)
    told = {} if cache == "dynamic" else {"cache_implementation": "static"}
    with torch.no_grad(), edit(model) as e:
        e.block(query=[2, 5], key=0)
        e.force(query=6, key=4, weight=0.5, heads=1)
        made = model.generate(
            x, max_new_tokens=6, do_sample=False, output_logits=True, return_dict_in_generate=True, **told
        )
        whole = first(model(made.sequences[:, :-1]))
    assert_close(torch.stack(made.logits, 1), whole[:, 2:].to(made.logits[0]), atol=1e-6, rtol=1e-5)


def test_a_watched_and_edited_generation_is_one_map():
    model, x = built("LlamaForCausalLM").float(), ids(batch=1, length=3)
    with torch.no_grad(), edit(model) as e, watch(model) as trace:
        e.zero(query=5, key=[0, 1])
        e.block(query=1, key=0)
        made = model.generate(x, max_new_tokens=5, do_sample=False)
    with torch.no_grad(), edit(model) as e, watch(model) as once:
        e.zero(query=5, key=[0, 1])
        e.block(query=1, key=0)
        model(made[:, :-1])
    assert len(trace.runs) == 1
    for stitched, whole in zip(trace.layers, once.layers):
        assert stitched.weights.shape == whole.weights.shape
        assert_close(stitched.weights.dense(), whole.weights.dense())


def test_a_key_beyond_the_end_of_a_generation_is_refused():
    model, x = built("LlamaForCausalLM"), ids(batch=1, length=3)
    model.generation_config.eos_token_id = None
    with pytest.raises(WatchError, match="names key 9, but the longest call had 5"):
        under(model, lambda e: [e.block(query=4, key=9), model.generate(x, max_new_tokens=3, do_sample=False)], x)


def test_cross_attention_is_edited_by_its_own_path_and_a_block_of_two_is_ambiguous():
    config = transformers.T5Config(
        vocab_size=31,
        d_model=24,
        d_kv=6,
        d_ff=20,
        num_layers=LAYERS,
        num_heads=HEADS,
        dropout_rate=0.0,
        decoder_start_token_id=0,
    )
    model = built("T5ForConditionalGeneration", config=config)
    source, target = ids(length=6), ids(length=3)
    fed = {"input_ids": source, "decoder_input_ids": target}
    with pytest.raises(WatchError, match=r"'decoder.block.1' fits .*layer.0.SelfAttention and .*EncDecAttention"):
        under(model, lambda e: e.mute("decoder.block.1", heads=0), **fed)
    found = first(under(model, lambda e: e.mute("decoder.block.1.layer.1", heads=0), **fed))
    with torch.no_grad():
        model.decoder.block[1].layer[1].EncDecAttention.o.weight[:, :6] = 0
    assert_close(found, first(model(**fed)))


def test_one_call_of_a_shared_module_is_named_by_its_number():
    config = transformers.AlbertConfig(
        vocab_size=31,
        embedding_size=12,
        hidden_size=24,
        intermediate_size=20,
        num_hidden_layers=3,
        num_attention_heads=HEADS,
        max_position_embeddings=16,
    )
    model, x = built("AlbertModel", config=config), ids()
    with torch.no_grad(), edit(model) as e, watch(model) as trace:
        e.replace("attention#2", [1])
        model(x)
    changed = [bool(layer.notes) for layer in trace.layers]
    assert changed == [False, True, False]
    assert_close(trace.layers[1].weights[0, 1].dense(), torch.full((LENGTH, LENGTH), 1 / LENGTH, dtype=torch.float64))


def test_positions_count_from_the_first_token_also_when_a_sliding_cache_forgot_it():
    config = transformers.MistralConfig(
        vocab_size=31,
        hidden_size=24,
        intermediate_size=20,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=2,
        sliding_window=4,
        eos_token_id=None,
    )
    model, x = built("MistralForCausalLM", config=config), ids(batch=1, length=3)

    def ask(e) -> None:
        e.block(query=[7, 2], key=[5, 0])
        e.force(query=9, key=8, weight=0.9)

    with torch.no_grad(), edit(model) as e, watch(model) as trace:
        ask(e)
        made = model.generate(x, max_new_tokens=9, do_sample=False)
        model(made[:, :-1], use_cache=False)
    stitched, whole = trace.runs
    for a, b in zip(stitched.layers, whole.layers):
        assert_close(a.weights.dense(), b.weights.dense())


def test_queries_of_cross_attention_are_counted_while_generating():
    config = transformers.BartConfig(
        vocab_size=31,
        d_model=24,
        encoder_layers=1,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=20,
        decoder_ffn_dim=20,
        max_position_embeddings=32,
        pad_token_id=0,
        eos_token_id=None,
        forced_eos_token_id=None,
        decoder_start_token_id=2,
    )
    model, source = built("BartForConditionalGeneration", config=config), ids(batch=1, length=6)
    with torch.no_grad(), edit(model) as e:
        e.block(query=[0, 3], key=[1, 2], path=["decoder.layers.0.encoder_attn", "decoder.layers.1.encoder_attn"])
        made = model.generate(
            source, max_new_tokens=5, num_beams=1, do_sample=False, output_logits=True, return_dict_in_generate=True
        )
        whole = first(model(input_ids=source, decoder_input_ids=made.sequences[:, :-1], use_cache=False))
    assert_close(torch.stack(made.logits, 1), whole.to(made.logits[0]), atol=1e-6, rtol=1e-5)


def test_attention_of_several_softmaxes_is_refused_rather_than_half_edited():
    config = transformers.NystromformerConfig(
        vocab_size=31,
        hidden_size=24,
        intermediate_size=20,
        num_hidden_layers=1,
        num_attention_heads=HEADS,
        max_position_embeddings=64,
        num_landmarks=4,
        segment_means_seq_len=8,
    )
    model = built("NystromformerModel", "eager", config)
    with pytest.raises(WatchError, match="softmax"):
        under(model, lambda e: e.mute(heads=0), ids(length=8))


def test_an_edited_trace_is_measured_saved_and_read_again(tmp_path):
    model, x = built("LlamaForCausalLM").float(), ids()
    with torch.no_grad(), edit(model) as e, watch(model) as trace:
        e.force(query=slice(2, None), key=1, weight=0.75, path="layers.0", heads=2)
        model(x)
    shown = summarise(trace).records()
    even = [row for row in shown if row["layer"].endswith("layers.0.self_attn")]
    assert len(even) == HEADS
    save(trace, tmp_path / "edited.trace")
    again = load(tmp_path / "edited.trace")
    for one, other in zip(trace.layers, again.layers):
        assert_close(one.weights.dense(), other.weights.dense())
        assert one.notes == [note for note in other.notes if "file" not in note]


def test_learned_sinks_take_part_in_what_a_block_leaves():
    config = transformers.GptOssConfig(
        vocab_size=31,
        hidden_size=24,
        intermediate_size=20,
        num_hidden_layers=1,
        num_attention_heads=HEADS,
        num_key_value_heads=2,
        head_dim=6,
        num_local_experts=2,
        num_experts_per_tok=1,
        max_position_embeddings=64,
        layer_types=["full_attention"],
    )
    model, x = built("GptOssForCausalLM", "eager", config).float(), ids()
    with torch.no_grad():
        plain = model(x, output_attentions=True).attentions[0]
        with edit(model) as e, watch(model) as trace:
            e.block(query=5, key=2)
            model(x)
    row = plain[:, :, 5].clone()
    row[..., 2] = 0
    row = row / (1 - plain[:, :, 5, 2:3])  # the sink keeps its part of the normaliser
    assert_close(trace.layers[0].weights[:, :, 5], row, atol=1e-5, rtol=1e-4)
    assert (1 - row.sum(-1) > 1e-3).all()


KINDS = ["BERT", "ALBERT", "DeBERTa", "GPT-2", "BLOOM", "Gemma 2", "GPT-OSS", "T5", "BART", "Swin", "CLIP", "Whisper"]


@pytest.mark.parametrize("name", KINDS)
def test_a_map_replaced_by_itself_changes_nothing_whatever_the_architecture(name):
    model, fed = ZOO[name].build()
    with torch.no_grad():
        plain = list(tensors(model(**fed)))
        with edit(model) as e:
            e.scale(None, None, 1.0)
            same = list(tensors(model(**fed)))
        with watch(model) as trace:
            model(**fed)
        with edit(model) as e:
            again = {layer.name.partition("#")[0] for layer in trace.layers if "#" in layer.name}
            for layer in trace.layers:
                e.replace(f"{layer.name}#1" if layer.name in again else layer.name, by=layer)
            own = list(tensors(model(**fed)))
    assert all(torch.equal(a, b) for a, b in zip(plain, same))
    assert_close(own, plain, atol=1e-4, rtol=1e-3)


@pytest.mark.slow  # the library compiles it
def test_flex_attention_of_the_library_is_edited_once():
    found = []
    for how in ("eager", "flex_attention"):
        config = transformers.LlamaConfig(
            vocab_size=31,
            hidden_size=64,
            intermediate_size=20,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=2,
        )
        model = built("LlamaForCausalLM", how, config).float()
        with torch.no_grad(), edit(model) as e:
            e.scale("layers.1", 2, 3.0)
            e.block(query=4, key=3)
            found.append(first(model(ids())))
    assert_close(found[1], found[0], atol=1e-4, rtol=1e-4)


# Half precision


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_what_it_is_and_edits_are_computed_wider(dtype):
    model, x = built("LlamaForCausalLM").to(dtype), ids()
    with torch.no_grad(), edit(model) as e:
        e.block(query=5, key=1)
        found = first(model(x))
    mask = torch.ones(2, 1, LENGTH, LENGTH, dtype=torch.bool).tril()
    mask[:, :, 5, 1] = False
    wanted = first(model(x, attention_mask=mask))
    assert found.dtype == dtype
    assert_close(found, wanted, atol=0.1, rtol=0.05)


def test_autocast_and_inference_mode_are_edited():
    model, x = built("BertModel").float(), ids()
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16), edit(model) as e:
        e.mute("layer.1", heads=3)
        e.block(query=1, key=2)
        found = first(model(x))
    silence(model, "BertModel", 1, 3)
    mask = torch.ones(2, 1, LENGTH, LENGTH, dtype=torch.bool)
    mask[:, :, 1, 2] = False
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        assert_close(found, first(model(x, attention_mask=mask)), atol=0.1, rtol=0.05)
