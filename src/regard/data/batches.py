"""Lengths of examples → the batches of one epoch, a pure function of the seed and the epoch.

What was learned from by step n can so be told, and continued, by anybody who knows the seed: nothing is remembered.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from regard.errors import ConfigError, DataError, ShapeError

TOGETHER = 200  # batches; with fewer, more padding; with more, no less of it
Cost = Literal["longest", "total"]


def batches(
    lengths: Mapping[str, Any], *, tokens: int, seed: int, epoch: int, buckets: int = TOGETHER, cost: Cost = "longest"
) -> list[np.ndarray]:
    """The batches of one epoch: arrays of example numbers, every example in exactly one of them.

    `lengths` are those of each sequence of an example, by name: one array for texts, two for pairs, any number. A
    batch of r rows, each sequence padded to its longest, has r × l ≤ `tokens`, where l is the longest of the padded
    sequences, or with `cost="total"` all of them together. Examples are shuffled, sorted by their lengths among as
    many as fill about `buckets` batches, cut into batches, and the batches are shuffled: little is padding, and no two
    epochs are the same. How many processes work on them changes nothing.

    >>> pairs = {"source": [3, 9, 4, 8, 3], "target": [4, 7, 3, 9, 3]}
    >>> [batch.tolist() for batch in batches(pairs, tokens=18, seed=0, epoch=0)]
    [[4, 0, 2], [1, 3]]
    """
    columns = check_lengths(lengths)
    if min(seed, epoch) < 0 or buckets < 1:
        raise ConfigError(f"seed {seed}, epoch {epoch}, buckets {buckets} came; give 0, 0 and 1 or more")
    width = np.maximum.reduce(columns) if cost == "longest" else np.add.reduce(columns)
    if len(width) and width.max() > tokens:
        at = int(width.argmax())
        raise DataError(
            f"example {at} has {width[at]} tokens, but a batch has at most {tokens}; "
            "allow larger batches, or leave out long examples"
        )
    random = np.random.default_rng((seed, epoch))
    order = random.permutation(len(width))
    made: list[np.ndarray] = []
    for pool in pools(order, width, tokens * buckets):
        rank = sort_by_length([column[pool] for column in columns], width[pool], tokens, random.random())
        made += cut(pool[rank], [width] if cost == "longest" else columns, tokens)
    return [made[at] for at in random.permutation(len(made))]


def share(batch: Any, rank: int, world: int, lengths: Any) -> np.ndarray:
    """The rows of one batch that process `rank` of `world` works on, in their order in the batch.

    `lengths` are the tokens of every example, so that all processes have about equally many: the longest go first,
    each to the process that has least so far. A process has no rows only where there are fewer rows than processes.

    >>> lengths = [9, 2, 4, 3, 8]
    >>> [share([0, 1, 2, 3, 4], rank, 2, lengths).tolist() for rank in range(2)]
    [[0, 1, 3], [2, 4]]
    """
    if not 0 <= rank < world:
        raise ConfigError(f"rank {rank} of {world} processes came; give a rank from 0 to {max(world, 1) - 1}")
    rows = np.asarray(batch, dtype=np.int64)
    if world == 1:
        return rows
    sizes = np.maximum(np.asarray(lengths)[rows], 1)  # else a row without tokens would leave a process without rows
    loads, mine = [0] * world, []
    for at in np.argsort(-sizes, kind="stable").tolist():
        least = loads.index(min(loads))
        loads[least] += int(sizes[at])
        if least == rank:
            mine.append(at)
    return rows[np.sort(np.asarray(mine, dtype=np.int64))]


def pools(order: np.ndarray, width: np.ndarray, tokens: int) -> list[np.ndarray]:
    """Consecutive stretches of `order` of about `tokens` tokens each, about equally large."""
    if not len(order):
        return []
    filled = np.cumsum(width[order])
    number = max(1, round(int(filled[-1]) / tokens))
    parts = np.split(order, np.searchsorted(filled, filled[-1] * np.arange(1, number) / number))
    return [part for part in parts if len(part)]


def sort_by_length(columns: list[np.ndarray], width: np.ndarray, tokens: int, phase: float) -> np.ndarray:
    """An order in which neighbours are about equally long in every sequence.

    Strips of about equal width, each sorted by its first sequences, up and down in turn, so that one strip begins
    where the one before it ended. As many strips as each then has batches. `phase`, from 0 to 1, moves the borders of
    the strips, so that other examples meet in each epoch.
    """
    order = np.lexsort((*columns, width))
    strips = max(1, round((int(width.sum()) / tokens) ** 0.5))
    ends = np.cumsum(width[order])
    strip = np.floor(ends * strips / max(int(ends[-1]), 1) + phase).astype(np.int64)
    first, *others = [column[order] for column in columns]
    side = np.where(strip % 2 == 0, first, -first)
    return order[np.lexsort((*reversed(others), side, strip))]


def cut(order: np.ndarray, columns: list[np.ndarray], tokens: int) -> list[np.ndarray]:
    """As few consecutive pieces as fit: rows times the sum of the longest of each column is at most `tokens`."""
    starts, longest = [0], [0] * len(columns)
    for at, row in enumerate(zip(*(column[order].tolist() for column in columns))):
        longest = list(map(max, longest, row))
        if sum(longest) * (at + 1 - starts[-1]) > tokens:
            starts.append(at)
            longest = list(row)
    return np.split(order, starts[1:])


def check_lengths(lengths: Mapping[str, Any]) -> list[np.ndarray]:
    """The lengths of each sequence as whole numbers, equally many of each."""
    if not lengths:
        raise ShapeError("no lengths came; give those of at least one sequence of each example")
    columns = []
    for name, given in lengths.items():
        array = np.asarray(given)
        if array.ndim != 1 or (len(array) and (array.dtype.kind not in "iu" or array.min() < 0)):
            raise ShapeError(f"{name} lengths are one whole number per example, but {array.dtype} {array.shape} came")
        columns.append(array.astype(np.int64))
    (first, count), *others = ((name, len(column)) for name, column in zip(lengths, columns))
    for name, other in others:
        if other != count:
            raise ShapeError(f"{count} {first} lengths came with {other} {name} lengths; give one of each")
    return columns
