"""Layers of every kind, each with all its weights in float64, made by nothing of ours but the mask in words."""

import json
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from safetensors.numpy import load
from torch import Tensor

import regard
from regard.attention.map import AttentionMap
from regard.attention.map.computed import Computed
from regard.attention.map.source import MapPiece
from regard.attention.map.stitched import StitchedSource
from regard.attention.mask import Sizes
from regard.decode import stream
from regard.models import GPTConfig
from regard.tokens import Tokens
from regard.trace.record.layer import Layer, ProofSample
from regard.trace.record.trace import Run, Trace
from regard.views.explorer.answer import Answers


@dataclass
class Case:
    """A layer, and what is true of it: weights, where each query may look, and the scores before the mask."""

    layer: Layer
    weights: Tensor  # b h q k, float64
    allowed: Tensor
    scores: Tensor | None = None
    bias: Tensor | None = None
    sink: Tensor | None = None  # h

    @property
    def trace(self) -> Trace:
        return Trace([Run([self.layer])], model="Small")


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def softened(scores: Tensor, allowed: Tensor, sink: Tensor | None = None) -> Tensor:
    """Softmax in float64 over what may be looked at, one more logit in its sum where there is a sink."""
    powers = torch.where(allowed, (scores - scores.amax(-1, keepdim=True)).exp(), 0.0)
    total = powers.sum(-1, keepdim=True)
    if sink is not None:
        total = total + (sink[:, None, None] - scores.amax(-1, keepdim=True)).exp()
    return torch.where(allowed, powers / total, 0.0)


