"""A layer whose tokens see a window, and in which some tokens see everything, by projections of their own."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.attend import Attended, Maskable, attend
from regard.attention.map import AttentionMap, DropoutRecord
from regard.attention.mask import Sizes, as_mask, longformer
from regard.attention.mask.longformer import LongformerMask as Pattern
from regard.attention.score.bias import Bias
from regard.errors import CacheError, ShapeError
from regard.layers.cache import KeyValueCache
from regard.layers.check import must_end_in, must_fit
from regard.layers.joined import GlobalRowsMask, JoinedSource, NearRowsMask
from regard.layers.listen import join_last
from regard.layers.multihead import merge_heads, split_heads
from regard.positions import Rotary

Globals = Sequence[int] | Bool[Tensor, "b k"]


class LongformerAttention(nn.Module):
    r"""A window for most tokens, and global tokens that see all and are seen by all (Beltagy et al. 2020, §3).

    Tokens that are not global look with $Q_s, K_s, V_s$ at `before` keys before them, `after` keys after them (as many
    as before, where left out; every `dilation`th of them) and at the global tokens. Global tokens look at everything
    with $Q_g, K_g, V_g$, projections of their own (§3.1). Computed in
    O(n · window) time and memory, exactly; only `dropout` on the weights, in training, has no such kernel.

    `positions` is a `Rotary` or None. The map of a call has both kinds of rows, each from its own q and k. A watch
    sees two calls, `name` and `name#2`: in the first global tokens look nowhere, in the second the others do.

    >>> import regard, torch
    >>> layer = LongformerAttention(12, heads=3, before=2)
    >>> x = torch.ones(2, 9, 12)
    >>> layer(x, global_at=[0, 4], mask=regard.padding([9, 6])).shape
    torch.Size([2, 9, 12])
    >>> layer.attend(x, global_at=[0]).weights
    AttentionMap (b 2, h 3, q 9, k 9), computed
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        before: int,
        after: int | None = None,
        dilation: int = 1,
        bias: bool = True,
        positions: Rotary | Bias | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ShapeError(f"width {width} does not split into {heads} equal heads; choose heads that divide {width}")
        if positions is not None and not isinstance(positions, Rotary):
            raise TypeError(
                f"positions is {type(positions).__name__}, but no kernel adds a bias over a window; "
                "give a Rotary, or add Sinusoid or Learned to the embeddings before the layer"
            )
        if not 0.0 <= dropout <= 1.0:
            raise ValueError(f"dropout is {dropout}, but it is a share; give a number from 0 to 1")
        must_fit(positions, heads, width // heads)
        longformer(before, after, dilation=dilation)  # refuses sizes that are none
        self.width, self.heads, self.head_width, self.dropout = width, heads, width // heads, dropout
        self.before, self.after, self.dilation = before, before if after is None else after, dilation
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width, bias=bias) for _ in range(3))
        self.to_global_q, self.to_global_k, self.to_global_v = (nn.Linear(width, width, bias=bias) for _ in range(3))
        self.to_out = nn.Linear(width, width, bias=bias)
        for far, near in zip(self.far(), self.near()):  # they start out alike (§3.1)
            far.load_state_dict(near.state_dict())
        self.positions = positions

    def near(self) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
        """The projections of tokens that are not global: q, k, v."""
        return self.to_q, self.to_k, self.to_v

    def far(self) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
        """The projections of global tokens: q, k, v."""
        return self.to_global_q, self.to_global_k, self.to_global_v

    def forward(
        self,
        x: Float[Tensor, "*b q m"],
        *,
        global_at: Globals = (0,),
        mask: Maskable | None = None,
        cache: KeyValueCache | None = None,
        places: Int[Tensor, "*_p q"] | None = None,
    ) -> Float[Tensor, "*b q m"]:
        """What each position gathered, projected back to the width of x.

        `global_at` are places that are global in every sequence, or a boolean tensor (b, t) that marks them in each.
        `mask` says what is hidden beside that: `padding(lengths)`, `causal()`. `places` are the positions for `Rotary`.

        With a `cache`, give `mask=causal()`. It holds keys and values of the window's projections, so every global
        token must come in the first call, and a cache with a window keeps them by its `keep_first`.
        """
        attended = self.attend(x, global_at=global_at, mask=mask, cache=cache, places=places)
        return self.to_out(merge_heads(attended.mix))

    def attend(
        self,
        x: Float[Tensor, "*b q m"],
        *,
        global_at: Globals = (0,),
        mask: Maskable | None = None,
        cache: KeyValueCache | None = None,
        places: Int[Tensor, "*_p q"] | None = None,
    ) -> Attended:
        """The same up to the output projection: each head's mix (…, h, q, d), and the map to ask."""
        must_end_in("x", x, self.width, "width")
        must_be_kept(self.before, global_at, cache)
        at = where(x, places, cache)
        q, k, v = (split_heads(project(x), self.heads) for project in self.near())  # … h t d
        q, k = self._rotate(q, at), self._rotate(k, at)
        if cache is not None:
            k, v = cache.append(k, v)
        sizes = Sizes(tuple(q.shape[:-2]), q.shape[-2], k.shape[-2])
        pattern = longformer(self.before, self.after, global_at=global_at, dilation=self.dilation)
        assert isinstance(pattern, Pattern)
        pattern.check(sizes)
        rows = pattern.cover(sizes).queries
        dropout = self.dropout if self.training else 0.0
        hidden = None if mask is None else as_mask(mask, sizes)
        near = NearRowsMask(pattern) if hidden is None else NearRowsMask(pattern) & hidden
        attended = attend(q, k, v, mask=near, dropout=dropout)
        if rows is not None and len(rows):
            far = GlobalRowsMask(pattern) if hidden is None else GlobalRowsMask(pattern) & hidden
            attended = together(attended, attend(*self._globals(x, rows.to(x.device), at), mask=far, dropout=dropout))
            join_last(2, attended)
        return attended

    def _globals(self, x: Tensor, rows: Int[Tensor, " r"], at: Int[Tensor, "*_p t"]) -> tuple[Tensor, Tensor, Tensor]:
        """q, k, v of global tokens; a token that is none asks 0."""
        asked = split_heads(self.to_global_q(x.index_select(-2, rows)), self.heads)
        asked = self._rotate(asked, at.index_select(-1, rows))
        q = asked.new_zeros(*asked.shape[:-2], x.shape[-2], self.head_width).index_copy(-2, rows, asked)
        k, v = (split_heads(project(x), self.heads) for project in self.far()[1:])
        return q, self._rotate(k, at), v

    def _rotate(self, x: Tensor, at: Int[Tensor, "*_p t"]) -> Tensor:
        return x if self.positions is None else self.positions(x, at)

    @classmethod
    def from_transformers(cls, theirs: nn.Module) -> "LongformerAttention":
        """The same layer with copies of the weights of a `LongformerAttention` of the `transformers` library.

        Its residual and norm stay outside. A `LongformerSelfAttention` has no output projection: there `to_out` becomes
        the identity. Their padded queries mix to 0, ours look at what is left of their window; nobody looks at them.
        """
        own: Any = getattr(theirs, "self", theirs)
        ours = cls(own.embed_dim, own.num_heads, before=own.one_sided_attn_window_size, dropout=float(own.dropout))
        ours.to(own.query.weight).train(theirs.training)
        copied = (own.query, own.key, own.value, own.query_global, own.key_global, own.value_global)
        for into, linear in zip((*ours.near(), *ours.far()), copied):
            into.load_state_dict(linear.state_dict())
        with torch.no_grad():
            if own is theirs:
                nn.init.eye_(ours.to_out.weight)
                nn.init.zeros_(ours.to_out.bias)
            else:
                ours.to_out.load_state_dict(theirs.get_submodule("output.dense").state_dict())
        return ours

    def extra_repr(self) -> str:
        window = f"before={self.before}, after={self.after}"
        return f"{self.width}, heads={self.heads}, {window}, dilation={self.dilation}, dropout={self.dropout}"


