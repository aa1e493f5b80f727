"""One query against the keys and values of a cache, with a softmax that runs along (Milakov & Gimelshein 2018).

Keys lie in blocks of sixteen places, channel by channel, so that a vector holds sixteen scores; values lie place by
place, so that a vector holds sixteen channels. 32 places are read at a time: both stay in the nearest cache for all
query heads that share them.
"""

from typing import Any

import numpy as np

from regard.models.fast.compile import inline_kernel, kernel
from regard.models.fast.vectors import (
    add_lanes,
    broadcast,
    broadcast_from,
    exp,
    fma,
    larger,
    largest_lane,
    load,
    store,
    view,
)

PLACES = 32  # of the cache, that are read at a time
NOTHING = np.float32(-np.inf)


@inline_kernel
def rotate(x: int, channels: int, cos: int, sin: int) -> None:
    """Turns each pair of channels i and i + channels / 2 (Su et al. 2021, eq. 34)."""
    half = channels // 2
    values, cosines, sines = view(x, channels), view(cos, half), view(sin, half)
    for i in range(half):
        a, b = values[i], values[i + half]
        values[i] = a * cosines[i] - b * sines[i]
        values[i + half] = b * cosines[i] + a * sines[i]


@kernel
def remember(k: int, v: int, channels: int, padded: int, keys: int, values: int, place: int) -> None:
    """Writes a key and a value to their place in the cache of one head."""
    key, value = view(k, channels), view(v, channels)
    block = view(keys + 64 * channels * (place // 16), 16 * channels)
    row = view(values + 4 * padded * place, channels)
    for channel in range(channels):
        block[16 * channel + place % 16] = key[channel]
        row[channel] = value[channel]


@inline_kernel
def score(q: int, keys: int, channels: int, scale: Any, scores: int) -> None:
    """The scores of 32 places: scale · q · k."""
    a = broadcast(np.float32(0))
    b, c, d = a, a, a
    other, last = keys + 64 * channels, channels // 2 * 2
    for channel in range(0, last, 2):
        q0, q1 = broadcast_from(q + 4 * channel), broadcast_from(q + 4 * channel + 4)
        a = fma(q0, load(keys + 64 * channel), a)
        b = fma(q1, load(keys + 64 * channel + 64), b)
        c = fma(q0, load(other + 64 * channel), c)
        d = fma(q1, load(other + 64 * channel + 64), d)
    for channel in range(last, channels):
        q0 = broadcast_from(q + 4 * channel)
        a = fma(q0, load(keys + 64 * channel), a)
        c = fma(q0, load(other + 64 * channel), c)
    store(scores, (a + b) * broadcast(scale))
    store(scores + 64, (c + d) * broadcast(scale))


@inline_kernel
def weigh(scores: int, most: Any) -> Any:
    """Scores made into weights that do not yet add to one: e to the power of what each is below `most`; their sum."""
    low, high = exp(load(scores) - broadcast(most)), exp(load(scores + 64) - broadcast(most))
    store(scores, low)
    store(scores + 64, high)
    return add_lanes(low + high)


@kernel
def mix(weights: int, values: int, padded: int, shrink: Any, out: int) -> None:
    """What was mixed so far, shrunk, and the values of 32 places by their weights."""
    step = 4 * padded
    for channel in range(0, padded, 16):
        at = values + 4 * channel
        a, b = load(out + 4 * channel) * broadcast(shrink), broadcast(np.float32(0))
        c, d = b, b
        for place in range(0, PLACES, 4):
            row, weight = at + place * step, weights + 4 * place
            a = fma(broadcast_from(weight), load(row), a)
            b = fma(broadcast_from(weight + 4), load(row + step), b)
            c = fma(broadcast_from(weight + 8), load(row + 2 * step), c)
            d = fma(broadcast_from(weight + 12), load(row + 3 * step), d)
        store(out + 4 * channel, (a + b) + (c + d))


@inline_kernel
def clear(out: int, size: int) -> None:
    """Zeros, a multiple of sixteen."""
    for at in range(0, size, 16):
        store(out + 4 * at, broadcast(np.float32(0)))


@kernel
def attend_places(
    q: int, group: int, channels: int, keys: int, values: int, scale: Any, first: int, last: int, out: int, step: int
) -> None:
    """The heads of a group over places first … last - 1 of their shared keys.

    To `out`, `step` bytes from head to head: the mix (not yet divided), then the largest score and the sum of weights.
    """
    padded = (channels + 15) // 16 * 16
    scores = out + group * step  # 32 numbers of scratch
    for head in range(group):
        clear(out + head * step, padded)
        facts = view(out + head * step + 4 * padded, 2)
        facts[0], facts[1] = NOTHING, np.float32(0)
    for block in range(first // PLACES, (last + PLACES - 1) // PLACES):
        for head in range(group):
            at = PLACES * block
            score(q + 4 * head * channels, keys + 4 * channels * at, channels, scale, scores)
            line = view(scores, PLACES)
            for place in range(max(0, first - at)):
                line[place] = NOTHING
            for place in range(min(PLACES, last - at), PLACES):
                line[place] = NOTHING
            facts = view(out + head * step + 4 * padded, 2)
            most = max(facts[0], largest_lane(larger(load(scores), load(scores + 64))))
            shrink = np.exp(facts[0] - most)
            total = weigh(scores, most)
            facts[0], facts[1] = most, facts[1] * shrink + total
            mix(scores, values + 4 * padded * at, padded, shrink, out + head * step)


@kernel
def merge_parts(parts: int, count: int, step: int, channels: int, out: int) -> None:
    """The mix over all keys, of what was mixed over parts of them, `step` bytes apart, by their largest scores."""
    padded = (channels + 15) // 16 * 16
    most, total, result = NOTHING, np.float32(0), view(out, channels)
    for part in range(count):
        most = max(most, view(parts + part * step + 4 * padded, 2)[0])
    for channel in range(channels):
        result[channel] = np.float32(0)
    for part in range(count):
        facts, mixed = view(parts + part * step + 4 * padded, 2), view(parts + part * step, channels)
        share = np.exp(facts[0] - most)
        total += share * facts[1]
        for channel in range(channels):
            result[channel] += share * mixed[channel]
    for channel in range(channels):
        result[channel] /= total
