"""The whole mechanism, and several heads of it, in NumPy."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from regard.attention.reference.arrays import Array, Mask, wide
from regard.attention.reference.scores import dot_scores, scaled_dot_scores
from regard.attention.reference.weights import softmax


class Stages(NamedTuple):
    """Each stage of one call, in the order it was made; scores as they were before the mask.

    >>> Stages._fields
    ('scores', 'weights', 'mix')
    """

    scores: Float[np.ndarray, "*b q k"]
    weights: Float[np.ndarray, "*b q k"]
    mix: Float[np.ndarray, "*b q e"]


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
) -> Stages:
    r"""Let each query gather values from the keys it may see.

    $\mathrm{softmax}(q k^\top / \sqrt d)\,v$ (Vaswani et al. 2017, eq. 1), with what has been added since, in
    this order: scores × `scale`, then `softcap` · tanh(s / `softcap`), then + `bias`, then the mask, then the
    weights, where a `sink` joins the sum below the line. A `scale` takes the place of 1/√d.

    >>> X = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]])
    >>> attend(X, X, X).weights[4].round(4)
    array([0.2374, 0.144 , 0.2374, 0.144 , 0.2374])
    >>> attend(X, X, X, mask=np.tri(5, dtype=bool)).mix[1].round(4)
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
    return Stages(s, weights, mix(weights, wide(v), mask))


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
) -> Stages:
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
    return Stages(one.scores, one.weights, merged @ wo)


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
