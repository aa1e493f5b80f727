"""scores, mask → weights, in NumPy."""

import math

import numpy as np

from regard.attention.reference.arrays import Array, Mask, each_row, hide


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
