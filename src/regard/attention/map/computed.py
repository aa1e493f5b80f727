"""A map that is computed from q and k: any part of it, exactly, whenever somebody looks."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.axes.as_4d import add_leading_axes
from regard.attention.axes.heads import choose_key_heads, compare_grouped, multiply_grouped
from regard.attention.axes.select import Index, Where, pick, places, take
from regard.attention.map.source import MapPiece, widen_dtype
from regard.attention.mask import Mask, Sizes
from regard.attention.mask.lead import LeadingIndex, tile, whole
from regard.attention.score.base import Score
from regard.attention.score.bias import Bias
from regard.attention.weigh.softmax import softmax
from regard.eager import version
from regard.errors import Stale

Weigh = Callable[..., Tensor]
UNVERSIONED = (None, None)


class Computed:
    """Weights computed from q and k on demand: everything that decides them, and nothing that was computed from it.

    q and k come prepared by the score function, a learned scale is already in q. `bias` is a tensor with all
    axes (1 where it says nothing) or a `Bias`; `sink` has all axes, (…, h, 1, 1).
    The references carry the version they had: looking after one was written to raises `Stale`.
    """

    kind = "computed"
    __slots__ = ("bias", "k", "lead", "mask", "q", "scale", "score", "sink", "sizes", "softcap", "versions", "weigh")

    def __init__(
        self,
        q: Float[Tensor, "*_b q f"],
        k: Float[Tensor, "*_c k f"],
        sizes: Sizes,
        *,
        score: Score | None = None,
        scale: float = 1.0,
        mask: Mask | None = None,
        bias: Tensor | Bias | None = None,
        softcap: float | None = None,
        sink: Tensor | None = None,
        weigh: Weigh = softmax,
        lead: LeadingIndex | None = None,
        live: bool = True,
    ) -> None:
        self.q, self.k, self.sizes = q, k, sizes
        self.score, self.scale, self.mask, self.bias = score, scale, mask, bias
        self.softcap, self.sink, self.weigh, self.lead = softcap, sink, weigh, lead
        self.versions = (version(q), version(k)) if live else UNVERSIONED

    @property
    def shape(self) -> tuple[int, ...]:
        lead = self.sizes.lead if self.lead is None else self.lead.shape
        return (*lead, self.sizes.q, self.sizes.k)

    @property
    def device(self) -> torch.device:
        return self.q.device

    @property
    def dtype(self) -> torch.dtype:
        return widen_dtype(self.q.dtype)

    @property
    def precision(self) -> torch.dtype:
        return self.q.dtype

    @property
    def computed(self) -> "Computed":
        return self

    @property
    def exact(self) -> "Computed":
        return self

    @property
    def stored(self) -> None:
        return None

    @property
    def is_softmax(self) -> bool:
        """Whether the weights are a softmax of the scores."""
        return self.weigh is softmax

    @property
    def is_dot(self) -> bool:
        """Whether the scores are a plain product of q and k."""
        return self.score is None or self.score.is_dot

    def pieces(self) -> tuple[MapPiece, ...]:
        return (MapPiece(self),)

    def check_fresh(self) -> None:
        for name, x, was in (("q", self.q, self.versions[0]), ("k", self.k, self.versions[1])):
            if was is not None and version(x) != was:
                raise Stale(
                    f"{name} was written to after the map was made, so the map can no longer be computed; "
                    "look before changing it in place, or attend to a copy"
                )

    def may_need_gradient(self) -> bool:
        """Whether a gradient may have to flow to what decides the weights; a `Bias` may learn."""
        parts = (self.q, self.k, self.sink, self.bias)
        return any(x is not None and getattr(x, "requires_grad", True) for x in parts)

    def leading_index(self) -> LeadingIndex:
        if self.lead is None:
            self.lead = whole(self.sizes, self.device)
        return self.lead

    def pick(self, chosen: tuple[Index, ...]) -> "Computed":
        """The same map for some batch entries and heads: one index per leading axis, from the first on."""
        self.check_fresh()
        lead = self.leading_index()
        size = len(lead.shape)
        chosen = chosen + (slice(None),) * (size - len(chosen))
        q, k = add_leading_axes(self.q, size), add_leading_axes(self.k, size)
        bias = pick(add_leading_axes(self.bias, size), chosen) if isinstance(self.bias, Tensor) else self.bias
        return Computed(
            pick(q, chosen),
            pick(k, choose_key_heads(chosen, lead.shape, k.shape[size - 1])) if size else k,
            self.sizes,
            score=self.score,
            scale=self.scale,
            mask=self.mask,
            bias=bias,
            softcap=self.softcap,
            sink=None if self.sink is None else pick(add_leading_axes(self.sink, size), chosen),
            weigh=self.weigh,
            lead=lead.pick(chosen),
        )

    def queries(self, rows: Where) -> Float[Tensor, "*_b r f"]:
        """q at these rows; a map over a file reads no others."""
        return take(self.q, -2, rows)

    def keys(self, columns: Where) -> Float[Tensor, "*_b c f"]:
        return take(self.k, -2, columns)

    def has_groups(self) -> bool:
        """Whether several heads of q share one of k."""
        q, k = self.q, self.k
        return q.ndim > 2 and k.ndim > 2 and q.shape[-3] != k.shape[-3]

    def scores(self, rows: Where = slice(None), columns: Where = slice(None)) -> Float[Tensor, "*_b r c"]:
        """score · scale, capped, plus bias, before the mask; in float32 or better."""
        self.check_fresh()
        q, k = self.queries(rows).to(self.dtype), self.keys(columns).to(self.dtype)
        if self.is_dot or self.score is None:
            scores = multiply_grouped(q * self.scale, k.mT)
        else:
            scores = compare_grouped(self.score.compare, q, k)
            scores = scores if self.scale == 1.0 else scores * self.scale
        if self.softcap is not None:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        if self.bias is not None:
            scores = scores + self.bias_at(rows, columns)
        return scores

    def scores_into(self, out: Tensor, rows: slice, columns: slice) -> Float[Tensor, "*_b r c"]:
        """The same scores in a tensor that the caller may write to: `out`, where the arithmetic is a plain product."""
        if not self.is_dot or self.softcap is not None or self.bias is not None or self.has_groups():
            return self.scores(rows, columns).expand(out.shape).clone()
        self.check_fresh()
        q, k = self.queries(rows).to(self.dtype), self.keys(columns).to(self.dtype)
        return torch.matmul(q * self.scale, k.mT, out=out) if out.numel() else out

    def bias_at(self, rows: Where, columns: Where) -> Float[Tensor, "..."]:
        if isinstance(self.bias, Tensor):
            bias = self.bias if self.bias.shape[-2] == 1 else take(self.bias, -2, rows)
            return (bias if bias.shape[-1] == 1 else take(bias, -1, columns)).to(self.dtype)
        assert self.bias is not None
        queries = places(rows, self.sizes.q, self.device) + self.sizes.offset
        keys = places(columns, self.sizes.k, self.device)
        heads = self.leading_index().h
        block = self.bias.block(queries, keys, heads.flatten())
        return block.to(self.dtype).reshape(*heads.shape, *block.shape[-2:])

    def allowed(self, rows: Where = slice(None), columns: Where = slice(None)) -> Bool[Tensor, "..."] | None:
        """Where the mask lets these queries look; broadcasts against scores. None: everywhere."""
        if self.mask is None:
            return None
        if self.lead is None and rows == slice(None) and columns == slice(None):
            return self.mask.whole(self.sizes, self.device)
        return tile(self.mask, self.sizes, self.leading_index(), rows, columns)

    def span(self, first: int, stop: int) -> tuple[int, int]:
        """The range of keys outside of which these queries see nothing."""
        return (0, self.sizes.k) if self.mask is None else self.mask.span(first, stop, self.sizes)

    def weights(self, rows: Where = slice(None), columns: slice = slice(None)) -> Float[Tensor, "*_b r c"]:
        """The weights of these rows; `columns` may leave out only keys that none of them sees."""
        return self.normalise(self.scores(rows, columns), self.allowed(rows, columns))

    def normalise(self, scores: Tensor, allowed: Tensor | None) -> Float[Tensor, "*_b r c"]:
        """Whole rows of scores as weights."""
        if self.sink is None:
            return self.weigh(scores, allowed)
        return softmax(scores, allowed, sink=self.sink.to(scores.dtype))

    def dense(self) -> Float[Tensor, "*_b q k"]:
        allowed = self.allowed()
        clean = self.hide_unseen(allowed)
        return clean.normalise(clean.scores(), allowed)

    def copy(self) -> "Computed":
        return self.with_qk(self.q.clone(), self.k.clone())

    def detach(self) -> "Computed":
        return self.with_qk(self.q.detach(), self.k.detach())

    def describe(self) -> str:
        return f"{self.kind}, {self.weigher}"

    @property
    def weigher(self) -> str:
        """The name of what makes weights of scores; torch.compile follows an f-string, and not `str`."""
        return f"{getattr(self.weigh, '__name__', self.weigh)}"

    def expire(self) -> None:
        """Raise from now on: what was written to is no longer what was attended to."""
        self.versions = (-1, -1)

    def hide_unseen(self, allowed: Bool[Tensor, "..."] | None) -> "Computed":
        """The same map with every key that no query sees set to 0, so that not even 0 · NaN reaches a gradient."""
        if allowed is None:
            return self
        k = add_leading_axes(self.k, len(self.shape) - 2)
        return self.with_qk(self.q, k.masked_fill(~find_seen_keys(allowed, k), 0.0))

    def __getstate__(self) -> dict[str, object]:
        self.check_fresh()
        return {name: getattr(self, name) for name in self.__slots__ if name != "versions"}

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.versions = (version(self.q), version(self.k))

    def with_qk(self, q: Tensor, k: Tensor) -> "Computed":
        """The same map from these tensors instead."""
        return self.replace(q=q, k=k)

    def without_bias(self) -> "Computed":
        """The same map with nothing added to its scores."""
        return self.replace(bias=None)

    def replace(self, **parts: object) -> "Computed":
        twin = object.__new__(Computed)
        twin.__setstate__(self.__getstate__() | parts)
        return twin


def find_seen_keys(allowed: Bool[Tensor, "..."], k: Float[Tensor, "*_b k f"]) -> Bool[Tensor, "..."]:
    """Which keys some query sees, as (…, k, 1) for k and v; a key head is seen if any head of its group sees it."""
    seen = add_leading_axes(allowed, k.ndim - 2).any(-2).unsqueeze(-1)  # … h k 1
    if k.ndim > 2 and seen.shape[-3] > k.shape[-3]:
        seen = seen.unflatten(-3, (k.shape[-3], -1)).any(-3)
    return seen.expand(*seen.shape[:-2], k.shape[-2], 1)
