"""What a finished text pays for its length, and for what it left unsaid (Wu et al. 2016, eq. 14)."""

import math
from collections.abc import Callable

from torch import Tensor

from regard.errors import ConfigError

LengthPenalty = Callable[[int], float]  # length with END → what the log-probability is divided by


def plain(alpha: float | int) -> LengthPenalty:
    """len^α, as in `transformers`: 0 leaves the log-probability, 1 makes it the mean of its tokens'.

    >>> plain(2)(3)
    9.0
    """
    return lambda length: float(length**alpha)


def wu(alpha: float | int) -> LengthPenalty:
    """((5 + len) / 6)^α (Wu et al. 2016, eq. 14).

    >>> wu(1)(13)
    3.0
    """
    return lambda length: float(((5 + length) / 6) ** alpha)


RULES: dict[str, Callable[[float | int], LengthPenalty]] = {"plain": plain, "wu": wu}


def length_divisor(penalty: float | int | LengthPenalty, rule: str) -> LengthPenalty:
    """The penalty itself where it is a function, else the `rule` of that name with this exponent."""
    if callable(penalty):
        return penalty
    if not math.isfinite(penalty):
        raise ConfigError(f"length_penalty is {penalty}, but it is an exponent; give a finite number, or a function")
    if rule not in RULES:
        raise ConfigError(f"length_rule is {rule!r}; choose one of {', '.join(map(repr, RULES))}")
    return RULES[rule](penalty)


def coverage(looked: Tensor, beta: float | int) -> Tensor:
    r"""$\beta \sum_i \log \min(\sum_j p_{ij}, 1)$ for `looked` (b, s), the sums over the steps j; (b,).

    A position that was never looked at at all is padding and costs nothing.
    """
    return beta * looked.clamp(max=1).where(looked > 0, 1).log().sum(-1)
