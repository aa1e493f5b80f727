"""AttentionMap: any part of the weights, when somebody looks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.axes.select import Where, places, take
from regard.attention.map import statistics
from regard.attention.map.implied import Implied, Implying
from regard.attention.map.index import as_where, parse
from regard.attention.map.rows import weights_at
from regard.attention.map.sampled import SampledMap, sample
from regard.attention.map.source import Source
from regard.attention.map.statistics import PooledMap
from regard.attention.map.stored import Stored
from regard.attention.mask import Mask, Sizes
from regard.attention.weigh.dropout import DropoutRecord, drop
from regard.errors import MapError, ShapeError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from matplotlib.figure import Figure


class AttentionMap:
    """The share each query takes from each key, (…, h, q, k): lazy and exact.

    A map holds what decides the weights (q, k, the score function, scale, bias, mask) and computes the part
    that is asked for, in float32 or better, whatever kernel made the mix and whatever the length. Indexing
    batch and head gives a smaller map; touching queries or keys gives a tensor. Slices and `dense()` are
    differentiable; statistics carry no gradient and never hold q × k numbers.

    >>> import regard, torch
    >>> x = torch.eye(3)
    >>> map = regard.attend(x, x, x, mask=regard.causal()).weights
    >>> map
    AttentionMap (q 3, k 3), computed, softmax
    >>> map[1]
    tensor([0.3595, 0.6405, 0.0000])
    >>> map.top(1)
    (tensor([[1.0000],
            [0.6405],
            [0.4711]]), tensor([[0],
            [1],
            [2]]))
    """

    __slots__ = ("dropped", "source", "tokens")

    def __init__(
        self,
        source: Source,
        *,
        tokens: tuple[Sequence[str], Sequence[str]] | None = None,
        dropped: DropoutRecord | None = None,
    ) -> None:
        self.source, self.tokens, self.dropped = source, tokens, dropped

    @classmethod
    def stored(cls, weights: Float[Tensor, "*_b q k"], *, mask: Mask | None = None) -> "AttentionMap":
        """A map of weights that somebody already has, (…, q, k); `mask` tells what could be seen."""
        return cls(Stored(weights, mask))

    @classmethod
    def implied(
        cls, imply: Implying, shape: tuple[int, ...], *, device: torch.device, dtype: torch.dtype = torch.float32
    ) -> "AttentionMap":
        """What a mechanism without a matrix amounts to. `imply(chosen, rows)` gives whole rows, (…, rows, k).

        `chosen` has one index per leading axis, or none for all of them.
        """
        *lead, q, k = shape
        return cls(Implied(imply, Sizes(tuple(lead), q, k), device=device, dtype=dtype))

    @property
    def shape(self) -> tuple[int, ...]:
        """(…, h, q, k)."""
        return self.source.shape

    @property
    def kind(self) -> str:
        """How the map was obtained: "computed", "stored" or "implied"."""
        return self.source.kind

    @property
    def exact(self) -> "AttentionMap":
        """What exact attention gives on the same q and k: itself where computed, its model where implied."""
        exact = self.source.exact
        if exact is None:
            raise MapError(f"this map is {self.kind}, and the q and k behind it are not known; ask what attend(…) gave")
        return self if exact is self.source else AttentionMap(exact, tokens=self.tokens)

    @property
    def device(self) -> torch.device:
        return self.source.device

    @property
    def dtype(self) -> torch.dtype:
        """What the weights are computed in."""
        return self.source.dtype

    def with_names(self, queries: Sequence[str], keys: Sequence[str] | None = None) -> "AttentionMap":
        """The same map with the tokens that its rows and columns stand for."""
        keys = queries if keys is None else keys
        if (len(queries), len(keys)) != self.shape[-2:]:
            raise ShapeError(
                f"{len(queries)} queries and {len(keys)} keys were named, but the map has "
                f"{self.shape[-2]} and {self.shape[-1]}; name each of them"
            )
        return AttentionMap(self.source, tokens=(queries, keys), dropped=self.dropped)

    def __getitem__(self, item: Any) -> Any:
        chosen = parse(item, self.shape)
        source = self.source.pick(chosen.lead) if chosen.lead else self.source
        if chosen.rows is None and chosen.columns is None:
            if not chosen.lead:
                return self
            return AttentionMap(source, tokens=self.tokens)
        rows, one_row = as_where(chosen.rows)
        columns, one_column = as_where(chosen.columns)
        part = weights_at(source, rows, columns)
        part = part.squeeze(-1) if one_column else part
        return part.squeeze(-2 + one_column) if one_row else part

    def dense(self) -> Float[Tensor, "*_b q k"]:
        """All of it, differentiable. The only answer that holds q × k numbers."""
        return self.source.dense().expand(self.shape)

    def used(self) -> Float[Tensor, "*_b q k"]:
        """The weights as they were used, after dropout: all of them, replayed from the call's random state."""
        if self.dropped is None:
            return self.dense()
        if self.dropped.replay is not None:
            return self.dropped.replay()
        if self.dropped.seed is None:
            raise MapError(
                "what was dropped cannot be replayed, because a fused or compiled kernel dropped it; "
                "use path='explicit' outside of torch.compile"
            )
        return drop(self.dense(), self.dropped)

    def rows(self, i: int | slice | Sequence[int] | Tensor) -> Float[Tensor, "..."]:
        """Whole rows, (…, rows, k); a single number gives (…, k)."""
        found: Tensor = self[(..., i, slice(None))]
        return found

    def top(self, k: int) -> tuple[Float[Tensor, "*_b q n"], Int[Tensor, "*_b q n"]]:
        """The k strongest keys of every query: (weights, keys), each (…, q, k), strongest first.

        Ties go to the lower key. Hidden keys are never returned: rows that see fewer are filled up with
        weight 0 and key −1.
        """
        return statistics.top(self.source, k)

    def pool(self, rows: int, columns: int) -> PooledMap:
        """An overview of at most rows × columns cells: (max, mean), the mean over allowed cells."""
        return statistics.pool(self.source, rows, columns)

    def sample(self, rows: int, columns: int, *, queries: int = 16, seed: int = 0) -> SampledMap:
        """A quick look from far: the largest weight of each cell, and the mean entropy, by some queries of each line.

        Lines and cells are as many as `rows` and `columns` at most, each cell of one size. Of each line so many queries
        are drawn at random and looked at exactly; what the others may hide is bounded: `beyond`, `error`.

        >>> import regard
        >>> x = torch.randn(2048, 4, generator=torch.Generator().manual_seed(0))
        >>> some = regard.attend(x, x, x).weights.sample(8, 8)
        >>> some.largest.shape, round(some.beyond, 2), round(some.error, 2)
        (torch.Size([8, 8]), 0.16, 0.92)
        """
        return sample(self.source, rows, columns, queries, seed)

    def entropy(self) -> Float[Tensor, "*_b q"]:
        """Entropy of each row in nats: 0 looks at one key, log k at all alike; 0 for a row that sees nothing."""
        return statistics.entropy(self.source)

    def distance(self) -> Float[Tensor, "*_b q"]:
        """Mean |i − j| of each row under its weights; where q and k differ in length the ends are aligned."""
        return statistics.distance(self.source)

    def received(self) -> Float[Tensor, "*_b k"]:
        """What each key gets: its mean weight over the queries that may see it."""
        return statistics.received(self.source)

    def sink(self, keys: int = 1) -> Float[Tensor, "*_b q"]:
        """The share of each row that falls on the first `keys` keys (Xiao et al. 2023)."""
        return statistics.sink(self.source, keys)

    def log_normaliser(self) -> Float[Tensor, "*_b q"]:
        """log Σ exp(score) of each row, the sink included; −inf for a row that sees nothing. Softmax only."""
        return statistics.log_normaliser(self.source)

    @property
    def scores(self) -> "MapQuantity":
        """The scores behind the weights, before the mask: `map.scores[…]` as in `map[…]`."""
        return MapQuantity(self.source, "scores")

    @property
    def log_weights(self) -> "MapQuantity":
        """log weight, −inf where hidden: tells a weight that underflowed to 0 from a blocked one."""
        return MapQuantity(self.source, "log_weights")

    @property
    def allowed(self) -> "MapQuantity":
        """True where a query may look: `map.allowed[…]` as in `map[…]`."""
        return MapQuantity(self.source, "allowed")

    def keep(self) -> "AttentionMap":
        """The same map from copies of q and k, which nothing written later can touch: a cache, for example."""
        return AttentionMap(self.source.copy(), tokens=self.tokens, dropped=self.dropped)

    def draw(self, *, title: str = "", to: "str | Path | None" = None) -> "Figure":
        """A heat map of one head, with its tokens where they are named; hidden cells are hatched.

        A map of more than 512 cells a side is pooled, each cell the largest of its block: every weight is looked at.
        """
        from regard.views.static.figure import FINEST, heatmap

        if len(self.shape) > 2:
            raise ShapeError(f"a picture shows one head, but the map is {self.shape}; pick one, such as map[0, 3]")
        queries, keys = self.tokens or (None, None)
        if max(self.shape) > FINEST:
            return heatmap(self.pool(FINEST, FINEST).max, title=title or "the largest weight of each block", to=to)
        weights = self.dense().detach().masked_fill(~self.allowed[...], torch.nan)
        return heatmap(weights, title=title, row_labels=queries, column_labels=keys, to=to)

    def detach(self) -> "AttentionMap":
        """The same map without a graph behind it."""
        return AttentionMap(self.source.detach(), tokens=self.tokens, dropped=self.dropped)

    def numpy(self) -> "np.ndarray":
        """All of it as a NumPy array."""
        found: np.ndarray = self.dense().detach().cpu().numpy()
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> "np.ndarray":
        whole = self.numpy()
        return whole if dtype is None else whole.astype(dtype)

    def __repr__(self) -> str:
        names = ["b", "h"][-min(2, len(self.shape) - 2) :] if len(self.shape) > 2 else []
        names = [""] * (len(self.shape) - 2 - len(names)) + names + ["q", "k"]
        sizes = ", ".join(f"{name} {size}".strip() for name, size in zip(names, self.shape))
        return f"AttentionMap ({sizes}), {self.source.describe()}"

    def _repr_html_(self) -> str:
        from regard.views.static.notebook import map_html

        return map_html(self)


