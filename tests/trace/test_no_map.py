"""What looks like a map and is none: a softmax over features, weights times weights, a mixer of residual streams."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

import regard
from regard.errors import WatchError
from tests.trace.watched import watched

B, H, N, D, E = 3, 2, 7, 5, 4


class LinearAttention(nn.Module):
    """Efficient attention (Shen et al. 2018): keys are summed over before queries come; no q × k matrix is formed."""

    num_heads = H

    def __init__(self, how: str, d: int = D, first: str = "context") -> None:
        super().__init__()
        self.how, self.first = how, first
        self.q, self.k, self.v = nn.Linear(6, H * d), nn.Linear(6, H * d), nn.Linear(6, H * E)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part(x).unflatten(-1, (H, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        if self.first == "queries":
            q = q.softmax(-1)
        k = k.softmax(-2)
        if self.how == "einsum":
            context = torch.einsum("bhnd,bhne->bhde", k, v)
        elif self.how == "bmm":
            context = torch.bmm(k.flatten(0, 1).mT, v.flatten(0, 1)).unflatten(0, k.shape[:2])
        else:
            context = k.mT @ v
        if self.first == "context":
            q = q.softmax(-1)
        if self.how == "einsum":
            return torch.einsum("bhnd,bhde->bhne", q, context)
        if self.how == "bmm":
            return torch.bmm(q.flatten(0, 1), context.flatten(0, 1))
        return q @ context


@pytest.mark.parametrize("how", ["einsum", "matmul", "bmm"])
@pytest.mark.parametrize("d", [D, N], ids=["fewer features than positions", "as many"])
@pytest.mark.parametrize("first", ["context", "queries"])
def test_a_softmax_over_features_is_no_map(how: str, d: int, first: str) -> None:
    model = LinearAttention(how, d, first).eval()
    with torch.no_grad():
        trace = watched(model, torch.randn(B, N, 6))
    assert not trace.layers, trace.layers
    (why,) = trace.runs[0].refused.values()
    assert "features" in why
    assert not trace.verify()


class PlainKeys(nn.Module):
    """Queries get a softmax over their features; keys and values are summed as they are, or scaled."""

    num_heads = H

    def __init__(self, d: int, scale: float, first: str) -> None:
        super().__init__()
        self.d, self.scale, self.first = d, scale, first
        self.q, self.k, self.v = (nn.Linear(6, H * d) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part(x).unflatten(-1, (H, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        if self.first == "queries":
            return q.softmax(-1) @ (k.mT @ v * self.scale)
        if self.first == "normalised":
            k = k.exp() / k.exp().sum(-2, keepdim=True)
        context = k.mT @ v * self.scale
        return q.softmax(-1) @ context


@pytest.mark.parametrize("first", ["context", "queries", "normalised"])
@pytest.mark.parametrize("scale", [1.0, 0.3])
@pytest.mark.parametrize("d", [D, N], ids=["fewer features than positions", "as many"])
def test_a_softmax_that_meets_a_sum_over_positions_is_no_map(d: int, scale: float, first: str) -> None:
    with torch.no_grad():
        trace = watched(PlainKeys(d, scale, first), torch.randn(B, N, 6))
    assert not trace.layers, trace.layers
    assert "features" in trace.runs[0].refused["the model"]


class WideValues(nn.Module):
    """Values with as many channels as there are queries have the sizes of the scores, transposed."""

    num_heads = H

    def __init__(self, queries: int) -> None:
        super().__init__()
        self.queries, self.qk, self.v = queries, nn.Linear(6, 2 * H * D), nn.Linear(6, H * queries)

    def forward(self, x: Tensor) -> Tensor:
        q, k = self.qk(x).unflatten(-1, (2, H, D)).permute(2, 0, 3, 1, 4)
        v = self.v(x).unflatten(-1, (H, -1)).transpose(1, 2)
        return (q[:, :, : self.queries] @ k.mT).softmax(-1) @ v


def test_values_of_the_sizes_of_the_scores_are_values() -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        trace = watched(WideValues(N - 2), torch.randn(B, N, 6))
    assert [layer.weights.shape for layer in trace.layers] == [(B, H, N - 2, N)]
    assert trace.verify(), trace.verify()


class Sharp(nn.Module):
    """Attention of one text without a batch, in which each query looks at one key alone."""

    def forward(self, x: Tensor) -> Tensor:
        return (1e4 * x @ x.T).softmax(-1) @ x


def test_weights_of_one_text_that_choose_one_key_each_are_heard() -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        trace = watched(Sharp(), torch.randn(N, D))
    assert [layer.weights.shape for layer in trace.layers] == [(1, 1, N, N)]


class Interrupted(nn.Module):
    """Another matrix of the sizes of the weights meets values between the softmax and its own."""

    num_heads = H

    def __init__(self, other: str) -> None:
        super().__init__()
        self.qkv, self.other, self.table = nn.Linear(6, 3 * H * D), other, nn.Parameter(torch.rand(B, H, N, N))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, H, D)).permute(2, 0, 3, 1, 4)
        weights = (q @ k.mT).softmax(-1)
        mixed = (self.table if self.other == "learned" else x[:, None] @ x[:, None].mT + self.table) @ v
        return mixed + weights @ v


@pytest.mark.parametrize("other", ["learned", "computed"])
def test_a_matrix_that_is_no_softmax_is_not_taken_for_one_by_its_sizes(other: str) -> None:
    torch.manual_seed(0)
    model, x = Interrupted(other), torch.randn(B, N, 6)
    with torch.no_grad():
        trace = watched(model, x)
        q, k, _ = model.qkv(x).unflatten(-1, (3, H, D)).permute(2, 0, 3, 1, 4)
        wanted = (q @ k.mT).softmax(-1)
    assert_close(trace[0].weights.dense(), wanted)
    assert bool(trace.verify()) == (other == "learned"), trace.verify()


class Factorised(nn.Module):
    """CoaT: only the keys get a softmax, over positions; each row of what meets the values is a feature."""

    num_heads = H

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(6, H * D), nn.Linear(6, H * D), nn.Linear(6, H * D)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part(x).unflatten(-1, (H, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        return (q @ (k.softmax(2).transpose(-1, -2) @ v)).transpose(1, 2).flatten(2)[..., :6]


def test_keys_that_are_summed_over_by_a_softmax_make_no_map_in_any_of_several_layers() -> None:
    """The product of one layer has the sizes of the keys of the next, and is nothing that these came of."""
    model = nn.Sequential(Factorised(), Factorised(), Factorised()).eval()
    with (
        torch.no_grad(),
        pytest.raises(WatchError, match=r"map it can show: 0 .* softmax over positions .* 2 more modules"),
    ):
        watched(model, torch.randn(B, N, 6))
    heard = nn.Sequential(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), *model).eval()
    with torch.no_grad():
        trace = watched(heard, torch.randn(B, N, 6))
    assert [layer.name for layer in trace.layers] == ["0.self_attn"]
    assert {one.name for one in trace.missed} == {"1", "2", "3"}
    assert not trace.verify()


class Squared(nn.Module):
    """Two steps of attention at once: (a @ a) @ v."""

    num_heads = H

    def __init__(self) -> None:
        super().__init__()
        self.met = torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        a = (3 * x @ x.mT).softmax(-1)
        twice = a @ a
        self.met = twice.detach().clone()
        return twice @ x


def test_weights_times_weights_are_what_met_the_values() -> None:
    model = Squared()
    with torch.no_grad():
        trace = watched(model, torch.randn(B, H, N, D))
    assert_close(trace[0].weights.dense(), model.met)
    assert any("changed" in note for note in trace[0].notes)
    assert trace.verify(), trace.verify()


class Streams(nn.Module):
    """Hyper-connections, as DeepSeek-V4 has them in transformers: a softmax over a few parallel residual streams."""

    def __init__(self, streams: int = 4) -> None:
        super().__init__()
        self.streams, self.mix = streams, nn.Linear(streams * 6, streams * streams)

    def forward(self, hidden: Tensor) -> Tensor:
        comb = self.mix(hidden.flatten(2)).unflatten(-1, (self.streams, self.streams)).softmax(-1)
        comb = comb / comb.sum(-2, keepdim=True)
        return torch.matmul(comb.transpose(-1, -2), hidden)  # b n s m


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mixer, self.attention = Streams(), nn.MultiheadAttention(6, H, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.mixer(x[:, :, None] * torch.arange(1.0, 5.0)[:, None])
        return self.attention(*(hidden.sum(2),) * 3, need_weights=False)[0]


def test_a_mixer_of_residual_streams_is_no_attention_layer() -> None:
    model: Any = Mixed().eval()
    with torch.no_grad():
        trace = watched(model, torch.randn(B, N, 6))
    assert [layer.name for layer in trace.layers] == ["attention"]
    assert trace.verify(), trace.verify()


class IndexedAttention(nn.Module):
    """DeepSeek-V3.2's indexer: scores of a few heads, ReLU, and a weighted sum of the heads, which only picks keys."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.w = nn.Linear(6, 2 * D), nn.Linear(6, D), nn.Linear(6, 2)
        self.attention = nn.MultiheadAttention(6, H, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        scores = (self.q(x).unflatten(-1, (2, D)) @ self.k(x).mT[:, None]).relu()  # b q h k
        index = (self.w(x)[:, :, None] @ scores).squeeze(2)  # b q k
        hidden = index < index.topk(3).values[..., -1:]
        return self.attention(x, x, x, need_weights=False, attn_mask=hidden.repeat_interleave(H, 0))[0]


def test_an_indexer_that_picks_keys_is_no_attention() -> None:
    with torch.no_grad():
        trace = watched(IndexedAttention().eval(), torch.randn(B, N, 6))
    assert [layer.name for layer in trace.layers] == ["attention"]
    assert trace.verify(), trace.verify()


def test_an_edit_of_what_is_no_map_is_refused() -> None:
    model = LinearAttention("matmul").eval()
    with torch.no_grad(), pytest.raises(WatchError, match="features"), regard.edit(model) as e:  # noqa: PT012
        e.mute(heads=0)
        model(torch.randn(B, N, 6))


def test_deepseek_v4_shows_its_attention_and_not_its_streams() -> None:
    transformers = pytest.importorskip("transformers")
    if not hasattr(transformers, "DeepseekV4Config"):
        pytest.skip("needs a transformers that has DeepSeek-V4")
    torch.manual_seed(0)
    sizes = {"vocab_size": 61, "hidden_size": 32, "moe_intermediate_size": 16, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "head_dim": 16, "q_lora_rank": 16, "o_groups": 2, "o_lora_rank": 8}
    experts = {"n_routed_experts": 4, "num_experts_per_tok": 2, "max_position_embeddings": 64}
    how = {"index_n_heads": 2, "index_head_dim": 8, "index_topk": 4, "layer_types": ["sliding_attention"] * 2}
    config = transformers.DeepseekV4Config(**sizes, **heads, **experts, **how)
    model, ids = transformers.DeepseekV4Model(config).eval(), torch.randint(2, 60, (3, 9))
    with torch.no_grad():
        trace = watched(model, ids)
    assert trace.layers
    assert trace.verify(), trace.verify()
    assert not [layer.name for layer in trace.layers if "hc" in layer.name or layer.weights.shape[-2:] == (4, 4)]


class AcrossChannels(nn.Module):
    """XCiT's cross-covariance attention: queries and keys are channels."""

    num_heads = H

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(6, 3 * H * D)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, H, D)).permute(2, 0, 3, 4, 1)  # b h d n
        weights = (q @ k.mT).softmax(-1)
        return (weights @ v).flatten(1, 2).mT


def test_attention_across_channels_says_that_its_rows_are_no_positions() -> None:
    with torch.no_grad():
        trace = watched(AcrossChannels().eval(), torch.randn(B, N, 6))
    assert trace[0].weights.shape == (B, H, D, D)
    assert trace[0].states == ["channels"]
    assert any("not positions" in note for note in trace[0].notes)
