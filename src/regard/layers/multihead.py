"""Several heads that each learn what to ask, what to offer and what to carry."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Attended, Maskable, attend
from regard.attention.mask import Mask, allowed, rule
from regard.attention.matrix_free.mechanism import Mechanism, must_serve
from regard.attention.score.base import Score
from regard.attention.score.bias import Bias
from regard.errors import CacheError, PositionError, ShapeError
from regard.layers.cache import KeyValueCache
from regard.layers.check import must_end_in, must_fit
from regard.layers.placed import PlacedBias
from regard.positions import Rotary


class MultiHead(nn.Module):
    r"""Project to heads, let each attend, put them side by side, project back (Vaswani et al. 2017, §3.2.2).

    $\mathrm{head}_i = \mathrm{attend}(x W^Q_i, s W^K_i, s W^V_i)$, out $= [\mathrm{head}_1 … \mathrm{head}_h] W^O$,
    with $s = x$, or a `source` to look at. Batch first, (…, t, m), also without a batch.

    `kv_heads` < `heads` shares each key head among several (Ainslie et al. 2023). `head_width` is width / heads
    unless given; `key_width` and `value_width` are those of the source. `out_bias` is whether the last projection
    adds one, as the others do by `bias` unless given. `qk_norm` puts an RMS norm over each head of q and k, before
    they turn (Qwen 3), with `qk_norm_eps` under its root. `positions` is a `Rotary`, which turns q and k, or a bias
    such as `ALiBi` or `Buckets`; `Sinusoid` and `Learned` are added to x before the layer. `score`, `scale`,
    `softcap` are those of `attend`; `sinks` learns one more logit per head for the normaliser, that starts at 0.
    `dropout` falls on the weights, in training only. `attention` is another mechanism, a `Performer` or
    `Linformer`, which becomes part of the layer, or a mask such as `longformer(…)` that every call gets beside its
    own.

    >>> import regard, torch
    >>> layer = regard.MultiHead(12, heads=4, kv_heads=2, head_width=6, positions=regard.Rotary(6))
    >>> x = torch.ones(2, 5, 12)
    >>> layer(x, mask=regard.causal()).shape
    torch.Size([2, 5, 12])
    >>> layer.attend(x, mask=regard.causal() & regard.padding([5, 3])).weights
    AttentionMap (b 2, h 4, q 5, k 5), computed, softmax
    """

    q_norm: nn.RMSNorm | None
    k_norm: nn.RMSNorm | None
    sink_logits: nn.Parameter | None

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        head_width: int | None = None,
        key_width: int | None = None,
        value_width: int | None = None,
        bias: bool = True,
        out_bias: bool | None = None,
        qk_norm: bool = False,
        qk_norm_eps: float = 1e-6,
        positions: Rotary | Bias | None = None,
        score: Score | None = None,
        scale: float | Tensor | None = None,
        softcap: float | None = None,
        sinks: bool = False,
        dropout: float = 0.0,
        attention: Mechanism | Mask | None = None,
    ) -> None:
        super().__init__()
        if heads < 1:
            raise ShapeError(f"heads is {heads}, but a layer has at least one head; give 1 or more")
        if head_width is None and width % heads:
            raise ShapeError(
                f"width {width} does not split into {heads} equal heads ({width % heads} left over); "
                f"choose heads that divide {width}, or give head_width="
            )
        kv_heads = heads if kv_heads is None else kv_heads
        if kv_heads < 1 or heads % kv_heads:
            raise ShapeError(
                f"{heads} heads do not share {kv_heads} key heads evenly; choose kv_heads that divide {heads}"
            )
        if not 0.0 <= dropout <= 1.0:
            raise ValueError(f"dropout is {dropout}, but it is a share; give a number from 0 to 1")
        self.width, self.heads, self.kv_heads = width, heads, kv_heads
        self.head_width = width // heads if head_width is None else head_width
        must_fit(positions, heads, self.head_width)
        self.key_width = width if key_width is None else key_width
        self.value_width = width if value_width is None else value_width
        self.scale, self.softcap, self.dropout = scale, softcap, dropout
        self.to_q = nn.Linear(width, heads * self.head_width, bias=bias)
        self.to_k = nn.Linear(self.key_width, kv_heads * self.head_width, bias=bias)
        self.to_v = nn.Linear(self.value_width, kv_heads * self.head_width, bias=bias)
        self.to_out = nn.Linear(heads * self.head_width, width, bias=bias if out_bias is None else out_bias)
        self.q_norm = nn.RMSNorm(self.head_width, eps=qk_norm_eps) if qk_norm else None
        self.k_norm = nn.RMSNorm(self.head_width, eps=qk_norm_eps) if qk_norm else None
        self.register_parameter("sink_logits", nn.Parameter(torch.zeros(heads)) if sinks else None)
        self.score = score
        self.positions = positions
        self.attention = attention
        if self.by is not None:
            bias_of_places = None if isinstance(positions, Rotary) else positions
            must_serve(self.by, score=score, positions=bias_of_places, softcap=softcap, sinks=sinks, dropout=dropout)
            self.by.check(heads, kv_heads, self.head_width)

    @property
    def by(self) -> Mechanism | None:
        """The mechanism that stands in for exact attention, where there is one."""
        return None if isinstance(self.attention, Mask) else self.attention

    def forward(
        self,
        x: Float[Tensor, "*b q m"],
        source: Float[Tensor, "*_s k n"] | None = None,
        *,
        values: Float[Tensor, "*_v k o"] | None = None,
        mask: Maskable | None = None,
        cache: KeyValueCache | None = None,
        places: Int[Tensor, "*_p q"] | None = None,
    ) -> Float[Tensor, "*b q m"]:
        """What each position gathered, projected back to the width of x.

        `source` is where keys and values come from (x itself if not given), `values` where the values alone come
        from. `places` are the positions of the tokens in x for `Rotary`, (t,) or (b, t), where they are not simply
        those after the cache: in a batch that is padded on the left, for example.

        With a `cache`, self-attention appends to it and looks at all of it. Given a `source`, the first call
        projects and stores it and later ones reuse that: the cache then holds this source whatever comes.
        """
        attended = self.attend(x, source, values=values, mask=mask, cache=cache, places=places)
        return self.to_out(merge_heads(attended.mix))

    def attend(
        self,
        x: Float[Tensor, "*b q m"],
        source: Float[Tensor, "*_s k n"] | None = None,
        *,
        values: Float[Tensor, "*_v k o"] | None = None,
        mask: Maskable | None = None,
        cache: KeyValueCache | None = None,
        places: Int[Tensor, "*_p q"] | None = None,
    ) -> Attended:
        """The same up to the output projection: each head's mix (…, h, q, d), and the map to ask."""
        must_end_in("x", x, self.width, "width")
        first = self._first(source is not None, cache, places)
        q = self._rotate(split_heads(self.to_q(x), self.heads), self.q_norm, first)  # … h q d
        if source is None:
            k, v, bias = self._own(x, x if values is None else values, first, cache)  # … g k d
        else:
            k, v, bias = self._others(q, source, source if values is None else values, cache)
        return attend(
            q,
            k,
            v,
            score=self.score,
            mask=self._within(mask),
            scale=self.scale,
            bias=bias,
            softcap=self.softcap,
            sink_logits=self.sink_logits,
            dropout=self.dropout if self.training else 0.0,
            by=self.by,
        )

    def _within(self, mask: Maskable | None) -> Maskable | None:
        """What a call may look at, within what the layer ever looks at."""
        if not isinstance(self.attention, Mask):
            return mask
        if mask is None:
            return self.attention
        if isinstance(mask, Tensor):
            return self.attention & allowed(mask)
        return self.attention & (mask if isinstance(mask, Mask) else rule(mask))

    def _own(
        self, x: Tensor, values: Tensor, first: int | Tensor, cache: KeyValueCache | None
    ) -> tuple[Tensor, Tensor, Bias | None]:
        """Keys and values of the tokens in x, after those in the cache, and the bias that fits them."""
        bias = None if isinstance(self.positions, Rotary) else self.positions
        k, v = self._keys_values(x, values, first)
        if cache is None:
            return k, v, bias
        if bias is not None and cache.keep_first and not cache.closes_gap:
            bias = PlacedBias(
                bias, torch.cat((cache.positions, cache.seen + torch.arange(x.shape[-2], device=x.device)))
            )
        k, v = cache.append(k, v)
        if cache.closes_gap and isinstance(self.positions, Rotary):
            k = close_gap(k, cache, self.positions)
        return k, v, bias

    def _others(
        self, q: Tensor, source: Tensor, values: Tensor, cache: KeyValueCache | None
    ) -> tuple[Tensor, Tensor, Bias | None]:
        """Keys and values of a source: projected now, or when the cache first saw it."""
        bias = None if isinstance(self.positions, Rotary) else self.positions
        if cache is None:
            return *self._keys_values(source, values, 0), bias
        if bias is not None:
            raise CacheError(
                f"{type(bias).__name__} counts from the end of the source, and a query that continues a cache stands "
                "elsewhere; leave positions= out of cross-attention, or the cache"
            )
        if not cache.fixed and not len(cache):
            return *cache.store(*self._keys_values(source, values, 0)), None
        if not cache.fixed or len(cache) != source.shape[-2]:
            what = "a source" if cache.fixed else "what self-attention read"
            raise CacheError(
                f"a source of {source.shape[-2]} positions came, but the cache holds {what} of {len(cache)}; "
                "give a new KeyValueCache() with a new source"
            )
        k, v = cache.keys, cache.values
        if k.shape[:-3] != q.shape[:-3]:
            raise CacheError(
                f"queries of shape {tuple(q.shape)} came, but the cache holds keys of shape {tuple(k.shape)}; "
                "change its batch by cache.reorder(index), or give a new KeyValueCache()"
            )
        return k, v, None

    def _keys_values(self, source: Tensor, values: Tensor, first: int | Tensor) -> tuple[Tensor, Tensor]:
        must_end_in("the source", source, self.key_width, "key_width")
        must_end_in("the source of the values", values, self.value_width, "value_width")
        k = self._rotate(split_heads(self.to_k(source), self.kv_heads), self.k_norm, first)
        return k, split_heads(self.to_v(values), self.kv_heads)

    def _rotate(self, x: Tensor, norm: nn.RMSNorm | None, first: int | Tensor) -> Tensor:
        """q or k, normed and turned where the layer does that."""
        if norm is not None:
            x = norm(x).to(x.dtype)  # autocast would leave float32
        return self.positions(x, first) if isinstance(self.positions, Rotary) else x

    def _first(self, cross: bool, cache: KeyValueCache | None, places: Tensor | None) -> int | Tensor:
        """Where the tokens in x stand: the position of the first, or of each."""
        if places is not None:
            if isinstance(self.positions, Rotary):
                return places
            kind = "none" if self.positions is None else type(self.positions).__name__
            raise PositionError(
                f"places came, but only Rotary turns tokens by their place and positions= is {kind}; leave places out"
            )
        if cache is None:
            return 0
        if cross and isinstance(self.positions, Rotary):
            raise PositionError(
                "cross-attention with a cache does not know where its queries stand, and Rotary needs it; give places="
            )
        return cache.seen

    @classmethod
    def from_torch(cls, theirs: nn.MultiheadAttention) -> "MultiHead":
        """The same layer with copies of the weights of an `nn.MultiheadAttention`.

        Ours is batch first whatever theirs was. `add_bias_kv` and `add_zero_attn` have no counterpart here and
        are refused. Masks change their sense: theirs is True where a query may *not* look (`regard.blocked`).
        """
        from regard.layers.convert import from_torch

        return from_torch(cls, theirs)

    def to_torch(self) -> nn.MultiheadAttention:
        """An `nn.MultiheadAttention(batch_first=True)` with copies of the weights; refuses what it cannot express."""
        from regard.layers.convert import to_torch

        return to_torch(self)

    def extra_repr(self) -> str:
        shared = f", kv_heads={self.kv_heads}" if self.kv_heads != self.heads else ""
        within = f", attention={self.attention!r}" if isinstance(self.attention, Mask) else ""
        return f"{self.width}, heads={self.heads}{shared}, head_width={self.head_width}, dropout={self.dropout}{within}"


def close_gap(k: Float[Tensor, "*_b k d"], cache: KeyValueCache, turn: Rotary) -> Float[Tensor, "*_b k d"]:
    """The keys of a cache, the first of them turned until they stand right before those after the gap."""
    if not cache.gap:
        return k
    first = k[..., : cache.keep_first, :]
    return torch.cat((turn.shift(first, cache.gap), k[..., cache.keep_first :, :]), -2)


def split_heads(x: Float[Tensor, "*_b t c"], heads: int) -> Float[Tensor, "*_c h t d"]:
    """Channels into heads, as a view: (…, t, h·d) → (…, h, t, d)."""
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def merge_heads(x: Float[Tensor, "*_b h t d"]) -> Float[Tensor, "*_c t e"]:
    """Heads side by side again: (…, h, t, d) → (…, t, h·d)."""
    return x.transpose(-3, -2).flatten(-2)
