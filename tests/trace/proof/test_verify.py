"""A proof that a wrong map cannot pass, also where the values hide it."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.map import AttentionMap, Computed
from regard.attention.mask import window
from regard.trace.audit import audit
from regard.trace.proof.verify import Proof, Status, prove, verify
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run
from regard.trace.watch import watch
from tests.trace.models import Attention, Stack, seeded


class Plain(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])


def drawn(*shape: int, seed: int = 0, scale: float = 2.0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale


VALUES: dict[str, Callable[[int], Tensor]] = {
    "constant": lambda heads: torch.ones(2, heads, 9, 5),
    "low-rank": lambda heads: drawn(2, heads, 9, 1, seed=3).expand(-1, -1, -1, 5).contiguous(),
    "any": lambda heads: drawn(2, heads, 9, 5, seed=4),
}


def watched(v: str, how: str, heads: int = 4, kv_heads: int = 4) -> Layer:
    q, k = drawn(2, heads, 9, 8), drawn(2, kv_heads, 9, 8, seed=1)
    given: dict[str, object] = {}
    if how == "causal":
        given["causal"] = True
    if how == "window":
        given["mask"] = window(2, 0).dense(9)[None, None]
    model = Plain()
    with watch(model) as trace:
        model(q, k, VALUES[v](kv_heads), **given)
    return trace[0]


def changed(layer: Layer, **how: object) -> Layer:
    source = layer.weights.source
    assert isinstance(source, Computed)
    made = object.__new__(Computed)
    made.__setstate__(source.__getstate__() | how)
    layer.weights = AttentionMap(made)
    return layer


@pytest.mark.parametrize("v", VALUES)
@pytest.mark.parametrize("how", ["open", "causal", "window"])
def test_what_was_watched_is_verified(v: str, how: str) -> None:
    proof = prove(watched(v, how))
    assert proof.status == "verified", proof
    assert None not in (proof.output, proof.kernel, proof.normaliser)


@pytest.mark.parametrize("v", VALUES)
def test_another_scale_is_caught(v: str) -> None:
    layer = watched(v, "open")
    assert prove(changed(layer, scale=1.02 / math.sqrt(8))).status == "unverified"


@pytest.mark.parametrize("v", VALUES)
def test_a_causal_mask_off_by_one_is_caught(v: str) -> None:
    for wrong in (window(9, 1), window(7, 0), None):
        assert prove(changed(watched(v, "causal"), mask=wrong)).status == "unverified"


@pytest.mark.parametrize("v", VALUES)
@pytest.mark.parametrize("wrong", [1, 3])
def test_a_window_off_by_one_is_caught(v: str, wrong: int) -> None:
    assert prove(changed(watched(v, "window"), mask=window(wrong, 0))).status == "unverified"


@pytest.mark.parametrize("v", VALUES)
def test_heads_in_another_order_are_caught(v: str) -> None:
    layer = watched(v, "open")
    assert layer.q is not None
    assert prove(changed(layer, q=layer.q[:, [1, 0, 2, 3]].clone())).status == "unverified"


@pytest.mark.parametrize("v", VALUES)
def test_grouped_heads_dealt_in_the_wrong_order_are_caught(v: str) -> None:
    layer = watched(v, "open", heads=4, kv_heads=2)
    assert layer.k is not None
    assert prove(layer).status == "verified"
    assert prove(changed(layer, k=layer.k.flip(1).clone())).status == "unverified"


@pytest.mark.parametrize("v", ["constant", "low-rank"])
def test_a_dropped_sink_is_caught(v: str) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GptOssConfig(
        vocab_size=50, hidden_size=32, intermediate_size=16, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, num_local_experts=2, num_experts_per_tok=1, sliding_window=4,
    )  # fmt: skip
    model = transformers.GptOssModel(config).eval()
    with torch.no_grad():
        for layer in model.layers:
            layer.self_attn.sinks.copy_(torch.tensor([1.0, -0.5, 0.3, 2.0]))
            if v == "constant":
                layer.self_attn.v_proj.weight.zero_()
                layer.self_attn.v_proj.bias.fill_(1.0)
        with watch(model) as trace:
            model(torch.randint(0, 50, (1, 7)))
    assert trace.verify(), trace.verify()
    assert trace[0].weights.kind == "computed"
    assert prove(changed(trace[0], sink=None)).status == "unverified"


def test_a_refusal_is_named_and_counts_as_not_verified() -> None:
    proofs = verify(Run(notes=["a remark"], refused={"encoder.0": "it has 3 softmaxes"}))
    assert not proofs
    assert str(proofs) == "encoder.0: refused: it has 3 softmaxes"


def test_a_proof_says_how_equal_the_map_is() -> None:
    proof = Proof("a", "computed", Status.VERIFIED, 1.68, None, 0.0, ulp=torch.finfo(torch.float32).eps)
    assert str(proof) == "a: verified: equals the model's output to 1.7 ulp (2e-7), its normaliser to 0 ulp"
    doubtful = Proof("a", "computed", Status.UNVERIFIED, 512.0, why="the output differs", ulp=2.0**-8)
    assert str(doubtful) == "a: unverified: the output differs (output off by 5.1e+02 ulp (2e+0))"


def test_what_decides_is_a_state_and_never_a_note() -> None:
    layer = watched("constant", "causal")
    layer.notes.append("unverified: somebody wrote this")
    assert prove(layer).status is Status.VERIFIED
    layer.doubts.append("its rows may stand elsewhere")
    assert prove(layer).why == "its rows may stand elsewhere"
    assert layer.sentences() == ["unverified: its rows may stand elsewhere", "unverified: somebody wrote this"]


def test_logits_of_two_thousand_are_still_verified() -> None:
    model = Plain()
    q, k, v = drawn(1, 2, 6, 8, scale=40.0), drawn(1, 2, 7, 8, seed=1, scale=40.0), drawn(1, 2, 7, 5, seed=2)
    with watch(model) as trace:
        model(q, k, v)
    assert float(trace[0].weights.scores[...].abs().max()) > 1000
    assert trace.verify(), trace.verify()


@pytest.mark.parametrize("way", ["sdpa", "by_hand"])
def test_models_in_float64_are_verified_in_float64(way: str) -> None:
    model = seeded(Stack(way=way)).double()
    with watch(model) as trace:
        model(torch.randn(2, 5, 24, dtype=torch.float64))
    assert trace.verify(), trace.verify()
    assert trace[0].weights.dtype == torch.float64


def test_a_softmax_that_is_changed_before_it_meets_the_values_shows_what_met_them() -> None:
    class Scaled(Attention):
        def by_hand(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
            return (self.weights(q, k, mask) * torch.tensor([0.5, 1.0, 2.0]).view(3, 1, 1)) @ v

    model = seeded(Scaled(way="by_hand"))
    with watch(model) as trace:
        model(torch.randn(2, 5, 24))
    assert torch.allclose(trace[0].weights.dense().sum(-1)[0, :, 0], torch.tensor([0.5, 1.0, 2.0]))
    assert "changed before" in trace[0].notes[0]
    assert trace.verify()


@pytest.mark.parametrize("way", ["sdpa", "by_hand", "by_bmm", "by_einsum"])
def test_the_audit_counts_what_torch_ran(way: str) -> None:
    model = seeded(Stack(depth=3, way=way))
    found = audit(model, torch.randn(1, 5, 24))
    assert found, found
    assert (found.ran, found.seen) == (3, 3)


def test_the_audit_says_when_something_is_not_seen() -> None:
    class Hides(Attention):
        def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
            torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*[x[:, None]] * 3)
            return super().forward(x)

    found = audit(seeded(Hides()), torch.randn(1, 5, 24))
    assert not found
    assert "1 not seen" in repr(found)


class Turned(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(x.mT, x.mT, x.mT)


def test_keys_whose_channels_lie_apart_are_verified_as_any_others() -> None:
    """As in attention across channels: torch's fused kernel takes for granted that they lie side by side."""
    model = Turned()
    torch.manual_seed(0)
    with torch.no_grad(), watch(model) as trace:
        model(torch.randn(2, 3, 8, 5))
    assert trace.verify(), trace.verify()
