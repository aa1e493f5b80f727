"""Who may look at whom, in NumPy."""

import numpy as np
from jaxtyping import Bool, Int


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
