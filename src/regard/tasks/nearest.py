"""Exact nearest neighbours among many vectors, a block of them at a time: memory does not grow with their number."""

from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import ConfigError, DataError, ShapeError

BLOCK = 2048  # vectors scored at a time: a few MB, near the cache of a CPU
QUERIES = 256  # scored at a time against a block
PAIRS = 512  # cosines computed at a time in float64
SHORTEST, LONGEST = 1e-15, 1e15  # lengths of vectors whose products float32 can hold


class Neighbours(NamedTuple):
    """For each query its nearest vectors, nearest first: cosines, and the numbers of the vectors."""

    cosines: Float[Tensor, "q k"]
    indices: Int[Tensor, "q k"]


def nearest(queries: Any, vectors: Any, k: int) -> Neighbours:
    r"""The `k` vectors with the largest cosine, $q \cdot v / |q| |v|$, for each query; of equal ones the first.

    `vectors` is a tensor, an array, one that lies in a file (`np.memmap`), or whatever has a length and can be sliced;
    it is gone through once, `BLOCK` rows at a time. The result is the one of all cosines in float64, rounded to
    float32 and sorted, and does not depend on the block: float32 only says which of them can be among the first. All
    of them come where `k` is more than there are. A vector without length has cosine 0 with all others.

    >>> vectors = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [0.0, 1.0]])
    >>> found = nearest(torch.tensor([[0.0, 1.0]]), vectors, 3)
    >>> found.indices, found.cosines
    (tensor([[1, 3, 2]]), tensor([[1.0000, 1.0000, 0.7071]]))
    """
    search = NearestSearch(queries, k)
    for start in range(0, len(vectors), BLOCK):
        search.add(vectors[start : start + BLOCK])
    return search.result()


class NearestSearch:
    """The same for vectors that come block by block: `add` each, then ask for the `result` so far.

    >>> search = NearestSearch([[1.0, 0.0]], 2)
    >>> for block in ([[0.0, 1.0]], [[1.0, 1.0], [2.0, 0.1]]):
    ...     search.add(np.array(block, dtype=np.float32))
    >>> search.result().indices
    tensor([[2, 1]])
    """

    def __init__(self, queries: Any, k: int) -> None:
        if k < 1:
            raise ConfigError(f"k is {k}, but it counts neighbours; give 1 or more")
        self.queries = as_rows("queries", queries)
        measure_rows(self.queries, 0, "query")
        self.exact = to_unit(self.queries)  # q m
        self.unit = self.exact.float()
        self.k, self.seen = k, 0
        self.cosines = np.full((len(self.queries), k), -np.inf, dtype=np.float32)
        self.indices = np.zeros((len(self.queries), k), dtype=np.int64)
        # A float32 product of unit vectors errs by at most m u, u = 2⁻²⁴ (Higham 2002, eq. 3.5); twice that, and a bit
        # for the rounding of the unit vectors, of the lengths, and of the result.
        self.slack = (self.queries.shape[1] + 16) * 2.0**-23

    def add(self, vectors: Any) -> None:
        """Take the next vectors into account; a block larger than `BLOCK` is gone through in parts."""
        every = as_rows("vectors", vectors)
        if every.shape[1] != self.queries.shape[1]:
            raise ShapeError(
                f"queries have {self.queries.shape[1]} numbers each and vectors {every.shape[1]}; "
                "give vectors of the same model"
            )
        for block in every.split(BLOCK):
            inverse = measure_rows(block, self.seen, "vector").clamp_(min=SHORTEST).reciprocal_()  # c
            for first in range(0, len(self.queries), QUERIES):
                rows = slice(first, first + QUERIES)
                scores = (self.unit[rows] @ block.T).mul_(inverse)  # q c
                self.merge(rows, block, find_candidates(scores, self.k, self.cosines[rows, -1], self.slack))
            self.seen += len(block)

    def merge(self, rows: slice, block: Float[Tensor, "c m"], pairs: Int[Tensor, "n 2"]) -> None:
        """Put candidates, (query, vector of the block), among the nearest so far, by their exact cosines."""
        if not len(pairs):
            return
        exact = self.exact[rows]
        parts = [(exact[some[:, 0]] * to_unit(block[some[:, 1]])).sum(1) for some in pairs.split(PAIRS)]
        cosines, indices = self.cosines[rows], self.indices[rows]
        owners = np.concatenate([np.arange(len(cosines)).repeat(self.k), pairs[:, 0].numpy()])
        scores = np.concatenate([cosines.ravel(), torch.cat(parts).float().numpy()])
        places = np.concatenate([indices.ravel(), pairs[:, 1].numpy() + self.seen])
        order = np.lexsort((places, -scores, owners))
        starts = np.searchsorted(owners[order], np.arange(len(cosines)))
        best = order[starts[:, None] + np.arange(self.k)]  # q k
        self.cosines[rows], self.indices[rows] = scores[best], places[best]

    def result(self) -> Neighbours:
        """The nearest of all that came."""
        found = min(self.k, self.seen)
        return Neighbours(torch.from_numpy(self.cosines[:, :found]), torch.from_numpy(self.indices[:, :found]))


def find_candidates(
    scores: Float[Tensor, "q c"], k: int, worst: Float[np.ndarray, " q"], slack: float
) -> Int[Tensor, "n 2"]:
    """Which vectors can be among the `k` nearest, if no score is off by more than `slack`, (query, vector).

    `worst` is the cosine of the k-th nearest so far, -inf where there are fewer.
    """
    bar = torch.from_numpy(worst) - slack  # q
    if scores.shape[1] >= k:
        bar = torch.maximum(bar, scores.topk(k, sorted=False).values.amin(1) - 2 * slack)
    return (scores >= bar[:, None]).nonzero()


def as_rows(name: str, given: Any) -> Float[Tensor, "n m"]:
    """Vectors as float32 on the CPU, copied only where they must be."""
    if not isinstance(given, Tensor):
        array = np.asarray(given)
        given = torch.from_numpy(array if array.flags.writeable else array.copy())
    if given.ndim != 2 or not given.is_floating_point() or not given.shape[1]:
        raise ShapeError(
            f"{name} came as {given.dtype} {tuple(given.shape)}, wanted numbers, (n, m); give rows of them"
        )
    return given.detach().to("cpu", torch.float32)


def measure_rows(block: Float[Tensor, "n m"], first: int, noun: str) -> Float[Tensor, " n"]:
    """The length of each vector; refused where one has none that can be computed with."""
    lengths = torch.linalg.vector_norm(block, dim=1)
    if len(lengths) and not bool(lengths.amax() < LONGEST):
        at = int((~(lengths < LONGEST)).nonzero()[0])
        raise DataError(f"{noun} {first + at} has length {float(lengths[at]):g}, so it has no cosine; compute it again")
    return lengths


def to_unit(rows: Float[Tensor, "n m"]) -> Float[Tensor, "n m"]:
    """The same directions with length 1, in float64; of a vector without length, zeros."""
    wide = rows.double()
    return wide / wide.square().sum(1, keepdim=True).sqrt().clamp(min=SHORTEST)
