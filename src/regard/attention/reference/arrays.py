"""What the other files share: arrays in float64, masks as −inf, one row after the other."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

Array = Float[np.ndarray, "..."]
Mask = Bool[np.ndarray, "..."]


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
