"""Edits of models of the `transformers` library, through whichever door they compute."""

import pytest
import torch
from torch.testing import assert_close

from regard.errors import WatchError
from regard.trace.change.edit import edit
from regard.trace.file import load, save
from regard.trace.measure.summary import summarise
from regard.trace.proof.verify import verify
from regard.trace.watch import watch
from tests.child import in_child
from tests.trace.change.helpers import under
from tests.trace.change.library import BOTH, EACH, HEADS, LAYERS, LENGTH, PATHS, built, first, ids, silence
from tests.trace.look import tensors
from tests.trace.zoo import ZOO

transformers = pytest.importorskip("transformers")


def must_be_close(found, wanted, how):
    """In float64; but the library's eager attention takes its softmax in float32, whatever the model computes in."""
    eps = 32 * torch.finfo(torch.float32).eps if how == "eager" else 1e-7
    assert_close(found, wanted, atol=eps, rtol=eps)


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
    must_be_close(found, first(model(x)), how)
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
    must_be_close(found, first(model(x, attention_mask=given)), how)


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
    must_be_close(found, wanted, how)


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
    must_be_close(found[padding], first(model(x, attention_mask=given))[padding], how)


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
    assert not plain.edits
    assert not bool((changed.weights[..., 6, 1] > 0).any())
    assert_close(changed.weights[:, [0, 3]].dense()[:, :, 4, [0, 2]], torch.full((2, 2, 2), 0.25))
    assert_close(changed.weights.dense().sum(-1), torch.ones(2, HEADS, LENGTH))
    assert all(proof.status == "verified" for proof in verify(trace.runs[0]) if proof.name == changed.name)
    with torch.no_grad(), edit(model) as e:
        e.replace(PATHS[name], by=changed)
        assert_close(first(model(x)), edited)


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


@pytest.mark.parametrize("dtype", [torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.slow)])
@in_child
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


@in_child
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
