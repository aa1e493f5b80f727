"""A trace from weights that somebody already has."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regard.errors import Stale, TraceError
from regard.tokens import Tokens
from regard.trace.record.weights import from_weights


def weights(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype).softmax(-1)


@pytest.mark.parametrize(
    "make", [lambda w: w, lambda w: w.numpy(), lambda w: w.tolist()], ids=["tensor", "array", "lists"]
)
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (3, 5, 7), (5, 7)], ids=str)
def test_weights_of_any_form_stay_what_they_were(make, shape):
    given = weights(*shape)
    (layer,) = from_weights(make(given)).layers
    assert layer.weights.shape == ((1, 1)[: 4 - len(shape)] + shape)
    assert_close(layer.weights.dense().reshape(shape).double(), given)
    assert (layer.name, layer.kind, layer.weights.kind, layer.queries) == ("layer.0", "self", "stored", None)


def test_a_tuple_has_a_layer_each_and_none_is_left_out():
    trace = from_weights((weights(1, 2, 3, 3), None, weights(1, 4, 3, 3)), kind="unknown")
    assert [(layer.name, layer.heads, layer.kind) for layer in trace] == [
        ("layer.0", 2, "unknown"),
        ("layer.2", 4, "unknown"),
    ]
    assert len(from_weights(weights(6, 1, 2, 3, 3))) == 6


def test_what_a_model_of_transformers_returned():
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=7, vocab_size=11)
    model = BertModel._from_config(config, attn_implementation="eager").eval()
    outputs = model(torch.tensor([[1, 2, 3, 4, 5]]), output_attentions=True)
    for trace in (from_weights(outputs), from_weights(outputs.attentions), from_weights(dict(outputs))):
        assert [layer.weights.shape for layer in trace] == [(1, 3, 5, 5)] * 2
        assert_close(trace[1].weights.dense(), outputs.attentions[1].detach())
        assert not trace[1].weights.dense().requires_grad


def test_an_encoder_and_a_decoder_have_three_stacks_with_their_own_tokens():
    from transformers import BartConfig, BartModel

    sizes = {"d_model": 12, "encoder_layers": 1, "decoder_layers": 2, "vocab_size": 17, "pad_token_id": 1}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 3, "encoder_ffn_dim": 5, "decoder_ffn_dim": 5}
    model = BartModel._from_config(BartConfig(**sizes, **heads), attn_implementation="eager").eval()
    outputs = model(torch.tensor([[0, 5, 6, 2]]), decoder_input_ids=torch.tensor([[2, 7, 8]]), output_attentions=True)
    source, target = ["<s>", "the", "cat", "</s>"], ["</s>", "die", "Katze"]
    trace = from_weights(outputs, target, keys=source)
    named = [(layer.name, layer.kind, layer.queries[0].shown[1], layer.keys[0].shown[1]) for layer in trace]
    assert named == [
        ("encoder.layer.0", "self", "the", "the"),
        ("decoder.layer.0", "self", "die", "die"),
        ("decoder.layer.1", "self", "die", "die"),
        ("cross.layer.0", "cross", "die", "the"),
        ("cross.layer.1", "cross", "die", "the"),
    ]
    assert_close(trace["cross.layer.1"].weights.dense(), outputs.cross_attentions[1].detach())


def test_a_decoder_with_cross_attention_keeps_its_own_tokens_apart():
    given = {"attentions": (weights(1, 2, 3, 3),), "cross_attentions": (weights(1, 2, 3, 5),), "encoder_attentions": ()}
    trace = from_weights(given, list("abc"), keys=list("vwxyz"))
    assert [(layer.name, len(layer.keys[0])) for layer in trace] == [("layer.0", 3), ("cross.layer.0", 5)]


def test_a_mapping_of_stacks():
    trace = from_weights({"cross": [weights(2, 3, 5)], "encoder": weights(2, 5, 5)})
    assert [layer.name for layer in trace] == ["encoder.layer.0", "cross.layer.0"]


class Speller:
    def convert_ids_to_tokens(self, ids):
        return [f"t{i}" for i in ids]


@pytest.mark.parametrize(
    "tokens",
    [
        ["t4", "t0", "t9"],
        ("t4", "t0", "t9"),
        Tokens(("t4", "t0", "t9")),
        [["t4", "t0", "t9"], ["t4", "t0", "t9"]],
        [Tokens(("t4", "t0", "t9")), ["t4", "t0", "t9"]],
        (Speller(), [4, 0, 9]),
        (Speller(), torch.tensor([[4, 0, 9], [4, 0, 9]])),
    ],
    ids=["strings", "tuple", "Tokens", "lists", "Tokens and list", "ids", "batch of ids"],
)
def test_tokens_of_any_form(tokens):
    layer = from_weights(weights(2, 4, 3, 3), tokens).layers[0]
    assert [one.shown for one in layer.queries] == [one.shown for one in layer.keys] == [("t4", "t0", "t9")] * 2
    assert layer.head(1, batch=1).tokens == (("t4", "t0", "t9"), ("t4", "t0", "t9"))


def test_keys_of_their_own():
    layer = from_weights(weights(2, 3, 4), list("abc"), keys=list("wxyz"), kind="cross").layers[0]
    assert (layer.kind, layer.head(0).tokens) == ("cross", (tuple("abc"), tuple("wxyz")))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (torch.tensor([[2.0, -1.0]]), "has values from -1 and a row that adds up to 1: these are scores, not weights"),
        (torch.tensor([[0.9, 0.9]]), "a row that adds up to 1.8: these are scores, not weights"),
        (torch.tensor([[torch.nan, 0.5]]), "holds NaN"),
        (torch.zeros(0, 3), r"has shape \(0, 3\)"),
        (torch.zeros(2), r"has shape \(2,\) of torch.float32; give weights as \(b, h, q, k\)"),
        (torch.zeros(2, 2, dtype=torch.complex64), "of torch.complex64"),
        ("weights", "is no tensor, array or lists of numbers, but str"),
        ([[1.0], [0.5, 0.5]], "is no tensor, array or lists of numbers, but list"),
        ((), "no weights came; ask the model for them with output_attentions=True, or watch it"),
        ({"attention": 3}, "there are no weights under 'attention'; give maps by the names of their layers"),
        ({"logits": torch.zeros(1, 3, 9)}, "there are no weights under 'logits'; .* output_attentions=True"),
        ({"a": {"b": torch.eye(2)}}, "there are no weights under 'a'"),
        ({"attentions": None}, "call the model with output_attentions=True"),
        ([None, None], "no weights came"),
        (((torch.eye(2),), (torch.eye(2),)), "a tuple for each step, as generate"),
    ],
    ids=lambda x: x if isinstance(x, str) else type(x).__name__,
)
def test_what_is_no_weights_is_refused(wrong, said):
    with pytest.raises(TraceError, match=said):
        from_weights(wrong)


def test_half_precision_has_its_own_tolerance():
    rounded = torch.full((1, 1, 3000), 1 / 3000).bfloat16()
    assert rounded.float().sum() != 1
    from_weights(rounded)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["a", "b"], r"2 tokens came for the queries of layer\.0, which are 3; give one token for each"),
        ([["a", "b", "c"]] * 4, "tokens came for 4 batch entries, but there are 2"),
        ("abc", "tokens came as one string, 'abc'"),
        ({"a": 1}, "tokens came as dict; give a list of strings"),
        (7, "tokens came as int"),
    ],
    ids=["too few", "too many entries", "a string", "a mapping", "a number"],
)
def test_tokens_that_do_not_fit_are_refused(tokens, said):
    with pytest.raises(TraceError, match=said):
        from_weights(weights(2, 1, 3, 3), tokens)


def test_an_unknown_kind_is_refused():
    with pytest.raises(TraceError, match="kind is 'sideways'; give one of self, cross, unknown"):
        from_weights(torch.eye(3), kind="sideways")


def test_a_tensor_is_not_copied_and_an_array_is():
    tensor, array = torch.eye(3), np.eye(4)
    of_tensor, of_array = from_weights(tensor)[0].weights, from_weights(array)[0].weights
    tensor[0, 0], array[0, 0] = 0.5, 0.5
    with pytest.raises(Stale):
        of_tensor.dense()
    assert of_array.dense()[0, 0, 0, 0] == 1


class OnlyArray:
    """What a library gives that knows NumPy, and has nothing else in common with it."""

    def __init__(self, given):
        self.given = given

    def __array__(self, dtype=None, copy=None):
        return np.array(self.given, dtype=dtype)


class OnlyDlpack:
    """The same for one that knows only the exchange of tensors."""

    def __init__(self, given):
        self.given = given

    def __dlpack__(self, **more):
        return self.given.__dlpack__(**more)

    def __dlpack_device__(self):
        return self.given.__dlpack_device__()


FORMS = {
    "tensors": lambda w: w,
    "arrays": lambda w: w.numpy(),
    "by __array__": lambda w: OnlyArray(w.numpy()),
    "by dlpack": OnlyDlpack,
    "heads one by one": lambda w: [OnlyArray(head.numpy()) for head in w[0]],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("of", [list, tuple])
def test_a_list_of_maps_is_layers_whatever_they_are(form, of):
    given = [weights(1, 2, 5, 7), weights(1, 2, 5, 7), weights(1, 2, 5, 7)]
    trace = from_weights(of(form(one) for one in given))
    assert [layer.name for layer in trace] == ["layer.0", "layer.1", "layer.2"]
    for layer, one in zip(trace, given, strict=True):
        assert_close(layer.weights.dense().double(), one)


def test_five_nested_lists_are_layers_too():
    given = weights(3, 1, 2, 4, 5)
    trace = from_weights(given.tolist())
    assert [layer.weights.shape for layer in trace] == [(1, 2, 4, 5)] * 3
    assert_close(trace[2].weights.dense().double(), given[2])


def test_a_mapping_names_the_layers():
    first, second = weights(2, 3, 5), weights(1, 4, 3, 5)
    trace = from_weights(
        {"block.7": first, "head": [second, second], 3: second.numpy()}, list("abc"), keys=list("vwxyz")
    )
    assert [layer.name for layer in trace] == ["block.7", "head.0", "head.1", "3"]
    assert_close(trace["block.7"].weights.dense()[0], first)
    assert_close(trace["head.1"].weights.dense(), second)
    assert trace["3"].queries[0].shown == ("a", "b", "c")


def test_brain_floats_of_numpy_are_read_bit_for_bit():
    kinds = pytest.importorskip("ml_dtypes")
    given = weights(1, 2, 5, 7).bfloat16()
    array = given.float().numpy().astype(kinds.bfloat16)
    for one in (array, np.asfortranarray(array), OnlyArray(array)):
        (layer,) = from_weights(one).layers
        assert layer.weights.source.kept.dtype == torch.bfloat16
        assert layer.weights.source.kept.equal(given)
    assert [layer.weights.shape for layer in from_weights([array, array[:, :1]])] == [(1, 2, 5, 7), (1, 1, 5, 7)]
    eighth = from_weights(np.array([[0.5, 0.5], [1, 0]]).astype(kinds.float8_e4m3fn))[0].weights
    assert eighth.dense()[0, 0].tolist() == [[0.5, 0.5], [1, 0]]


def test_arrays_of_jax_are_read():
    jax = pytest.importorskip("jax", reason="needs JAX: pip install jax")
    given = weights(1, 2, 5, 7, dtype=torch.float32)
    for dtype in (jax.numpy.float32, jax.numpy.bfloat16):
        (layer,) = from_weights(jax.numpy.asarray(given.numpy(), dtype=dtype)).layers
        assert_close(layer.weights.dense(), given, atol=2**-8, rtol=2**-8)
