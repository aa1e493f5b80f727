"""Endless text written out: a window and sinks as one banded attention, many tokens at once, straight from the weights.

A token at t looks at itself, at the `window` tokens before it, and at the first `sinks` ones, which stand right before
the window: t's distance to sink s is min(t, window + sinks) − s (Xiao et al. 2023, §3.2). Distances inside the window
are what they are. So keys of a chunk need no loop over tokens, and nothing of the package's caches and masks is used.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F


def heads_of(x, heads: int):
    return x.unflatten(-1, (heads, -1)).transpose(0, 1)  # h t d


class LayerKeys:
    """Keys before they are turned, and values, of one layer: the first ones, and as many of the last as are needed."""

    def __init__(self, window: int | None, sinks: int) -> None:
        self.window, self.sinks, self.seen = window, sinks, 0
        self.k = self.v = self.first_k = self.first_v = None

    def add(self, k, v) -> None:
        if self.k is None:
            self.first_k, self.first_v = k[:, : self.sinks], v[:, : self.sinks]
            self.k, self.v = k, v
        else:
            missing = self.sinks - self.first_k.shape[1]
            self.first_k = torch.cat((self.first_k, k[:, :missing]), 1)
            self.first_v = torch.cat((self.first_v, v[:, :missing]), 1)
            self.k, self.v = torch.cat((self.k, k), 1), torch.cat((self.v, v), 1)
        self.seen += k.shape[1]

    def trim(self) -> None:
        if self.window is not None:
            self.k, self.v = self.k[:, -self.window :], self.v[:, -self.window :]

    def mix(self, q, turn):
        """What queries of the last tokens gather, (h, t, e)."""
        new, held = q.shape[1], self.k.shape[1]
        at = torch.arange(self.seen - new, self.seen)
        keys = torch.arange(self.seen - held, self.seen)
        far = self.seen if self.window is None else self.window
        band = (keys <= at[:, None]) & (keys >= at[:, None] - far) & (keys >= self.first_k.shape[1])
        groups = q.shape[0] // self.k.shape[0]
        scale = q.shape[-1] ** -0.5
        scores = turn(q, at) @ turn(self.k, keys).repeat_interleave(groups, 0).mT * scale
        scores = scores.masked_fill(~band, -torch.inf)
        if not self.first_k.shape[1]:
            return scores.softmax(-1) @ self.v.repeat_interleave(groups, 0)
        first = torch.arange(self.first_k.shape[1])
        near = at if self.window is None else at.clamp(max=self.window + self.sinks)
        sink = turn(q, near) @ turn(self.first_k, first).repeat_interleave(groups, 0).mT * scale
        sink = sink.masked_fill(first > at[:, None], -torch.inf)
        weights = torch.cat((sink, scores), -1).softmax(-1)
        return weights @ torch.cat((self.first_v, self.v), 1).repeat_interleave(groups, 0)


@torch.no_grad()
def read_endlessly(model, ids, *, window: int | None, sinks: int = 0, chunk: int = 256) -> Iterator[torch.Tensor]:
    """The loss of each token of `ids` (t,) but the first, chunk by chunk, of a `Llama` without norms of q and k."""
    layers = [LayerKeys(window, sinks) for _ in model.blocks]
    for first in range(0, len(ids) - 1, chunk):
        some, wanted = ids[first : first + chunk], ids[first + 1 : first + chunk + 1]
        x = model.embed(some)  # t m
        for block, keys in zip(model.blocks, layers, strict=True):
            attention = block.attention

            def attend(y, attention=attention, keys=keys):
                q = heads_of(attention.to_q(y), attention.heads)
                keys.add(
                    heads_of(attention.to_k(y), attention.kv_heads), heads_of(attention.to_v(y), attention.kv_heads)
                )
                mixed = keys.mix(q, attention.positions)
                keys.trim()
                return attention.to_out(mixed.transpose(0, 1).flatten(1))

            x = block.around_feed_forward(block.around_attention(x, attend), block.feed_forward)
        logits = F.linear(model.norm(x), model.head_weight)[: len(wanted)]
        yield F.cross_entropy(logits, wanted, reduction="none").double()


@torch.no_grad()
def step_endlessly(model, ids, *, window: int, sinks: int = 0, **how) -> torch.Tensor:
    """The same by the model's own state, token by token."""
    state, losses = model.begin(ids[None, :1], window=window, sinks=sinks, **how), []
    for at in range(len(ids) - 1):
        logits = state(ids[None, at : at + 1])[0]
        losses.append(F.cross_entropy(logits, ids[at + 1]).double())
    return torch.stack(losses)
