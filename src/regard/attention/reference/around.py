"""Positions, and where attention comes from, in NumPy."""

import numpy as np
from jaxtyping import Float

from regard.attention.reference.mechanism import attend
from regard.attention.reference.scores import gaussian_scores


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
