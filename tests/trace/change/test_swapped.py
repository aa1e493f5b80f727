"""The report of a swap: its numbers by their definitions, what it leaves out and why, and what it refuses."""

import json

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention.mask import causal, longformer, window
from regard.attention.matrix_free.linformer import Linformer
from regard.attention.matrix_free.performer import Performer
from regard.errors import WatchError
from regard.trace.change.swap import swap
from tests.trace.change.swap_models import bert, given, gpt2, ids, llama, masked, near, own
from tests.trace.change.test_swap import Pair
from tests.trace.models import Attention, seeded


def test_the_report_compares_with_the_dense_mask_by_the_definitions():
    model, x = gpt2(), ids()
    found = swap(model, attention=window(2, 0))(input_ids=x)
    own_logits = given(model, x)
    with masked(near(2)):
        other = given(model, x)
    assert_close(found.effect.before, own_logits)
    assert_close(found.effect.after, other)
    assert found.error == pytest.approx(float((other - own_logits).norm() / own_logits.norm()))
    assert found.largest == pytest.approx(float((other - own_logits).abs().max()))
    assert found.agreement == pytest.approx(float((other.argmax(-1) == own_logits.argmax(-1)).double().mean()))
    divergence = nn.functional.kl_div(
        other.log_softmax(-1), own_logits.log_softmax(-1), log_target=True, reduction="none"
    ).sum(-1)
    assert found.kl == pytest.approx(float(divergence.mean()))
    assert found.swapped == ["transformer.h.0.attn", "transformer.h.1.attn"]
    assert torch.equal(found.output.logits.double(), found.effect.after)


def test_padding_counts_for_nothing():
    model, x = gpt2(), ids()
    real = torch.tensor([[1] * 11, [1] * 7 + [0] * 4])
    found = swap(model, attention=window(2, 0)).report(input_ids=x, attention_mask=real)
    assert found.real(found.effect.before).shape == (18, 13)


def test_swapping_in_what_the_model_has_is_no_error():
    found = swap(llama(), attention=causal())(input_ids=ids())
    assert found.error < 1e-12
    assert (found.agreement, found.kept) == (1.0, {})


def test_time_and_memory_are_measured_for_every_layer():
    model, x = own(), ids(1, 600)
    found = swap(model, attention=window(20, 0))(x)
    for met in found.layers.values():
        assert met.own.seconds > 0
        assert met.new.seconds > 0
        assert met.new.bytes > 0
        assert met.matrix == 3 * 600 * 600 * 8
        assert met.path == "banded"
    own_seconds, new_seconds = found.attention_seconds()
    assert found.attention_time == pytest.approx(own_seconds / new_seconds)
    assert found.time == pytest.approx(found.seconds / max(found.seconds - own_seconds + new_seconds, new_seconds))
    assert found.memory == pytest.approx(met.own.bytes / met.new.bytes)


def test_hidden_states_have_no_tokens_to_agree_on():
    found = swap(bert(), attention=longformer(2))(input_ids=ids())
    assert (found.agreement, found.kl) == (None, None)
    assert found.error > 0


def test_the_table_says_what_was_left_as_it_is_and_why():
    x, memory = (torch.randn(2, n, 24, dtype=torch.float64) for n in (7, 9))
    found = swap(Pair(), attention=window(1, 1))(x, memory)
    printed = repr(found)
    assert printed.startswith("window(1, 1) in 1 of 2 layers\n")
    assert "it is cross-attention, whose keys are another text" in printed
    assert "time: attention" in printed
    assert "the matrix of weights would be" in printed
    assert list(found.kept) == ["far"]
    assert json.dumps(found.records())
    assert "<table>" in found._repr_html_()


def test_the_random_numbers_of_a_model_in_training_are_the_same_both_ways():
    model, x = gpt2(resid_pdrop=0.3, attn_pdrop=0.0), ids()
    model.train()
    torch.manual_seed(3)
    state = torch.get_rng_state()
    found = swap(model, attention=window(50, 0))(input_ids=x)
    assert found.error < 1e-12
    assert torch.equal(torch.get_rng_state(), state)


def test_a_reader_of_outputs_may_be_given():
    model = seeded(Attention(24, 3))
    wrapped = nn.Module()
    wrapped.inner = model
    wrapped.forward = lambda x: {"what": [model(x)]}
    x = torch.randn(1, 5, 24)
    assert swap(wrapped, attention=window(1), read=lambda out: out["what"][0])(x).error > 0


@pytest.mark.parametrize(
    ("model", "attention", "inputs", "said"),
    [
        (lambda: nn.Linear(3, 5), window(1), (torch.zeros(3),), "swapped in nowhere: the model was not called"),
        (gpt2, Linformer(20, 4), (ids(),), r"h.0.attn cannot be computed by Linformer\(.*\): causal\(\) came"),
        (bert, Linformer(10, 4), (ids(),), "there are 11 keys, but this Linformer mixes at most 10"),
        (gpt2, Performer(7), (ids(),), "heads of width 4, but this Performer has directions of width 7"),
        (bert, longformer(1, global_at=[30]), (ids(),), "global token 30 was asked for, but there are 11 keys"),
        (lambda: seeded(Attention(24, 3, "by_hand")), window(1), (torch.zeros(1, 3, 24),), "q and k are not seen"),
    ],
    ids=["no attention", "causal", "length", "width", "global", "by hand"],
)
def test_what_cannot_be_swapped_is_refused_in_one_sentence(model, attention, inputs, said):
    with pytest.raises(WatchError, match=said) as refused:
        swap(model(), attention=attention)(*inputs)
    assert "\n" not in str(refused.value)


def test_a_mask_that_a_mechanism_cannot_honour_is_named():
    model, x = own(), ids()
    with pytest.raises(WatchError, match=r"but not window\(2, 0\)"), swap(model, attention=window(2, 0)):
        swap(model, attention=Performer(4))(x)


def test_layers_that_have_no_attention_are_refused_with_those_that_have():
    with pytest.raises(WatchError, match=r"layers= names h.0.mlp, and the model has attention at transformer.h.0.attn"):
        swap(gpt2(), attention=window(1), layers="h.0.mlp")(input_ids=ids())
    with pytest.raises(WatchError, match="no module is called 'none'"):
        swap(gpt2(), attention=window(1), layers="none")
    with pytest.raises(WatchError, match="attention is int, but a mask"):
        swap(gpt2(), attention=3)
