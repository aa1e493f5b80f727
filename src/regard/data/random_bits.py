"""Random numbers that are a function of where they stand: no generator, no order, the same on every machine."""

import numpy as np

GOLDEN, FIRST, SECOND = (
    np.asarray(number, dtype=np.uint64) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)  # arrays, because numbers alone would warn where they wrap around


def draw_bits(*place: int | np.ndarray) -> np.ndarray:
    """64 random bits for each place: whole numbers, 0 or more, which may be arrays that broadcast.

    Each number in turn is added to what the ones before it gave and mixed (SplitMix64; Steele, Lea & Flood 2014, §3,
    figure 16). Nothing is remembered, so a part of many draws is what it is among all of them.

    >>> draw_bits(7, np.arange(3))
    array([13309476754707697221,  2875738036014693257, 16129155333475108587],
          dtype=uint64)
    >>> draw_bits(7, np.array([1]))[0] == draw_bits(7, np.arange(3))[1]
    np.True_
    """
    bits: np.ndarray = np.zeros(1, dtype=np.uint64)
    for number in place:
        bits = mix(bits + np.asarray(number, dtype=np.uint64))
    return bits


def mix(bits: np.ndarray) -> np.ndarray:
    """The next number of SplitMix64."""
    bits = bits + GOLDEN
    bits = (bits ^ (bits >> np.uint64(30))) * FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * SECOND
    return bits ^ (bits >> np.uint64(31))
