"""The first example, worked by hand: five tokens of four channels, every step shown, then checked."""

import math

import numpy as np
import torch

from regard.attention import reference
from regard.attention.attend import attend
from regard.views.static.terminal import shade, table

X = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]])
TOKENS = ["x1", "x2", "x3", "x4", "x5"]
CHANNELS = ["c1", "c2", "c3", "c4"]


def by_hand_text() -> str:
    """Every step from X to the mix as text that reads at 80 columns, and how well `attend` agrees with it."""
    scores = reference.scaled_dot_scores(X, X)
    top = scores.max(-1, keepdims=True)
    powers = np.exp(scores - top)
    total = powers.sum(-1, keepdims=True)
    weights = reference.softmax(scores)
    mix = reference.attend(X, X, X).mix
    parts = [
        "Attention by hand: five tokens of four channels, every step shown.\n"
        "A row is a query, a column is a key, in every table.",
        "1. What is read: X, one row per token.\n"
        "   Each token asks, offers and carries itself: Q = K = V = X.\n\n"
        + table(X, TOKENS, CHANNELS, digits=1, indent=3),
        "2. Scores: Q Kᵀ, how well each query matches each key.\n"
        f"   x1 with x5: {_products(X[0], X[4])}\n\n"
        + table(reference.dot_scores(X, X), TOKENS, TOKENS, digits=2, indent=3),
        "3. Scale: divide by √d = √4 = 2, so that scores do not grow with the width.\n\n"
        + table(scores, TOKENS, TOKENS, digits=2, indent=3),
        "4. Softmax, row by row: the weights of each query add up to 1.\n\n"
        "   a. Subtract the row's maximum: same weights, and exp cannot overflow.\n\n"
        + table(np.hstack([scores - top, top]), TOKENS, [*TOKENS, "max"], digits=2, indent=3),
        "   b. Exponentiate, and sum each row.\n\n"
        + table(np.hstack([powers, total]), TOKENS, [*TOKENS, "sum"], indent=3),
        f"   c. Divide by the sum: the weights. x1 with x2: {powers[0, 1]:.4f} / {total[0, 0]:.4f}.\n\n"
        + table(np.hstack([weights, weights.sum(-1, keepdims=True)]), TOKENS, [*TOKENS, "sum"], indent=3),
        "   The same as a picture (darker is more):\n\n" + shade(weights, TOKENS, indent=3),
        "5. Mix: weights × V, the weighted sum of the values for each query.\n"
        f"   x1, first channel: {_products(weights[0], X[:, 0])}\n\n" + table(mix, TOKENS, CHANNELS, indent=3),
        "6. Check: " + _check(weights, mix),
        "Next: try it on your own numbers.\n\n"
        "   >>> import regard, torch\n"
        "   >>> x = torch.randn(5, 4)\n"
        "   >>> a = regard.attend(x, x, x, mask=regard.causal())\n"
        "   >>> a.weights[4]        # what the last token looks at\n"
        "   >>> help(regard)        # the road, station by station",
    ]
    return "\n\n".join(parts)


def _products(left: np.ndarray, right: np.ndarray) -> str:
    """A sum of products written out, without the terms that are zero.

    >>> _products(np.array([1, 0, 2]), np.array([0.5, 7, 3]))
    '1 · 0.5 + 2 · 3 = 6.5'
    """
    terms = [f"{a:.4g} · {b:.4g}" for a, b in zip(left, right, strict=True) if a and b]
    return f"{' + '.join(terms) or '0'} = {left @ right:.4g}"


def _check(weights: np.ndarray, mix: np.ndarray) -> str:
    """Whether `regard.attend` gives the same, and through which kernel."""
    x = torch.from_numpy(X)
    a = attend(x, x, x)
    whole = a.weights.dense().numpy()
    return (
        f"regard.attend(X, X, X) computed the mix by its {a.path!r} path.\n"
        f"   All {weights.size} weights agree with the steps above {_digits(whole, weights)},\n"
        f"   all {mix.size} numbers of the mix {_digits(a.mix.numpy(), mix)}."
    )


def _digits(ours: np.ndarray, expected: np.ndarray) -> str:
    """How many digits after the point two results share.

    >>> _digits(np.array([0.25]), np.array([0.2500001]))
    'to 6 digits'
    """
    furthest = float(np.abs(ours - expected).max())
    if math.isnan(furthest) or furthest >= 0.05:
        return f"NOT: they differ by {furthest:.3g}"
    return "to the last bit" if furthest == 0 else f"to {math.floor(-math.log10(2 * furthest))} digits"