def asked(mask, allowed, *, b=2, h=4, g=None, q=13, k=13, d=5, e=3, bias=None, added=None, cap=None, sink=None, by=1.0):
    """A layer by `attend`, and its weights by the formula."""
    g = h if g is None else g
    queries, keys, values = draw(b, h, q, d) * by, draw(b, g, k, d, seed=1), draw(b, g, k, e, seed=2)
    found = regard.attend(queries, keys, values, mask=mask, bias=bias, softcap=cap, sink_logits=sink)
    shown = tuple(Tokens(tuple(f"{entry}.{i}" for i in range(q))) for entry in range(b))
    rows = (0, q // 2, q - 1)
    seen = ProofSample(rows=rows, mix=found.mix[:, :, list(rows)])
    named = {"queries": shown, "keys": shown} if q == k else {}
    layer = Layer("blocks.0", "self", found.weights, queries, keys, values, seen=seen, **named)
    scores = queries.double() @ keys.double().repeat_interleave(h // g, 1).mT / math.sqrt(d)
    if cap is not None:
        scores = cap * torch.tanh(scores / cap)
    added = None if added is None else added.double().expand_as(scores)
    scores = scores if added is None else scores + added
    allowed = allowed.expand_as(scores)
    sinks = None if sink is None else sink.double()
    return Case(layer, softened(scores, allowed, sinks), allowed, scores, added, sinks)


def triangle(q: int, k: int) -> Tensor:
    return torch.ones(q, k, dtype=torch.bool).tril(k - q)


def stitched() -> Case:
    """Seven rows over keys 0…6, then one over 2…8 and three over 4…10, as a ring buffer does."""
    b, h, d, e = 2, 3, 5, 4
    k, v = draw(b, h, 11, d), draw(b, h, 11, e, seed=3)
    spans = [(7, 0, 7), (1, 2, 9), (3, 4, 11)]
    q = draw(b, h, sum(rows for rows, _, _ in spans), d, seed=4)
    scores = torch.full((b, h, q.shape[2], 11), torch.nan, dtype=torch.float64)
    allowed, first, parts = torch.zeros(b, h, q.shape[2], 11, dtype=torch.bool), 0, []
    for rows, start, stop in spans:
        some, keys = q[:, :, first : first + rows], k[:, :, start:stop]
        sizes = Sizes((b, h), rows, stop - start)
        parts.append(MapPiece(Computed(some, keys, sizes, scale=0.5, mask=regard.causal()), start))
        scores[:, :, first : first + rows, start:stop] = some.double() @ keys.double().mT * 0.5
        allowed[:, :, first : first + rows, start:stop] = triangle(rows, stop - start)
        first += rows
    layer = Layer("ring", "self", AttentionMap(StitchedSource(parts)), q, k, v)
    return Case(layer, softened(scores.nan_to_num(-1e3), allowed), allowed, scores)


def stored() -> Case:
    weights = torch.softmax(draw(1, 3, 9, 17), -1)
    return Case(Layer("given", "unknown", AttentionMap.stored(weights)), weights.double(), torch.ones(1, 3, 9, 17) > 0)


def implied() -> Case:
    weights = torch.softmax(draw(2, 3, 9, 14), -1)

    def imply(chosen, rows):
        return (weights[chosen] if chosen else weights)[..., rows, :]

    found = AttentionMap.implied(imply, (2, 3, 9, 14), device=torch.device("cpu"))
    return Case(Layer("implied", "self", found), weights.double(), torch.ones(2, 3, 9, 14) > 0)


@cache
def generated() -> Case:
    """A GPT of ours that reads five tokens and writes seven, stitched by the watch."""

    torch.manual_seed(3)
    model = GPTConfig(vocab_size=23, width=12, heads=3, layers=2, context=32).build().eval()
    with torch.no_grad(), regard.watch(model) as trace:
        list(stream(model.begin(torch.tensor([[3, 1, 4, 1, 5]])), 1, limits=regard.Limits(longest=8, end=None)))
    layer = trace.layers[1]
    assert layer.weights.shape == (1, 3, 12, 12)
    scores = layer.q.double() @ layer.k.double().mT / math.sqrt(layer.q.shape[-1])
    allowed = triangle(12, 12).expand_as(scores)
    return Case(layer, softened(scores, allowed), allowed, scores)


@cache
def translated() -> Case:
    """The last cross-attention of the translator that comes with the package."""
    from regard.tasks.text_translator import open_translator

    trace = open_translator("en-zh-grammar").translate(["The girl who is reading a book is my sister."])[0].trace()
    layer = next(layer for layer in reversed(trace.layers) if layer.kind == "cross")
    scores = layer.q.double() @ layer.k.double().mT / math.sqrt(layer.q.shape[-1])
    allowed = torch.ones_like(scores).bool()
    return Case(layer, softened(scores, allowed), allowed, scores)


def alibi() -> Case:
    q, k = 11, 19
    bias = regard.ALiBi(heads=4)
    away = (torch.arange(k) - (torch.arange(q)[:, None] + k - q)).abs().double()
    added = -(torch.tensor([2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8]).double()[:, None, None] * away)
    return asked(regard.causal(), triangle(q, k), q=q, k=k, bias=bias, added=added)


def windowed() -> Case:
    ahead = torch.arange(21) - torch.arange(21)[:, None]
    return asked(regard.window(3, 1), (ahead >= -3) & (ahead <= 1), q=21, k=21, h=2)


def padded() -> Case:
    """The second entry has blind rows: fewer keys than queries under a causal mask, aligned at the end."""
    lengths = torch.tensor([9, 4])
    allowed = triangle(15, 12) & (torch.arange(12) < lengths[:, None])[:, None, None]
    return asked(regard.causal() & regard.padding(lengths), allowed, q=15, k=12, h=3)


def tensor_bias() -> Case:
    added = draw(1, 2, 10, 14, seed=9)
    return asked(None, torch.ones(10, 14) > 0, b=1, h=2, q=10, k=14, bias=added, added=added)


def bits() -> Case:
    seen = torch.rand(3, 16, 18, generator=torch.Generator().manual_seed(1)) < 0.4
    seen[1, 4] = False
    return asked(regard.allowed(seen[None].expand(2, -1, -1, -1)), seen, h=3, q=16, k=18)


CASES = {
    "open": lambda: asked(None, torch.ones(13, 13) > 0),
    "causal": lambda: asked(regard.causal(), triangle(13, 13)),
    "cached": lambda: asked(regard.causal(), triangle(6, 23), q=6, k=23, h=2),
    "padded": padded,
    "grouped": lambda: asked(regard.causal(), triangle(10, 10), h=6, g=2, q=10, k=10),
    "window": windowed,
    "sinks and softcap": lambda: asked(
        regard.causal(), triangle(13, 13), cap=2.0, sink=torch.tensor([0.5, -1.0, 3.0, 0.0])
    ),
    "alibi": alibi,
    "tensor bias": tensor_bias,
    "bits": bits,
    "large scores": lambda: asked(regard.causal(), triangle(13, 13), by=20.0),
    "stored": stored,
    "implied": implied,
    "stitched": stitched,
    "generated": generated,
    "translated": translated,
}


def ask(answers: Answers, what: str, **about):
    """What is said, and the arrays, as NumPy."""
    blob = answers.ask(what, about)
    size = int.from_bytes(blob[:8], "little")
    return json.loads(json.loads(blob[8 : 8 + size])["__metadata__"]["facts"]), load(blob)


def close(found: np.ndarray, wanted: Tensor, within: float = 1e-6) -> None:
    """Equal to so much, NaN to NaN."""
    np.testing.assert_allclose(found, wanted.numpy(), rtol=within, atol=within)
