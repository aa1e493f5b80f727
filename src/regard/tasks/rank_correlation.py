"""Spearman's rank correlation: whether two lists of numbers put the same things first."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float


def rank_values(values: Sequence[float] | np.ndarray) -> Float[np.ndarray, " n"]:
    """The rank of each value from 1 on, the smallest first; equal values share the mean of their ranks.

    >>> rank_values([0.3, 0.1, 0.3, 0.7])
    array([2.5, 1. , 2.5, 4. ])
    """
    array = np.asarray(values, dtype=np.float64)
    _, which, counts = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[which]


def rank_correlation(first: Sequence[float] | np.ndarray, second: Sequence[float] | np.ndarray) -> float:
    """Pearson's correlation of the ranks, from −1 to 1 (Spearman 1904); NaN where all of one side are equal.

    >>> round(rank_correlation(np.arange(4), np.array([10, 20, 40, 30])), 3)
    0.8
    """
    one, other = (rank_values(side) - rank_values(side).mean() for side in (first, second))
    length = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / length if length else float("nan")
