"""Rotary frequencies for texts longer than those a model was trained on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@runtime_checkable
class Scaling(Protocol):
    """New frequencies for old: what `Rotary(scaling=…)` takes. Frequencies are radians per position."""

    @property
    def magnitude(self) -> float:
        """What cos and sin are multiplied by, so scores grow by its square."""
        ...

    def scale(self, frequencies: Sequence[float], base: float | int) -> tuple[float, ...]:
        """The frequencies $base^{-2i/d}$, i = 0 … d/2 − 1, made slower."""
        ...


@dataclass(frozen=True)
class LinearScaling:
    r"""Position interpolation: every frequency divided by `factor`, as if positions stood closer.

    $\theta_i' = \theta_i / s$ (Chen et al. 2023, §2.3).

    >>> LinearScaling(factor=4).scale((1.0, 0.1), base=100)
    (0.25, 0.025)
    """

    factor: float | int  # how many times longer than trained

    magnitude = 1.0

    def __post_init__(self) -> None:
        _check_factor(self.factor)

    def scale(self, frequencies: Sequence[float], base: float | int) -> tuple[float, ...]:
        return tuple(each / self.factor for each in frequencies)


@dataclass(frozen=True)
class NTKScaling:
    r"""NTK-aware: a larger base, so that the slowest pair is interpolated fully and the fastest not at all.

    $base' = base \cdot s^{d/(d-2)}$, d the channels that turn (bloc97 2023; Peng et al. 2024, §3.1), which is
    $\theta_i' = \theta_i \, s^{-2i/(d-2)}$. A single pair (d = 2) is the fastest, and stays.

    >>> NTKScaling(factor=4).scale((1.0, 0.1), base=100)
    (1.0, 0.025)
    """

    factor: float | int  # how many times longer than trained

    magnitude = 1.0

    def __post_init__(self) -> None:
        _check_factor(self.factor)

    @classmethod
    def at(cls, length: int, *, factor: float | int, original: int) -> "NTKScaling":
        r"""What the dynamic form has reached at a length: $s \ell / L - (s - 1)$; 1 up to L, the `original`.

        >>> NTKScaling.at(8192, factor=2, original=4096)
        NTKScaling(factor=3.0)
        """
        return cls(factor * max(length, original) / original - (factor - 1))

    def scale(self, frequencies: Sequence[float], base: float | int) -> tuple[float, ...]:
        last = max(len(frequencies) - 1, 1)  # (d − 2) / 2
        return tuple(each * self.factor ** (-i / last) for i, each in enumerate(frequencies))


@dataclass(frozen=True)
class YarnScaling:
    r"""YaRN: pairs that turn often keep their frequency, slow ones are interpolated, a ramp lies between.

    A pair makes $L\theta_i/2\pi$ turns within the original length L: $\theta_i$ stays where they are more
    than `beta_fast`, and is $\theta_i/s$ where they are fewer than `beta_slow` (Peng et al. 2024, §3.2). The
    ramp is linear in i between these two pairs, rounded outwards, as in the authors' code. cos and sin are
    multiplied by $0.1 \ln s + 1$ (§3.4) unless `attention_factor` is given.

    >>> yarn = YarnScaling(factor=4, original=100, beta_fast=8)
    >>> yarn.scale((1.0, 0.1, 0.01), base=1000)
    (1.0, 0.0625, 0.0025)
    >>> round(yarn.magnitude, 4)
    1.1386
    """

    factor: float | int  # how many times longer than trained
    original: int  # the length it was trained on
    beta_fast: float | int = 32  # turns from which a pair keeps its frequency
    beta_slow: float | int = 1  # turns up to which a pair is interpolated fully
    attention_factor: float | int | None = None  # instead of 0.1 ln(factor) + 1

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        _check_order("beta_slow", self.beta_slow, "beta_fast", self.beta_fast)

    @property
    def magnitude(self) -> float:
        if self.attention_factor is not None:
            return float(self.attention_factor)
        return 0.1 * math.log(self.factor) + 1.0

    def scale(self, frequencies: Sequence[float], base: float | int) -> tuple[float, ...]:
        width = 2 * len(frequencies)

        def pair(turns: float | int) -> float:
            """The pair, as a real number, that makes so many turns within the original length."""
            return width * math.log(self.original / (turns * 2 * math.pi)) / (2 * math.log(base))

        low = max(math.floor(pair(self.beta_fast)), 0)
        high = min(math.ceil(pair(self.beta_slow)), width - 1)
        span = high - low if high != low else 0.001  # as published; a step where there is no room for a ramp
        ramp = [min(max((i - low) / span, 0.0), 1.0) for i in range(len(frequencies))]
        return tuple(each / self.factor * r + each * (1 - r) for each, r in zip(frequencies, ramp))


@dataclass(frozen=True)
class Llama3Scaling:
    r"""Llama 3.1: like YaRN's ramp, but linear in the number of turns, and nothing else multiplied.

    With $r = L\theta_i/2\pi$ turns within the original length L: $\theta_i$ where r > `high_frequency`,
    $\theta_i/s$ where r < `low_frequency`, between them $(1-u)\theta_i/s + u\theta_i$ with u the share of the
    way, $(r - low)/(high - low)$ (`apply_scaling` in meta-llama/llama-models).

    >>> llama = Llama3Scaling(factor=8, low_frequency=1, high_frequency=4, original=100)
    >>> [round(each, 4) for each in llama.scale((1.0, 0.1, 0.01), base=1000)]
    [1.0, 0.0298, 0.0013]
    """

    factor: float | int  # how many times longer than trained
    low_frequency: float | int  # turns up to which a pair is interpolated fully
    high_frequency: float | int  # turns from which a pair keeps its frequency
    original: int  # the length it was trained on

    magnitude = 1.0

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        _check_order("low_frequency", self.low_frequency, "high_frequency", self.high_frequency)

    def scale(self, frequencies: Sequence[float], base: float | int) -> tuple[float, ...]:
        def one(frequency: float) -> float:
            turns = self.original * frequency / (2 * math.pi)
            share = (turns - self.low_frequency) / (self.high_frequency - self.low_frequency)
            share = min(max(share, 0.0), 1.0)
            return (1 - share) * frequency / self.factor + share * frequency

        return tuple(one(each) for each in frequencies)


def _check_factor(factor: float | int) -> None:
    if factor < 1:
        raise ValueError(
            f"factor {factor} came; wanted how many times longer than trained, at least 1; "
            "a shorter text needs no scaling"
        )


def _check_order(low_name: str, low: float | int, high_name: str, high: float | int) -> None:
    if not 0 < low < high:
        raise ValueError(f"{low_name} {low} and {high_name} {high} came; wanted 0 < {low_name} < {high_name}")
