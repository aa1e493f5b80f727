"""q, k → scores. How well a query fits a key; those with parameters are small modules."""

from regard.attention.score.additive import Additive, additive_scores
from regard.attention.score.base import Score
from regard.attention.score.bilinear import Bilinear
from regard.attention.score.cosine import Cosine
from regard.attention.score.dot import Dot, ScaledDot
from regard.attention.score.gaussian import Gaussian, gaussian_scores

__all__ = [
    "Additive",
    "Bilinear",
    "Cosine",
    "Dot",
    "Gaussian",
    "ScaledDot",
    "Score",
    "additive_scores",
    "gaussian_scores",
]
