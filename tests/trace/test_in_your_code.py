"""Attention as people write it, in training loops as they write them."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

import regard
from regard.errors import Stale
from regard.trace.doors.library import is_alone
from regard.trace.record.trace import Trace
from tests.trace.models import Stack, expected, seeded
from tests.trace.watched import MODES, watched


class CausalSelfAttention(nn.Module):
    """As nanoGPT writes it where there is no fused kernel: one projection, a buffer of ones, two dropouts."""

    def __init__(self, n_embd: int = 24, n_head: int = 3, block_size: int = 16, dropout: float = 0.25) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.attn_dropout, self.resid_dropout = nn.Dropout(dropout), nn.Dropout(dropout)
        self.n_head, self.n_embd = n_head, n_embd
        self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))  # type: ignore[index]
        att = F.softmax(att, dim=-1)
        att = self.attn_dropout(att)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_dropout(self.c_proj(y))


@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
def test_a_gpt_written_by_hand_shows_its_weights_before_dropout(train: bool) -> None:
    model: Any = seeded(nn.Sequential(CausalSelfAttention(), CausalSelfAttention())).train(train)
    x = torch.randn(2, 7, 24)
    trace = watched(model, x)
    q, k, _ = model[0].c_attn(x).double().unflatten(-1, (3, 3, 8)).permute(2, 0, 3, 1, 4)
    scores = (q @ k.mT / math.sqrt(8)).masked_fill(torch.ones(7, 7).triu(1) > 0, -math.inf)
    assert [layer.name for layer in trace.layers] == ["0", "1"]
    assert_close(trace[0].weights.dense().double(), scores.softmax(-1), atol=1e-6, rtol=0)
    assert trace.verify(), trace.verify()


@MODES
@pytest.mark.parametrize("way", ["sdpa", "by_hand", "by_bmm", "by_einsum"])
def test_every_way_of_writing_attention_is_seen_in_inference_mode_too(way: str, mode: Any) -> None:
    heard = not (way == "by_bmm" and mode is torch.inference_mode) or is_alone()
    model: Any = seeded(Stack(depth=2, way=way))
    x = torch.randn(2, 7, 24)
    with mode():
        trace = watched(model, x)
    if not heard:  # beside other threads it is not, and that is said; test_watch_leaves_nothing.py does it alone
        assert list(trace.runs[0].refused) == ["layers.0", "layers.1"]
        assert not trace.layers
        return
    assert [layer.name for layer in trace.layers] == ["layers.0", "layers.1"], trace.runs[0].notes
    assert_close(trace[0].weights.dense(), expected(model.layers[0], x).float())


class After(nn.Module):
    """Attention whose weights are changed on their way to the values."""

    num_heads = 3

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.met: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        weights = (x @ x.mT / math.sqrt(x.shape[-1])).softmax(-1)
        if self.how == "hidden afterwards":
            weights = weights * torch.ones(7, 7).tril()
        elif self.how == "normalised again":
            weights = weights * torch.ones(7, 7).tril()
            weights = weights / weights.sum(-1, keepdim=True)
        elif self.how == "a gate per head":
            weights = weights * torch.tensor([0.5, 1.0, 3.0]).view(-1, 1, 1)
        elif self.how == "dropped in place":
            weights = F.dropout(weights, 0.4, inplace=True)
        self.met = weights.detach().clone()
        return weights @ x


@pytest.mark.parametrize("how", ["hidden afterwards", "normalised again", "a gate per head", "dropped in place"])
def test_a_map_that_is_no_plain_softmax_says_so(how: str) -> None:
    model, x = After(how), torch.randn(2, 3, 7, 8)
    with torch.no_grad():
        trace = watched(model, x)
    assert model.met is not None
    assert_close(trace[0].weights.dense(), model.met)
    assert any("changed" in note for note in trace[0].notes)


# In somebody's training loop


@pytest.mark.parametrize("way", ["sdpa", "by_hand"])
def test_maps_of_every_third_step_of_a_training_loop_stay_what_they_were(way: str) -> None:
    def train(every: int | None) -> tuple[list[Tensor], list[Trace], list[Tensor]]:
        torch.manual_seed(0)
        model: Any = seeded(Stack(depth=2, way=way))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        traces, rights = [], []
        for step in range(7):
            x = torch.randn(2, 7, 24, generator=torch.Generator().manual_seed(step))
            if every is not None and step % every == 0:
                with torch.no_grad():
                    rights.append(expected(model.layers[0], x).float())
                with regard.watch(model, device="cpu", values=step == 0) as trace:
                    loss = model(x).square().mean()
                traces.append(trace)
            else:
                loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [p.detach().clone() for p in model.parameters()], traces, rights

    plain, _, _ = train(None)
    learned, traces, rights = train(3)
    assert all(torch.equal(a, b) for a, b in zip(plain, learned, strict=True))
    assert len(traces) == 3
    for trace, right in zip(traces, rights, strict=True):
        assert_close(trace[0].weights.dense(), right, atol=1e-5, rtol=1e-4)
        assert not trace[0].weights.dense().requires_grad
    assert traces[0].verify(), traces[0].verify()
    assert not torch.allclose(rights[0], rights[2], atol=1e-2)


def test_a_learned_query_is_stale_or_right_after_a_step_that_changes_it() -> None:
    class Latents(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query = nn.Parameter(torch.randn(2, 3, 5, 8))

        def forward(self, x: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(self.query, x, x)

    model, x = Latents(), torch.randn(2, 3, 7, 8)
    right = (model.query.detach() @ x.mT / math.sqrt(8)).softmax(-1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with regard.watch(model) as trace:
        model(x).square().sum().backward()
    assert_close(trace[0].weights.dense(), right)
    optimizer.step()
    try:
        assert_close(trace[0].weights.dense(), right)
    except Stale:
        assert trace.verify()[0].status == "unverified"


@pytest.mark.parametrize("kept", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_what_is_kept_in_another_dtype_is_the_map_of_the_rounded_numbers(kept: torch.dtype) -> None:
    model: Any = seeded(Stack(depth=2))
    x = torch.randn(2, 7, 24)
    with torch.no_grad():
        plain = model(x)
        with regard.watch(model, dtype=kept) as trace:
            assert torch.equal(model(x), plain)
    layer = trace[0]
    assert layer.q is not None
    assert layer.k is not None
    assert layer.v is not None
    assert {layer.q.dtype, layer.k.dtype, layer.v.dtype} == {kept}
    rounded = (layer.q.double() @ layer.k.double().mT / math.sqrt(8)).softmax(-1)
    assert_close(layer.weights.dense().double(), rounded, atol=1e-6, rtol=0)
    near = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float64: 1e-6}[kept]
    assert_close(layer.weights.dense().float(), expected(model.layers[0], x).float(), atol=near, rtol=0)
    assert bool(trace.verify()) == (kept == torch.float64)


# Compiled models


@pytest.mark.compiled
def test_a_compiled_model_is_watched_uncompiled_and_stays_compiled(count: Any) -> None:
    model: Any = seeded(Stack(depth=2))
    x = torch.randn(2, 7, 24)
    compiled: Any = torch.compile(model, backend=count)
    plain = compiled(x)
    graphs = count.graphs
    with regard.watch(compiled) as trace:
        found = compiled(x)
    assert torch.equal(plain, found)
    assert_close(trace[0].weights.dense(), expected(model.layers[0], x).float())
    assert trace.verify(), trace.verify()
    assert torch.equal(compiled(x), plain)
    assert count.graphs == graphs


@pytest.mark.compiled
def test_a_model_of_transformers_compiled_in_place_is_watched() -> None:
    transformers = pytest.importorskip("transformers")
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    torch.manual_seed(0)
    model = transformers.LlamaModel(transformers.LlamaConfig(vocab_size=61, num_key_value_heads=2, **sizes)).eval()
    ids = torch.randint(61, (2, 7))
    model.compile(backend="eager")
    with torch.no_grad():
        plain = model(ids).last_hidden_state
        with regard.watch(model) as trace:
            assert torch.equal(model(ids).last_hidden_state, plain)
    assert [layer.weights.shape for layer in trace.layers] == [(2, 4, 7, 7)] * 2
    assert trace.verify(), trace.verify()


@pytest.mark.compiled
def test_the_model_inside_a_compiled_one_is_watched() -> None:
    model: Any = seeded(Stack(depth=2))
    x = torch.randn(2, 7, 24)
    compiled: Any = torch.compile(model, backend="eager")
    plain = compiled(x)
    with regard.watch(model) as trace:
        assert torch.equal(compiled(x), plain)
    assert_close(trace[0].weights.dense(), expected(model.layers[0], x).float())
    assert trace.verify(), trace.verify()