def together(near: Attended, far: Attended) -> Attended:
    """Both kinds of rows: where one looks nowhere, its mix and its weights are 0."""
    weights = AttentionMap(JoinedSource(near.weights.source, far.weights.source))
    if near.weights.dropped is not None:
        both = near.weights, far.weights
        weights.dropped = DropoutRecord(near.weights.dropped.p, None, lambda: both[0].used() + both[1].used())
    return Attended(near.mix + far.mix, weights, near.path)


def where(x: Tensor, places: Tensor | None, cache: KeyValueCache | None) -> Int[Tensor, "*_p t"]:
    """The position of each token."""
    if places is not None:
        return places
    return torch.arange(x.shape[-2], device=x.device) + (0 if cache is None else cache.seen)


def must_be_kept(before: int, global_at: Globals, cache: KeyValueCache | None) -> None:
    """Refuse global tokens that a cache cannot serve."""
    if cache is None:
        return
    if isinstance(global_at, Tensor):
        raise CacheError(
            "global_at is a tensor, but a cache outlives its keys; give places that hold for all sequences"
        )
    if cache.window is not None and cache.window < before:
        raise CacheError(
            f"the window of the layer reaches {before} keys back, but the cache holds {cache.window}; "
            f"give KeyValueCache(window={before}) or larger"
        )
    for place in global_at:
        if place < 0:
            raise CacheError(
                f"global token {place} counts from an end that moves with every step; count from the start"
            )
        if cache.window is not None and place >= cache.keep_first:
            raise CacheError(
                f"token {place} is global, but the cache keeps only the first {cache.keep_first} for good; "
                f"give keep_first={place + 1}, or a cache without a window"
            )
        if cache.seen and place >= cache.seen:
            raise CacheError(
                f"token {place} is global, but comes after {cache.seen} tokens whose keys for global tokens were not "
                "kept; give all global tokens in the first call"
            )
