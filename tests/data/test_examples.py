"""Examples hold what was encoded, and batches of them are padded as a loop would."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data.examples import Example, Examples
from regard.data.pairs import Pair
from regard.data.special import BEGIN, END, PAD
from regard.data.vocabulary import Vocabulary
from regard.errors import DataError

IDS = st.lists(st.integers(4, 99), max_size=9)


def padded(rows):
    width = max(map(len, rows), default=0)
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows], dtype=torch.int64).reshape(len(rows), width)


@given(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=12), st.randoms())
def test_batches_are_padded_as_by_a_loop(pairs, order):
    examples = Examples([one for one, _ in pairs], [other for _, other in pairs])
    assert (len(examples), examples.dropped) == (len(pairs), 0)
    chosen = [order.randrange(len(pairs)) for _ in range(order.randrange(1, 8))]
    source, target_in, target_out = examples.collate(np.asarray(chosen))
    assert source.dtype == target_in.dtype == target_out.dtype == torch.int64
    assert torch.equal(source, padded([[*pairs[at][0], END] for at in chosen]))
    assert torch.equal(target_in, padded([[BEGIN, *pairs[at][1]] for at in chosen]))
    assert torch.equal(target_out, padded([[*pairs[at][1], END] for at in chosen]))
    assert [examples[at] for at in range(len(pairs))] == [Example([*a, END], [*b, END]) for a, b in pairs]
    assert examples.source_lengths.tolist() == [len(one) + 1 for one, _ in pairs]
    assert examples.target_lengths.tolist() == [len(other) + 1 for _, other in pairs]


def test_long_examples_are_dropped_and_counted():
    examples = Examples([[5] * 3, [6] * 4, [7]], [[8], [9], [10] * 5], longest=4)
    assert (len(examples), examples.dropped, examples.kept.tolist()) == (2, 1, [0, 1])
    assert examples[-1] == ([6, 6, 6, 6, END], [9, END])
    with pytest.raises(DataError, match="all 3 examples are longer than 0 tokens; allow longer ones"):
        Examples([[5], [6], [7]], [[8], [9], [10]], longest=0)


def test_an_example_that_is_not_there_is_refused_and_a_loop_ends():
    examples = Examples([[5], [6]], [[7], [8]])
    with pytest.raises(IndexError, match="example 2 was asked for, but there are 2"):
        examples[2]
    assert [one.source[0] for one in examples] == [5, 6]


def test_no_examples_make_a_batch_without_rows():
    batch = Examples([[5]], [[6]]).collate([])
    assert [tuple(part.shape) for part in batch] == [(0, 0)] * 3
    assert len(Examples([], [])) == 0


def test_sides_of_unequal_number_are_refused():
    with pytest.raises(ValueError, match="zip"):
        Examples([[5]], [[6], [7]])


def test_pairs_are_encoded_each_side_by_its_vocabulary():
    pairs = [Pair("the cat", "猫"), Pair("a cat sat there", "一只猫坐在那里"), Pair("the dog", "狗")] * 2_000
    english = Vocabulary.train([pair.source for pair in pairs[:3]], kind="words")
    chinese = Vocabulary.train([pair.target for pair in pairs[:3]], kind="characters")
    examples = Examples.encode(pairs, english, chinese, longest=6)
    assert (len(examples), examples.dropped) == (4_000, 2_000)
    for at in (0, 1, 3_999):
        pair = pairs[examples.kept[at]]
        assert examples[at] == ([*english.encode(pair.source), END], [*chinese.encode(pair.target), END])
    assert examples.source.flat.dtype == np.int32
