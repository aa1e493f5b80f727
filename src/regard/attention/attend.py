"""The whole mechanism on one screen: q, k, v → scores → mask → weights → mix."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Generator, Tensor

from regard.attention.check import full_rank, must_be_float, must_be_tensors, sizes_of
from regard.attention.kernels.biased import attend_biased
from regard.attention.kernels.dropping import attend_dropping
from regard.attention.kernels.explicit import attend_explicitly
from regard.attention.kernels.fast_path import attend_usual
from regard.attention.kernels.finite import expose, needs_care
from regard.attention.kernels.fused import attend_fused
from regard.attention.map import AttentionMap, Computed, DropoutRecord
from regard.attention.map.computed import Weigh
from regard.attention.mask import Mask, Sizes, as_mask
from regard.attention.matrix_free.error import Error, error
from regard.attention.matrix_free.mechanism import Mechanism, must_serve
from regard.attention.observe import notify
from regard.attention.score.base import Score
from regard.attention.score.bias import Bias
from regard.attention.weigh.softmax import softmax
from regard.eager import autocasts, has_tangent, is_transformed, readable
from regard.errors import PathError, ShapeError

Maskable = Mask | Tensor | Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class Attended(NamedTuple):
    """What one call gave: the mix, the map to ask, and the way it was computed.

    `path` is "fused" (PyTorch's kernel), "sliced" (the same, each sequence on its own keys), "banded" (the same, each
    block of queries on the keys that it can see), "explicit", or the name of what was given as `by`: "performer" or
    "linformer". `v` is what was mixed.

    >>> import regard, torch
    >>> x = torch.eye(2)
    >>> regard.attend(x, x, x).path
    'fused'
    """

    mix: Float[Tensor, "*_b q e"]
    weights: AttentionMap
    path: str
    v: Tensor | None = None

    def error(self) -> Error:
        """How far this is from exact attention on the same tensors: (mix, weights), block by block in float64.

        `mix` is the relative error of the mix, `weights` the mean and the largest total variation of a row. A few
        times the work of exact attention, and memory that does not grow with q × k. Exact paths are measured the
        same way: what rounding leaves, about 1e-7 in float32, and whatever dropout took.

        >>> import regard, torch
        >>> x = torch.randn(1, 2, 40, 8, generator=torch.Generator().manual_seed(0))
        >>> few, many = (regard.attend(x, x, x, by=regard.Performer(8, m)).error() for m in (32, 2048))
        >>> 1 > few.mix > many.mix > 0, 1 > few.weights.mean > many.weights.mean > 0
        (True, True)
        """
        return error(self.weights, self.mix, self.v)


def attend(
    q: Shaped[Tensor, "*_b _q _d"],
    k: Shaped[Tensor, "*_c _k _f"],
    v: Shaped[Tensor, "*_d _k _e"],
    *,
    score: Score | None = None,
    mask: Maskable | None = None,
    weigh: Weigh | None = None,
    scale: float | Tensor | None = None,
    bias: Tensor | Bias | None = None,
    softcap: float | None = None,
    sink_logits: Tensor | None = None,
    dropout: float = 0.0,
    path: str | None = None,
    generator: Generator | None = None,
    by: Mechanism | None = None,
) -> Attended:
    r"""Let each query gather values from the keys it may see.

    $w = \mathrm{softmax}(q k^\top / \sqrt d)$, $\mathrm{mix} = w v$ (Vaswani et al. 2017, eq. 1), with the
    score function, the normaliser and everything between them free to choose, in this order: score · scale,
    `softcap` · tanh(score / softcap), + bias, mask, `weigh`.

    Shapes are (…, h, q, d), also without heads or batch. k and v may have fewer heads than q (grouped), v
    another width. `mask` is a mask such as `causal() & padding(lengths)`, a boolean tensor of full rank, True
    where a query may look, or a function of (b, h, q, k). A query that may look nowhere mixes to zero.
    `sink_logits` (h,) adds one logit to each head's normaliser (softmax only).

    `mix` comes from the fastest kernel that can honour the request, `weights` is computed when somebody looks
    and is the weights before `dropout`. `path` forces "fused" or "explicit"; `generator` seeds the dropout.

    `by` is a mechanism that never makes the matrix, `Performer(…)` or `Linformer(…)`: the mix is its own, `weights`
    what it amounts to (`kind` "implied"), and `error()` of what comes back how far both are from exact attention.

    >>> import regard, torch
    >>> q = k = v = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]])
    >>> a = regard.attend(q, k, v)
    >>> a.weights[0]
    tensor([0.2976, 0.1095, 0.1805, 0.1805, 0.2318])
    >>> a.mix[0]
    tensor([0.7100, 0.4059, 0.5941, 0.2900])
    """
    if score is None and weigh is None and scale is None and bias is None and softcap is None and path is None:
        found = attend_usual(q, k, v, mask) if sink_logits is None and not dropout and by is None else None
        if found is not None:
            return notify(Attended(*found, "fused", v), v)
    if by is not None:
        only = {"score": score, "weigh": weigh, "bias": bias, "softcap": softcap, "sink_logits": sink_logits}
        must_serve(by, **only, dropout=dropout, path=path)
    must_be_tensors(q, k, v)
    if score is not None:
        q, k = score.prepare(q, k)
    sizes = sizes_of(q, k, v)
    must_be_float(q)
    q, k, v = as_autocast(q, k, v)
    if scale is None:
        scale = default_scale(q.shape[-1]) if score is None else score.scale(q.shape[-1])
    elif isinstance(scale, Tensor):
        q, scale = (q * scale).to(q.dtype), 1.0
    seen = None if mask is None else as_mask(mask, sizes)
    if isinstance(bias, Tensor):
        bias = full_rank("bias", bias, (*sizes.lead, sizes.q, sizes.k))
    elif bias is not None and bias.heads != sizes.heads:
        raise ShapeError(
            f"{type(bias).__name__} is for {bias.heads} heads, but q has {sizes.heads}; make it for {sizes.heads}"
        )
    if softcap is not None and not softcap > 0:
        raise ValueError(
            f"softcap is {softcap}, but scores are capped at a size; give a number above 0, or leave it out"
        )
    if sink_logits is not None and weigh is not None and weigh is not softmax:
        raise PathError(
            f"sink_logits join the normaliser of softmax, and {getattr(weigh, '__name__', weigh)} has none; "
            "leave one of the two out"
        )
    sink = None if sink_logits is None else as_sink(sink_logits, sizes)
    live = readable(q)
    computed = Computed(
        q,
        k,
        sizes,
        score=score,
        scale=scale,
        mask=seen,
        bias=bias,
        softcap=softcap,
        sink=sink,
        weigh=softmax if weigh is None else weigh,
        live=live,
    )
    if by is not None:
        mix, implied = by.attend(computed, v)
        return notify(Attended(mix, AttentionMap(implied), by.name, v), v)
    why_not = (
        why_unfused(computed, v, dropout, generator, live) if path != "explicit" else "path='explicit' was asked for"
    )
    if path == "fused" and why_not:
        raise PathError(f"the fused path cannot serve this call, because {why_not}; leave path= out")
    if path not in (None, "fused", "explicit"):
        raise PathError(f"path is {path!r}, but there are 'fused' and 'explicit'; leave it out to have one picked")
    if not why_not:
        mix, took = attend_fused(q, k, v, sizes, seen, bias, scale, dropout, live)
        if not live or not needs_care(mix, computed, v, flagged=took == "sliced"):
            weights = AttentionMap(computed, dropped=DropoutRecord(dropout, None) if dropout else None)
            return notify(Attended(mix, weights, took, v), v)
    computed = expose(computed) if live else computed
    dropped = as_dropped(dropout, generator, q)
    quick = None
    if path != "explicit" and dropped is not None:
        quick = attend_dropping(computed, v, dropped)
    elif path != "explicit" and torch.is_grad_enabled():
        quick = attend_biased(computed, v)
    mix = attend_explicitly(computed, v, dropped) if quick is None else quick
    attended = Attended(mix, AttentionMap(computed, dropped=dropped), "explicit", v)
    return notify(attended, v)


def default_scale(width: int) -> float:
    """1/√d, which keeps the variance of a score at 1 (Vaswani et al. 2017, §3.2.1); 1 where d = 0."""
    return 1.0 / math.sqrt(width) if width else 1.0


def as_autocast(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What autocast would hand to a fused kernel, so that both paths and the map see the same numbers."""
    if not autocasts(q) or q.dtype == torch.float64:
        return q, k, v
    dtype = torch.get_autocast_dtype(q.device.type)
    return q.to(dtype), k.to(dtype), v.to(dtype)


