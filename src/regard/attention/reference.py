"""The plain version: attention in NumPy, straight from the formulas, in float64.

Nothing here is clever and nothing is fast; it is the specification that every fast path is compared with.
Shapes are (…, q, d) and (…, k, d), further axes lead and broadcast as NumPy broadcasts. A mask is True where
a query may look. A row that may look nowhere weighs 0 everywhere and mixes to 0.

The examples share one input, five tokens of four channels:

>>> X = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]])
>>> attend(X, X, X).weights[0].round(4)
array([0.2976, 0.1095, 0.1805, 0.1805, 0.2318])
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

Array = Float[np.ndarray, "..."]
Mask = Bool[np.ndarray, "..."]


class Attended(NamedTuple):
    """Each stage of one call, in the order it was made; scores as they were before the mask.

    >>> Attended._fields
    ('scores', 'weights', 'mix')
    """

    scores: Float[np.ndarray, "*b q k"]
    weights: Float[np.ndarray, "*b q k"]
    mix: Float[np.ndarray, "*b q e"]


# q, k → scores


def dot_scores(q: Float[np.ndarray, "*_b q d"], k: Float[np.ndarray, "*_c k d"]) -> Array:
    r"""$q^\top k$ for every pair (Luong et al. 2015, §3.1).

    >>> X = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]])
    >>> dot_scores(X, X)[0]
    array([2. , 0. , 1. , 1. , 1.5])
    """
    scores: Array = wide(q) @ wide(k).swapaxes(-1, -2)  # *b q k
    return scores


def scaled_dot_scores(q: Float[np.ndarray, "*_b q d"], k: Float[np.ndarray, "*_c k d"]) -> Array:
    r"""$q^\top k / \sqrt d$ (Vaswani et al. 2017, eq. 1).

    >>> X = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]])
    >>> scaled_dot_scores(X, X)[[0, 4]]
    array([[1.  , 0.  , 0.5 , 0.5 , 0.75],
           [0.75, 0.25, 0.75, 0.25, 0.75]])
    """
    return dot_scores(q, k) / math.sqrt(q.shape[-1] or 1)


def additive_scores(
    q: Float[np.ndarray, "*_b q d"],
    k: Float[np.ndarray, "*_c k e"],
    w1: Float[np.ndarray, "f d"],
    w2: Float[np.ndarray, "f e"],
    v: Float[np.ndarray, " f"],
) -> Array:
    r"""$v^\top \tanh(W_1 q + W_2 k)$ (Bahdanau et al. 2015, appendix A.1.2).

    >>> q, k = np.array([[1.0]]), np.array([[0.0, 0.0], [1.0, 2.0]])
    >>> additive_scores(q, k, w1=np.array([[0.5]]), w2=np.array([[1.0, 1.0]]), v=np.array([2.0])).round(4)
    array([[0.9242, 1.9964]])
    """
    hidden = np.tanh((wide(q) @ w1.T)[..., :, None, :] + (wide(k) @ w2.T)[..., None, :, :])  # *b q k f
    scores: Array = hidden @ v  # *b q k
    return scores


def bilinear_scores(
    q: Float[np.ndarray, "*_b q d"], k: Float[np.ndarray, "*_c k e"], w: Float[np.ndarray, "d e"]
) -> Array:
    r"""$q^\top W k$ (Luong et al. 2015, §3.1, "general").

    >>> bilinear_scores(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]), w=np.array([[1.0], [0.5]]))
    array([[6., 8.]])
    """
    return dot_scores(wide(q) @ w, k)


def cosine_scores(q: Float[np.ndarray, "*_b q d"], k: Float[np.ndarray, "*_c k d"], eps: float = 1e-6) -> Array:
    r"""$q^\top k / (\lVert q\rVert \lVert k\rVert)$; a vector shorter than `eps` counts as that long.

    >>> cosine_scores(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[1.0, 0.0]]))
    array([[0.6],
           [0. ]])
    """
    q, k = wide(q), wide(k)
    q = q / np.maximum(np.sqrt((q**2).sum(-1, keepdims=True)), eps)
    k = k / np.maximum(np.sqrt((k**2).sum(-1, keepdims=True)), eps)
    return dot_scores(q, k)


def gaussian_scores(q: Float[np.ndarray, "*_b q d"], k: Float[np.ndarray, "*_c k d"], width: float = 1.0) -> Array:
    r"""$-\lVert q - k\rVert^2 / (2\,\mathrm{width}^2)$.

    >>> gaussian_scores(np.array([[0.0]]), np.array([[1.0], [2.0]]))
    array([[-0.5, -2. ]])
    """
    difference = wide(q)[..., :, None, :] - wide(k)[..., None, :, :]  # *b q k d
    squared: Array = ((difference / width) ** 2).sum(-1)  # *b q k
    return -squared / 2


# who may look at whom


def causal_mask(q: int, k: int) -> Bool[np.ndarray, "q k"]:
    """Each query sees itself and what came before. With more keys than queries the last of both coincide.

    >>> causal_mask(2, 3).astype(int)
    array([[1, 1, 0],
           [1, 1, 1]])
    """
    return distance(q, k) <= 0


def window_mask(q: int, k: int, before: int, after: int) -> Bool[np.ndarray, "q k"]:
    """Each query sees itself, `before` keys to its left and `after` to its right; the ends are aligned.

    >>> window_mask(3, 3, before=1, after=0).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [0, 1, 1]])
    """
    return (distance(q, k) >= -before) & (distance(q, k) <= after)


def padding_mask(lengths: Int[np.ndarray, "..."], k: int) -> Bool[np.ndarray, "b _ k"]:
    """Only the first so many keys are real. Lengths (b,) give (b, 1, k), lengths (b, q) give (b, q, k).

    With heads, (b, h, q, k), write `padding_mask(lengths, k)[:, None]`.

    >>> padding_mask(np.array([1, 3]), 3).astype(int)
    array([[[1, 0, 0]],
           [[1, 1, 1]]])
    """
    per_query = lengths[:, None] if lengths.ndim == 1 else lengths  # b q
    return np.arange(k) < per_query[..., None]


def distance(q: int, k: int) -> Int[np.ndarray, "q k"]:
    """How far to the right of each query each key stands, when the last query stands at the last key.

    >>> distance(2, 3)
    array([[-1,  0,  1],
           [-2, -1,  0]])
    """
    return np.arange(k)[None, :] - (np.arange(q)[:, None] + k - q)


# scores, mask → weights


def softmax(scores: Array, mask: Mask | None = None, *, sink: Array | float | None = None) -> Array:
    r"""$e^{s_j} / \sum_i e^{s_i}$ over the visible keys; a `sink` (…, q, 1) is one more term below the line.

    The largest logit is subtracted first: the ratio stays the same, and no power overflows.

    >>> softmax(np.array([[1.0, 2.0, 3.0]]), np.array([[True, True, False]])).round(4)
    array([[0.2689, 0.7311, 0.    ]])
    """
    scores = hide(scores, mask)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    if sink is not None:
        top = np.maximum(top, sink)
    top = np.where(top == -np.inf, 0.0, top)
    powers: Array = np.exp(scores - top)
    total = powers.sum(-1, keepdims=True) + (0.0 if sink is None else np.exp(sink - top))
    return powers / np.where(total == 0, 1.0, total)


def sparsemax(scores: Array, mask: Mask | None = None) -> Array:
    r"""$[s - \tau]_+$ with τ such that a row adds to one (Martins & Astudillo 2016, algorithm 1).

    >>> sparsemax(np.array([[1.0, 0.5, 0.1, -2.0]]))
    array([[0.75, 0.25, 0.  , 0.  ]])
    """

    def weigh(s: Array) -> Array:
        z = np.sort(s)[::-1]
        count = np.arange(1, len(z) + 1)
        size = count[1 + count * z > z.cumsum()].max()
        tau = (z[:size].sum() - 1) / size
        weights: Array = np.maximum(s - tau, 0)
        return weights

    return each_row(weigh, scores, mask)


def entmax15(scores: Array, mask: Mask | None = None) -> Array:
    r"""$[s/2 - \tau]_+^2$ with τ such that a row adds to one (Peters et al. 2019, algorithm 2).

    >>> entmax15(np.array([[2.0, 1.0, -3.0]])).round(4)
    array([[0.8307, 0.1693, 0.    ]])
    """

    def weigh(s: Array) -> Array:
        z = np.sort(s / 2)[::-1]
        for size in range(1, len(z) + 1):
            mean = z[:size].mean()
            spread = ((z[:size] - mean) ** 2).sum()
            candidate = mean - math.sqrt(max(1 - spread, 0) / size)
            if candidate > z[size - 1]:
                break
            tau = candidate
        weights: Array = np.maximum(s / 2 - tau, 0) ** 2
        return weights

    return each_row(weigh, scores, mask)


def sigmoid(scores: Array, mask: Mask | None = None, *, bias: float = 0.0) -> Array:
    r"""$1 / (1 + e^{-(s + \mathrm{bias})})$ for each visible key by itself.

    >>> sigmoid(np.array([[0.0, 2.0, 5.0]]), np.array([[True, True, False]])).round(4)
    array([[0.5   , 0.8808, 0.    ]])
    """
    scores = hide(scores, mask) + bias
    small = np.exp(-np.abs(scores))  # never above 1
    return np.where(scores >= 0, 1 / (1 + small), small / (1 + small))


def top_k(scores: Array, mask: Mask | None = None, *, k: int) -> Array:
    """Softmax over the `k` best visible keys of each row; equal scores go to the key that comes first.

    >>> top_k(np.array([[1.0, 2.0, 1.0, 0.0]]), k=2).round(4)
    array([[0.2689, 0.7311, 0.    , 0.    ]])
    """

    def weigh(s: Array) -> Array:
        best = np.argsort(-s, kind="stable")[:k]
        return softmax(s, np.isin(np.arange(len(s)), best))

    return each_row(weigh, scores, mask)


# the whole mechanism


def attend(
    q: Float[np.ndarray, "*_b q d"],
    k: Float[np.ndarray, "*_c k _d"],
    v: Float[np.ndarray, "*_c k e"],
    *,
    scores: Callable[..., Array] = scaled_dot_scores,
    mask: Mask | None = None,
    scale: float | None = None,
    bias: Array | None = None,
    softcap: float | None = None,
    sink: Array | float | None = None,
    normalise: Callable[..., Array] = softmax,
) -> Attended:
    r"""Let each query gather values from the keys it may see.

    $\mathrm{softmax}(q k^\top / \sqrt d)\,v$ (Vaswani et al. 2017, eq. 1), with what has been added since, in
    this order: scores × `scale`, then `softcap` · tanh(s / `softcap`), then + `bias`, then the mask, then the
    weights, where a `sink` joins the sum below the line. A `scale` takes the place of 1/√d.

    >>> X = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]])
    >>> attend(X, X, X).weights[4].round(4)
    array([0.2374, 0.144 , 0.2374, 0.144 , 0.2374])
    >>> attend(X, X, X, mask=causal_mask(5, 5)).mix[1].round(4)
    array([0.2689, 0.7311, 0.2689, 0.7311])
    """
    if scale is None:
        s = scores(q, k)
    else:
        s = scale * (dot_scores if scores is scaled_dot_scores else scores)(q, k)
    if softcap is not None:
        s = softcap * np.tanh(s / softcap)
    seen = np.ones_like(s, dtype=bool) if mask is None else np.broadcast_to(mask, s.shape)
    lost = seen.any(-1) & (~seen | (s == -np.inf)).all(-1)  # *b q: 0 / 0, though keys are seen
    if bias is not None:
        s = s + bias
    weights = normalise(s, mask) if sink is None else normalise(s, mask, sink=sink)
    if normalise is softmax and sink is None:
        weights = np.where(lost[..., None] & seen, np.nan, weights)
    return Attended(s, weights, mix(weights, wide(v), mask))


def mix(weights: Array, v: Array, mask: Mask | None = None) -> Array:
    """The values, weighted and added. A value that a query may not see is not read, not even times 0.

    >>> mix(np.array([[0.25, 0.75]]), np.array([[4.0], [8.0]]))
    array([[7.]])
    """
    seen = v[..., None, :, :]  # *b 1 k e
    if mask is not None:
        seen = np.where(mask[..., None], seen, 0.0)  # *b q k e
    mixed: Array = (weights[..., None] * seen).sum(-2)  # *b q e
    return mixed


def multi_head(
    x: Float[np.ndarray, "*b t m"],
    wq: Float[np.ndarray, "m n"],
    wk: Float[np.ndarray, "m n"],
    wv: Float[np.ndarray, "m n"],
    wo: Float[np.ndarray, "n _"],
    heads: int,
    mask: Mask | None = None,
) -> Attended:
    r"""Several small attentions side by side: $\mathrm{concat}(\mathrm{head}_1, …)\,W^O$.

    Vaswani et al. 2017, §3.2.2. Matrices stand on the right, $x W^Q$. Scores and weights are kept per head,
    (…, h, t, t); `mix` is projected out, (…, t, m). The mask broadcasts to (…, h, t, t).

    >>> X = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]])
    >>> a = multi_head(X, np.eye(4), np.eye(4), np.eye(4), np.eye(4), heads=2)
    >>> a.weights.shape, a.mix.shape
    ((2, 5, 5), (5, 4))
    >>> np.allclose(a.mix[:, :2], attend(X[:, :2], X[:, :2], X[:, :2]).mix)
    True
    """
    q, k, v = (split_heads(wide(x) @ w, heads) for w in (wq, wk, wv))  # *b h t d
    one = attend(q, k, v, mask=mask)
    merged = one.mix.swapaxes(-2, -3).reshape(*x.shape[:-1], -1)  # *b t n
    return Attended(one.scores, one.weights, merged @ wo)


def split_heads(x: Float[np.ndarray, "*_b t m"], heads: int) -> Float[np.ndarray, "*_b h t d"]:
    """Channels dealt out to heads in order: (…, t, m) → (…, h, t, m / h).

    >>> split_heads(np.array([[1.0, 2.0, 3.0, 4.0]]), 2)
    array([[[1., 2.]],
           [[3., 4.]]])
    """
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads).swapaxes(-2, -3)


def repeat_heads(x: Float[np.ndarray, "*_b g k d"], heads: int) -> Float[np.ndarray, "*_b h k d"]:
    """Keys or values of few heads for many query heads: 0 0 0 1 1 1 … (grouped queries, Ainslie et al. 2023).

    >>> repeat_heads(np.array([[[1.0]], [[2.0]]]), 4).ravel()
    array([1., 1., 2., 2.])
    """
    return x.repeat(heads // x.shape[-3], axis=-3)


# positions, and where attention comes from


def sinusoid(length: int, width: int) -> Float[np.ndarray, "t m"]:
    r"""$\sin(t / 10000^{2i/m})$ in channel 2i and the cosine in 2i + 1 (Vaswani et al. 2017, §3.5).

    >>> sinusoid(2, 4).round(4)
    array([[0.    , 1.    , 0.    , 1.    ],
           [0.8415, 0.5403, 0.01  , 1.    ]])
    """
    channel = np.arange(width)
    angle = np.arange(length)[:, None] / 10000 ** ((channel - channel % 2) / width)  # t m
    return np.where(channel % 2 == 0, np.sin(angle), np.cos(angle))


def nadaraya_watson(
    x: Float[np.ndarray, " q"],
    keys: Float[np.ndarray, " k"],
    values: Float[np.ndarray, " k"],
    width: float = 1.0,
) -> Float[np.ndarray, " q"]:
    r"""A mean of the values, nearer keys counting more: $\sum_j K(x - x_j)\,y_j / \sum_j K(x - x_j)$.

    K is a Gaussian. Nadaraya 1964, Watson 1964: attention before it had a name.

    >>> nadaraya_watson(np.array([0.0, 9.0]), keys=np.array([-1.0, 1.0]), values=np.array([2.0, 4.0]))
    array([3.        , 3.99999997])
    """
    return attend(x[:, None], keys[:, None], values[:, None], scores=lambda q, k: gaussian_scores(q, k, width)).mix[
        :, 0
    ]


# what the functions above share


def wide(x: Array) -> Array:
    """In float64, whatever came.

    >>> wide(np.ones(1, dtype=np.float32)).dtype
    dtype('float64')
    """
    return x.astype(np.float64)


def hide(scores: Array, mask: Mask | None) -> Array:
    """−inf where a query may not look, whatever stood there.

    >>> hide(np.array([[1.0, np.nan]]), np.array([[True, False]]))
    array([[  1., -inf]])
    """
    return wide(scores) if mask is None else np.where(mask, wide(scores), -np.inf)


def each_row(weigh: Callable[[Array], Array], scores: Array, mask: Mask | None) -> Array:
    """One row after the other: the visible scores are weighed, the others get 0.

    A row is shifted so that its largest is 0, which changes no weight; NaN or +inf make it NaN.

    >>> each_row(np.exp, np.array([[5.0, 4.0, 9.0]]), np.array([[True, True, False]])).round(4)
    array([[1.    , 0.3679, 0.    ]])
    """
    scores = hide(scores, mask)
    weights = np.zeros_like(scores)
    for row in np.ndindex(scores.shape[:-1]):
        visible = scores[row] != -np.inf
        seen = scores[row][visible]
        if not np.isfinite(seen).all():
            weights[row][visible] = np.nan
        elif len(seen):
            weights[row][visible] = weigh(seen - seen.max())
    return weights