class MapQuantity:
    """Another side of the same map, indexed like the map."""

    def __init__(self, source: Source, what: str) -> None:
        self.source, self.what = source, what

    def __getitem__(self, item: Any) -> Any:
        chosen = parse(item, self.source.shape)
        source = self.source.pick(chosen.lead) if chosen.lead else self.source
        rows, one_row = as_where(chosen.rows)
        columns, one_column = as_where(chosen.columns)
        part = getattr(self, f"_{self.what}")(source, rows, columns)
        part = part.squeeze(-1) if one_column else part
        return part.squeeze(-2 + one_column) if one_row else part

    @staticmethod
    def _scores(source: Source, rows: Where, columns: Where) -> Tensor:
        return source.scores(rows, columns)

    @staticmethod
    def _allowed(source: Source, rows: Where, columns: Where) -> Tensor:
        q, k = places(rows, source.shape[-2], "cpu"), places(columns, source.shape[-1], "cpu")
        seen = source.allowed(rows, columns)
        if seen is None:
            seen = torch.ones((), dtype=torch.bool, device=source.device)
        return seen.expand(*source.shape[:-2], len(q), len(k))

    @staticmethod
    def _log_weights(source: Source, rows: Where, columns: Where) -> Tensor:
        if not statistics.is_softmax(source):
            return weights_at(source, rows, columns).log()
        scores = source.scores(rows)
        seen = source.allowed(rows)
        scores = scores if seen is None else scores.masked_fill(~seen, -torch.inf)
        total = scores.logsumexp(-1, keepdim=True)
        sink = None if source.computed is None else source.computed.sink
        if sink is not None:
            total = torch.logaddexp(total, sink.to(scores.dtype))
        return take(scores - total.masked_fill(total == -torch.inf, 0.0), -1, columns)