def as_sink(sink_logits: Tensor, sizes: Sizes) -> Tensor:
    """One logit per head, with all axes of the map."""
    if sink_logits.dim() == 1 and sizes.lead and sink_logits.shape[0] == sizes.heads:
        sink_logits = sink_logits[:, None, None]
        return sink_logits.reshape((1,) * (len(sizes.lead) - 1) + tuple(sink_logits.shape))
    return full_rank("sink_logits", sink_logits, (*sizes.lead, sizes.q, 1))


def as_dropped(dropout: float, generator: Generator | None, q: Tensor) -> DropoutRecord | None:
    """A seed of its own for each call, so that what was dropped can be shown later."""
    if not 0.0 <= dropout <= 1.0:
        raise ValueError(f"dropout is {dropout}, but it is a share; give a number from 0 to 1")
    if not dropout:
        return None
    if torch.compiler.is_compiling() or is_transformed() or q.is_meta:
        return DropoutRecord(dropout, None)
    device = q.device if generator is None else generator.device
    return DropoutRecord(dropout, int(torch.randint(2**62, (), generator=generator, device=device)))


def why_unfused(computed: Computed, v: Tensor, dropout: float, generator: Generator | None, live: bool) -> str:
    """Why PyTorch's kernels cannot serve this call; empty where they can."""
    q, k, sizes = computed.q, computed.k, computed.sizes
    if not computed.is_dot:
        return f"{type(computed.score).__name__} is no product of q and k"
    if not computed.is_softmax:
        return f"the weights come from {computed.weigher} instead of softmax"
    if computed.softcap is not None:
        return "the scores are capped"
    if computed.sink is not None:
        return "a sink joins the normaliser"
    if dropout and (q.device.type == "cpu" or generator is not None):
        return "dropout is asked for, which no fused kernel does here"
    if not sizes.q or not sizes.k or not q.shape[-1] or not v.shape[-1] or 0 in sizes.lead:
        return "there is nothing to fuse: an axis has size 0"
    if computed.bias is not None and torch.is_grad_enabled() and wants_gradient(computed.bias):
        return "the bias asks for a gradient"
    if not live and is_transformed():
        return "a torch.func transform is running"
    if live and has_tangent(q, k, v):
        return "forward-mode derivatives flow through it"
    return ""


def wants_gradient(bias: Tensor | Bias) -> bool:
    if isinstance(bias, Tensor):
        return bias.requires_grad
    return any(p.requires_grad for p in getattr(bias, "parameters", list)())
