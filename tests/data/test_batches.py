"""Every example in one batch, every batch within its tokens, and an epoch a function of its seed and number alone."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batches import batches, share
from regard.data.pairs import read_pairs
from regard.errors import ConfigError, DataError, ShapeError

LENGTHS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=200)


def pair_batches(source, target, **how):
    return batches({"source": source, "target": target}, **how)


def padding(found, source, target) -> float:
    """The share of cells, of both sides, that hold no token."""
    cells = sum(len(rows) * (source[rows].max() + target[rows].max()) for rows in found)
    return 1 - (source.sum() + target.sum()) / cells


@given(LENGTHS, st.integers(30, 300), st.integers(0, 5), st.integers(0, 3), st.integers(1, 9))
def test_every_example_is_in_one_batch_and_no_batch_is_too_large(lengths, tokens, seed, epoch, buckets):
    source, target = np.asarray(lengths, dtype=np.int32).reshape(-1, 2).T
    found = pair_batches(source, target, tokens=tokens, seed=seed, epoch=epoch, buckets=buckets)
    assert sorted(np.concatenate([[], *found]).tolist()) == list(range(len(lengths)))
    for rows in found:
        assert 0 < len(rows) * max(max(lengths[row]) for row in rows) <= tokens
    again = pair_batches(source.tolist(), target.tolist(), tokens=tokens, seed=seed, epoch=epoch, buckets=buckets)
    assert [rows.tolist() for rows in again] == [rows.tolist() for rows in found]


def lengths_like_sentences(count: int):
    random = np.random.default_rng(5)
    source = random.poisson(12, count) + 2
    return source, np.maximum(1, source + random.integers(-5, 6, count))


def test_epochs_and_seeds_differ_in_batches_and_in_their_order():
    source, target = lengths_like_sentences(3_001)
    epochs = [
        pair_batches(source, target, tokens=700, seed=seed, epoch=epoch) for seed, epoch in ((0, 0), (0, 1), (1, 0))
    ]
    sets = [{frozenset(rows.tolist()) for rows in found} for found in epochs]
    for one, other in ((0, 1), (0, 2), (1, 2)):  # the very longest may meet again
        assert len(sets[one] & sets[other]) <= 2
    widths = [max(source[rows].max(), target[rows].max()) for rows in epochs[0]]
    assert abs(np.corrcoef(widths, np.arange(len(widths)))[0, 1]) < 0.35  # not from short to long


def test_little_is_padding_and_batches_are_full():
    source, target = lengths_like_sentences(20_011)
    for tokens in (2_000, 4_000):
        found = pair_batches(source, target, tokens=tokens, seed=3, epoch=2)
        assert padding(found, source, target) < 0.08
        filled = [len(rows) * max(source[rows].max(), target[rows].max()) / tokens for rows in found]
        assert np.mean(filled) > 0.95
        blind = np.array_split(np.random.default_rng(0).permutation(len(source)), len(found))
        assert padding(blind, source, target) > 0.3  # what it would be without sorting


def test_an_example_that_fits_no_batch_is_named():
    with pytest.raises(DataError, match="example 2 has 17 tokens, but a batch has at most 16; allow larger batches"):
        pair_batches([3, 4, 5], [6, 7, 17], tokens=16, seed=0, epoch=0)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ([1, 2], [3], "2 source lengths came with 1 target lengths"),
        ([[1, 2]], [3], "source lengths are one whole number per example"),
        ([1.5], [3], "source lengths are one whole number per example"),
        ([1], [-3], "target lengths are one whole number per example"),
    ],
)
def test_lengths_that_are_none_are_refused(source, target, message):
    with pytest.raises(ShapeError, match=message):
        pair_batches(source, target, tokens=16, seed=0, epoch=0)


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"epoch": -1}, {"buckets": 0}], ids=str)
def test_settings_below_zero_are_refused(wrong):
    with pytest.raises(ConfigError, match="give 0, 0 and 1 or more"):
        pair_batches([1], [1], **{"tokens": 16, "seed": 0, "epoch": 0} | wrong)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=50), st.integers(1, 7))
def test_shares_are_the_batch_and_differ_by_one_row_at_most(lengths, world):
    batch = np.random.default_rng(1).permutation(len(lengths))
    shares = [share(batch, rank, world, lengths) for rank in range(world)]
    place = {row: at for at, row in enumerate(batch.tolist())}
    assert sorted(np.concatenate(shares).tolist()) == list(range(len(lengths)))
    assert all([place[row] for row in one.tolist()] == sorted(place[row] for row in one.tolist()) for one in shares)
    assert sum(len(one) > 0 for one in shares) == min(world, len(lengths))
    loads = [sum(max(lengths[row], 1) for row in one.tolist()) for one in shares]
    assert max(loads) - min(loads) <= max(max(lengths), 1)  # the law of giving the longest first


@pytest.mark.parametrize(("rank", "world"), [(2, 2), (-1, 3), (0, 0)])
def test_a_rank_that_is_none_is_refused(rank, world):
    with pytest.raises(ConfigError, match=f"rank {rank} of {world} processes came"):
        share([0, 1], rank, world, [1, 1])


def test_real_sentences_have_little_padding(shared):
    data = shared / "data"
    multi30k = read_pairs(data / "multi30k" / "train.en.gz", data / "multi30k" / "train.de.gz")
    tatoeba = read_pairs(data / "tatoeba-cmn-eng" / "cmn.tsv.gz")
    words = [[len(side.split()) + 2 for side in pair[:2]] for pair in multi30k]
    letters = [[len(pair.source.split()) + 2, len(pair.target) + 1] for pair in tatoeba]
    for lengths in (words, letters):
        source, target = np.asarray(lengths).T
        for tokens in (2_000, 4_000):
            assert padding(pair_batches(source, target, tokens=tokens, seed=0, epoch=0), source, target) < 0.08


def test_the_order_of_pairs_is_the_one_it_always_was():
    """Runs of earlier versions are continued: the digest was taken before examples could be anything but pairs."""
    digest = hashlib.sha256()
    for count, seed, epoch, tokens in ((3001, 0, 0, 700), (20011, 3, 2, 2000), (500, 1, 7, 300), (1, 0, 0, 99)):
        random = np.random.default_rng((count, seed))
        source = random.poisson(12, count) + 2
        target = np.maximum(1, source + random.integers(-5, 6, count))
        for rows in pair_batches(source, target, tokens=tokens, seed=seed, epoch=epoch):
            digest.update(rows.tobytes() + b"|")
    assert digest.hexdigest().startswith("2b74e95dde703eab")


MANY = st.integers(1, 4).flatmap(lambda k: st.lists(st.tuples(*[st.integers(0, 20)] * k), min_size=1, max_size=90))


@given(MANY, st.integers(80, 300), st.sampled_from(["longest", "total"]))
def test_any_number_of_sequences_fits_by_the_longest_or_by_all_of_them(rows, tokens, cost):
    lengths = {f"part {i}": column for i, column in enumerate(zip(*rows))}
    made = batches(lengths, tokens=tokens, seed=1, epoch=2, cost=cost)
    assert sorted(np.concatenate(made).tolist()) == list(range(len(rows)))
    for batch in made:
        padded = [max(rows[row][part] for row in batch) for part in range(len(rows[0]))]
        assert len(batch) * (max(padded) if cost == "longest" else sum(padded)) <= tokens


@pytest.mark.parametrize("count", [1, 3])
def test_texts_and_triples_have_little_padding_too(count):
    random = np.random.default_rng(11)
    first = random.poisson(15, 9_001) + 1
    lengths = {f"part {i}": first + i * random.integers(0, 3, 9_001) for i in range(count)}
    made = batches(lengths, tokens=1_500, seed=0, epoch=0)
    cells = sum(len(rows) * sum(int(one[rows].max()) for one in lengths.values()) for rows in made)
    assert 1 - sum(int(one.sum()) for one in lengths.values()) / cells < 0.08


def test_no_lengths_and_uneven_ones_are_refused():
    with pytest.raises(ShapeError, match="no lengths came"):
        batches({}, tokens=9, seed=0, epoch=0)
    with pytest.raises(ShapeError, match="2 text lengths came with 1 answer lengths"):
        batches({"text": [1, 2], "more": [3, 4], "answer": [5]}, tokens=9, seed=0, epoch=0)
