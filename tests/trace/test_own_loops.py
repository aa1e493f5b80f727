"""Decoding loops of one's own: caches that a module holds, or that the loop holds, still make one run of stitched rows.

The oracle is one causal pass over the whole text by plain arithmetic, in float64.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import regard

B, V, W, H, G = 3, 29, 24, 4, 2


def text(n: int, seed: int = 1) -> Tensor:
    return torch.randint(1, V, (B, n), generator=torch.Generator().manual_seed(seed))


class HeldCache(nn.Module):
    """As Meta's llama: keys and values are written into tensors of the module, and grouped heads are repeated."""

    def __init__(self, by_hand: bool, room: int = 20) -> None:
        super().__init__()
        self.by_hand = by_hand
        self.wq, self.wk, self.wv = (nn.Linear(W, n * 6, bias=False) for n in (H, G, G))
        self.wo = nn.Linear(H * 6, W)
        self.cache_k, self.cache_v = torch.zeros(2, B, room, G, 6, dtype=torch.float64)

    def forward(self, x: Tensor, start: int) -> Tensor:
        b, n, _ = x.shape
        q, k, v = (layer(x).unflatten(-1, (-1, 6)) for layer in (self.wq, self.wk, self.wv))
        self.cache_k[:b, start : start + n], self.cache_v[:b, start : start + n] = k, v
        k, v = self.cache_k[:b, : start + n], self.cache_v[:b, : start + n]
        q, k, v = (y.repeat_interleave(H // y.shape[2], 2).transpose(1, 2) for y in (q, k, v))
        mask = torch.ones(n, start + n, dtype=torch.bool).tril(start) if n > 1 else None
        if self.by_hand:
            scores = q @ k.mT / 6**0.5
            scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
            mix = scores.softmax(-1) @ v
        else:
            mix = nn.functional.scaled_dot_product_attention(q, k, v, mask)
        return self.wo(mix.transpose(1, 2).flatten(2))


class KeptInputs(nn.Module):
    """torch's own attention, asked by the new rows alone, over inputs that the module remembers."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(W, H, batch_first=True)
        self.past: Tensor | None = None

    def forward(self, x: Tensor, start: int) -> Tensor:
        past = x if start == 0 else torch.cat([self.past, x], 1)
        self.past, n = past, x.shape[1]
        hidden = torch.ones(n, start + n, dtype=torch.bool).triu(start + 1)
        return self.attention(x, past, past, attn_mask=hidden, need_weights=False)[0]


class Writer(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(V, W), nn.Embedding(40, W)
        made = {"held": lambda: HeldCache(False), "by hand": lambda: HeldCache(True), "inputs": KeptInputs}[kind]
        self.layers = nn.ModuleList([made(), made()])
        self.norms = nn.ModuleList([nn.LayerNorm(W), nn.LayerNorm(W)])

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(start, start + ids.shape[1]))
        for layer, norm in zip(self.layers, self.norms):
            x = x + layer(norm(x), start)
        return x @ self.words.weight.mT

    def write(self, ids: Tensor, new: int) -> Tensor:
        logits = self(ids)
        for _ in range(new):
            ids = torch.cat([ids, logits[:, -1:].argmax(-1)], 1)
            logits = self(ids[:, -1:], ids.shape[1] - 1)
        return ids


def writer(kind: str) -> Any:
    torch.manual_seed(0)
    model = Writer(kind).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(1.5)
    return model


def maps(model: Writer, ids: Tensor) -> list[Tensor]:
    """The causal maps of one pass over the whole text, from the weights of the model."""
    n, found = ids.shape[1], []
    x = model.words.weight[ids] + model.places.weight[:n]
    blocked = torch.ones(n, n, dtype=torch.bool).triu(1)
    for layer, norm in zip(model.layers, model.norms):
        y = norm(x)
        if isinstance(layer, KeptInputs):
            inside = layer.attention
            parts = (y @ inside.in_proj_weight.mT + inside.in_proj_bias).unflatten(-1, (3, H, 6)).unbind(2)
            out = inside.out_proj
        else:
            parts = tuple(made(y).unflatten(-1, (-1, 6)) for made in (layer.wq, layer.wk, layer.wv))
            out = layer.wo
        q, k, v = (part.repeat_interleave(H // part.shape[2], 2).transpose(1, 2) for part in parts)
        weights = (q @ k.mT / 6**0.5).masked_fill(blocked, -torch.inf).softmax(-1)
        found.append(weights)
        x = x + out((weights @ v).transpose(1, 2).flatten(2))
    return found


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("kind", ["held", "by hand", "inputs"])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_loop_of_ones_own_is_one_run(kind: str, inside: bool, mode: Any) -> None:
    with mode():
        model, ids = writer(kind), text(5)
        plain = model.write(ids, 4)
        with regard.watch(model) as trace:
            written = model.write(ids, 4) if inside else loop(model, ids, 4)
        assert torch.equal(plain, written)
        right = maps(model, written)
    if kind == "by hand":  # weights that are stored as they were seen are shown call by call
        rows = [[run.layers[layer].weights.dense() for run in trace.runs] for layer in range(2)]
        for seen, whole in zip(rows, right):
            at = 0
            for part in seen:
                n, k = part.shape[-2:]
                assert (part - whole[:, :, at : at + n, :k]).abs().max() < 1e-12
                at += n
        return
    assert len(trace.runs) == 1
    assert [layer.name for layer in trace.layers] == [f"layers.{n}" + ".attention" * (kind == "inputs") for n in (0, 1)]
    for layer, whole in zip(trace.layers, right, strict=True):
        assert layer.kind == "self"
        assert layer.weights.shape == whole.shape
        assert (layer.weights.dense() - whole).abs().max() < 1e-12
        assert layer.queries is not None
        assert layer.keys is not None
        assert [tokens.ids for tokens in layer.queries] == [tuple(line) for line in written.tolist()]
        assert layer.keys == layer.queries
    assert trace.verify(), trace.verify()


def loop(model: nn.Module, ids: Tensor, new: int) -> Tensor:
    """The same from outside: each step is a call of the model."""
    logits = model(ids)
    for _ in range(new):
        ids = torch.cat([ids, logits[:, -1:].argmax(-1)], 1)
        logits = model(ids[:, -1:], ids.shape[1] - 1)
    return ids


class Whole(nn.Module):
    """The loop stands inside of one call."""

    def __init__(self, inner: Writer) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, ids: Tensor) -> Tensor:
        return self.inner.write(ids, 4)


@pytest.mark.parametrize("kind", ["held", "inputs"])
def test_a_loop_inside_of_one_call_is_one_map_for_each_layer(kind: str) -> None:
    with torch.no_grad():
        model = Whole(writer(kind))
        with regard.watch(model) as trace:
            written = model(text(5))
        right = maps(model.inner, written)
    assert len(trace.layers) == 2
    for layer, whole in zip(trace.layers, right, strict=True):
        assert (layer.kind, layer.weights.shape) == ("self", whole.shape)
        assert (layer.weights.dense() - whole).abs().max() < 1e-12
        assert [tokens.ids for tokens in layer.keys] == [tuple(line) for line in written.tolist()]
    assert trace.verify(), trace.verify()


@pytest.mark.parametrize("kind", ["held", "inputs"])
def test_another_text_is_another_run(kind: str) -> None:
    model = writer(kind)
    with torch.no_grad(), regard.watch(model) as trace:
        first, second = loop(model, text(5), 3), loop(model, text(6, 2), 2)
        alike = loop(model, text(6, 2)[:, :4], 1)  # begins as the one before
    assert len(trace.runs) == 3
    for run, ids in zip(trace.runs, (first, second, alike)):
        for layer in run.layers:
            assert [tokens.ids for tokens in layer.queries] == [tuple(line) for line in ids.tolist()]


class WholeBuffer(nn.Module):
    """Hands all of its cache to torch's kernel, and writes to it in the next step."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.buffer = nn.Embedding(40, 8), torch.zeros(2, 1, 9, 8)

    def forward(self, tokens: Tensor, at: int) -> Tensor:
        x = self.words(tokens)[:, None]
        self.buffer[:, :, at : at + x.shape[2]] = x
        seen = torch.arange(9) <= torch.arange(at, at + x.shape[2])[:, None]
        return nn.functional.scaled_dot_product_attention(x, self.buffer, self.buffer, attn_mask=seen)


def test_a_cache_that_was_written_to_later_leaves_the_trace_readable() -> None:
    model, tokens = WholeBuffer(), torch.arange(2 * 6).view(2, 6)
    with torch.no_grad(), regard.watch(model) as trace:
        model(tokens[:, :4], 0)
        model(tokens[:, 4:5], 4)
        model(tokens[:, 5:], 5)
    assert trace.runs
    assert trace.layers
    for run in trace.runs:
        layer = run.layers[0]
        try:
            weights = layer.weights.dense()
        except regard.errors.Stale:
            continue
        rows = layer.q.shape[2]
        scores = layer.q @ model.buffer.mT / 8**0.5  # only the last call holds what is in the buffer now
        blind = torch.arange(9) > torch.arange(6 - rows, 6)[:, None]
        torch.testing.assert_close(weights, scores.masked_fill(blind, -torch.inf).softmax(-1))


class NewestFirst(nn.Module):
    """Holds keys, the newest in front: nothing outside says which of them is the row's own."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.held = nn.Embedding(40, 8), torch.zeros(2, 1, 0, 8)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)[:, None]
        self.held = torch.cat([x, self.held], 2)
        return nn.functional.scaled_dot_product_attention(x, self.held, self.held)


def test_a_key_is_not_called_the_row_itself_because_it_is_the_last() -> None:
    model, tokens = NewestFirst(), torch.arange(2 * 3).view(2, 3)
    with torch.no_grad(), regard.watch(model) as trace:
        for at in range(3):
            model(tokens[:, at : at + 1])
    assert trace[0].queries[0].ids == (2,)
    assert trace[0].keys is None
