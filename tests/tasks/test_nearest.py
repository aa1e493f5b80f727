"""Nearest neighbours: those of a loop over all vectors, whatever the blocks, and one block in memory."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, strategies
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from regard.errors import ConfigError, DataError, ShapeError
from regard.tasks import nearest as module
from regard.tasks.nearest import NearestSearch, nearest


def by_loop(queries, vectors, k):
    """All cosines by exact sums, rounded to float32; sorted, the first of equal ones first."""
    found = []
    for query in queries.tolist():
        cosines = []
        for vector in vectors.tolist():
            lengths = math.sqrt(math.fsum(x * x for x in query)) * math.sqrt(math.fsum(x * x for x in vector))
            cosine = math.fsum(x * y for x, y in zip(query, vector)) / lengths if lengths else 0.0
            cosines.append(float(np.float32(cosine)))
        order = sorted(range(len(cosines)), key=lambda at: (-cosines[at], at))[:k]
        found.append((order, [cosines[at] for at in order]))
    return [row[0] for row in found], [row[1] for row in found]


def draw(count, width, seed=0):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
@pytest.mark.parametrize("k", [1, 5, 300])
def test_it_finds_what_a_loop_over_all_finds(monkeypatch, block, k):
    monkeypatch.setattr(module, "BLOCK", block)
    monkeypatch.setattr(module, "QUERIES", 2)
    queries, vectors = draw(3, 11, 1), draw(130, 11, 2)
    found = nearest(queries, vectors, k)
    indices, cosines = by_loop(queries, vectors, k)
    assert found.indices.tolist() == indices
    np.testing.assert_allclose(found.cosines.numpy(), np.array(cosines), rtol=0, atol=1e-7)


@given(
    seed=strategies.integers(0, 10_000),
    copies=strategies.lists(strategies.integers(0, 4), min_size=1, max_size=40),
    k=strategies.integers(1, 50),
    block=strategies.integers(1, 50),
)
def test_of_equal_vectors_the_first_come_first_whatever_the_block(seed, copies, k, block):
    vectors = draw(5, 37, seed)[copies]
    queries = draw(2, 37, seed + 1)
    before = module.BLOCK
    try:
        module.BLOCK = block
        found = nearest(queries, vectors, k)
    finally:
        module.BLOCK = before
    assert found.indices.tolist() == by_loop(queries, vectors, k)[0]


def test_a_dense_sort_agrees_on_many():
    queries, vectors = draw(4, 48, 5), draw(5000, 48, 6)
    unit = [torch.nn.functional.normalize(one.double()) for one in (queries, vectors)]
    wanted = (unit[0] @ unit[1].T).numpy()
    found = nearest(queries, vectors, 20)
    assert np.array_equal(found.indices.numpy(), np.argsort(-wanted, axis=1, kind="stable")[:, :20])


@pytest.mark.slow
def test_each_of_100_000_lines_finds_itself_exactly():
    vectors = draw(100_000, 64, 9)
    vectors[77_777] = vectors[1234]
    found = nearest(vectors[::997], vectors, 2)
    first = found.indices[:, 0].tolist()
    assert first == list(range(0, 100_000, 997))
    assert nearest(vectors[77_777:77_778], vectors, 2).indices.tolist() == [[1234, 77_777]]


def test_lengths_do_not_matter_and_a_vector_without_one_is_near_to_none():
    vectors = draw(40, 6, 3)
    scaled = vectors * torch.logspace(-9, 9, 40)[:, None]
    queries = draw(2, 6, 4)
    assert torch.equal(nearest(queries, vectors, 40).indices, nearest(queries * 1e-6, scaled, 40).indices)
    vectors[7] = 0
    found = nearest(queries, vectors, 40)
    assert found.cosines[found.indices == 7].tolist() == [0.0, 0.0]
    assert found.indices.tolist() == by_loop(queries, vectors, 40)[0]


def test_arrays_files_and_blocks_give_the_same(tmp_path):
    queries, vectors = draw(3, 10, 1), draw(90, 10, 2)
    np.save(tmp_path / "v.npy", vectors.numpy())
    wanted = nearest(queries, vectors, 4)
    for other in (vectors.numpy(), np.load(tmp_path / "v.npy", mmap_mode="r"), vectors.double()):
        assert torch.equal(nearest(queries.numpy(), other, 4).indices, wanted.indices)
    search = NearestSearch(queries, 4)
    for block in vectors.split(13):
        search.add(block)
    assert torch.equal(search.result().indices, wanted.indices)


class Largest(TorchDispatchMode):
    """Counts the bytes of the largest tensor that anything made."""

    bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for one in tree_leaves(out):
            if isinstance(one, torch.Tensor) and not one._is_view():
                self.bytes = max(self.bytes, one.numel() * one.element_size())
        return out


@pytest.mark.parametrize("count", [3000, 30_000])
def test_memory_is_that_of_one_block_however_many_vectors_there_are(count, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 128)
    monkeypatch.setattr(module, "QUERIES", 32)
    queries, vectors = draw(70, 24, 1), draw(count, 24, 2)
    with Largest() as largest:
        nearest(queries, vectors, 5)
    scores, pairs, own = 32 * 128 * 4, module.PAIRS * 24 * 8, queries.numel() * 8
    assert largest.bytes <= max(scores, pairs, own, 32 * 128 * 16)  # or the places of all candidates of a block
    assert largest.bytes < vectors.numel() * 4


def test_more_than_there_are_is_all_of_them():
    assert nearest(draw(2, 3), draw(4, 3, 1), 9).indices.shape == (2, 4)
    assert nearest(draw(2, 3), torch.empty(0, 3), 9).indices.shape == (2, 0)
    assert nearest(torch.empty(0, 3), draw(4, 3), 2).indices.shape == (0, 2)


def test_what_has_no_cosine_is_refused():
    vectors = draw(9, 3)
    vectors[5, 1] = torch.nan
    with pytest.raises(DataError, match="vector 5 has length nan, so it has no cosine"):
        nearest(draw(1, 3), vectors, 2)
    with pytest.raises(DataError, match="query 1 has length inf"):
        nearest(torch.tensor([[0.0, 1.0], [torch.inf, 0.0]]), vectors[:, :2], 2)
    with pytest.raises(ShapeError, match="queries have 3 numbers each and vectors 4"):
        nearest(draw(1, 3), draw(2, 4), 2)
    with pytest.raises(ShapeError, match=r"queries came as torch.float32 \(3,\), wanted numbers, \(n, m\)"):
        nearest(draw(1, 3)[0], vectors, 2)
    with pytest.raises(ConfigError, match="k is 0, but it counts neighbours"):
        nearest(draw(1, 3), vectors, 0)
