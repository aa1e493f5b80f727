"""q, k → scores, in NumPy."""

import math

import numpy as np
from jaxtyping import Float

from regard.attention.reference.arrays import Array, wide


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
