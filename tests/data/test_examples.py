"""Examples hold what was encoded, and batches of them are padded as a loop would."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data.examples import Examples, PairExample, PairExamples
from regard.data.pairs import Pair
from regard.data.special import BEGIN, END, PAD
from regard.data.vocabulary import Vocabulary
from regard.errors import DataError, ShapeError

IDS = st.lists(st.integers(4, 99), max_size=9)


def pad_rows(rows):
    width = max(map(len, rows), default=0)
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows], dtype=torch.int64).reshape(len(rows), width)


@given(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=12), st.randoms())
def test_batches_are_padded_as_by_a_loop(pairs, order):
    examples = PairExamples([one for one, _ in pairs], [other for _, other in pairs])
    assert (len(examples), examples.dropped) == (len(pairs), 0)
    chosen = [order.randrange(len(pairs)) for _ in range(order.randrange(1, 8))]
    source, target_in, target_out = examples.collate(np.asarray(chosen))
    assert source.dtype == target_in.dtype == target_out.dtype == torch.int64
    assert torch.equal(source, pad_rows([[*pairs[at][0], END] for at in chosen]))
    assert torch.equal(target_in, pad_rows([[BEGIN, *pairs[at][1]] for at in chosen]))
    assert torch.equal(target_out, pad_rows([[*pairs[at][1], END] for at in chosen]))
    assert [examples[at] for at in range(len(pairs))] == [PairExample([*a, END], [*b, END]) for a, b in pairs]
    assert examples.lengths["source"].tolist() == [len(one) + 1 for one, _ in pairs]
    assert examples.lengths["target"].tolist() == [len(other) + 1 for _, other in pairs]


def test_long_examples_are_dropped_and_counted():
    examples = PairExamples([[5] * 3, [6] * 4, [7]], [[8], [9], [10] * 5], longest=4)
    assert (len(examples), examples.dropped, examples.kept.tolist()) == (2, 1, [0, 1])
    assert examples[-1] == ([6, 6, 6, 6, END], [9, END])
    with pytest.raises(DataError, match="all 3 examples are longer than 0 tokens; allow longer ones"):
        PairExamples([[5], [6], [7]], [[8], [9], [10]], longest=0)


def test_an_example_that_is_not_there_is_refused_and_a_loop_ends():
    examples = PairExamples([[5], [6]], [[7], [8]])
    with pytest.raises(IndexError, match="example 2 was asked for, but there are 2"):
        examples[2]
    assert [one.source[0] for one in examples] == [5, 6]


def test_no_examples_make_a_batch_without_rows():
    batch = PairExamples([[5]], [[6]]).collate([])
    assert [tuple(part.shape) for part in batch] == [(0, 0)] * 3
    assert len(PairExamples([], [])) == 0


def test_sides_of_unequal_number_are_refused():
    with pytest.raises(ValueError, match="zip"):
        PairExamples([[5]], [[6], [7]])


def test_pairs_are_encoded_each_side_by_its_vocabulary():
    pairs = [Pair("the cat", "猫"), Pair("a cat sat there", "一只猫坐在那里"), Pair("the dog", "狗")] * 2_000
    english = Vocabulary.train([pair.source for pair in pairs[:3]], kind="words")
    chinese = Vocabulary.train([pair.target for pair in pairs[:3]], kind="characters")
    examples = PairExamples.encode(pairs, english, chinese, longest=6)
    assert (len(examples), examples.dropped) == (4_000, 2_000)
    for at in (0, 1, 3_999):
        pair = pairs[examples.kept[at]]
        assert examples[at] == ([*english.encode(pair.source), END], [*chinese.encode(pair.target), END])
    assert examples.sequences["source"].flat.dtype == np.int32


@given(st.lists(st.tuples(IDS, IDS, IDS, st.integers(0, 4)), min_size=1, max_size=9), st.randoms())
def test_examples_have_any_number_of_sequences_and_fields(rows, order):
    rows = [([], [5], [6, 7], 1), *rows]
    count = len(rows)
    pictures = np.arange(count * 2 * 3 * 5, dtype=np.float32).reshape(count, 2, 3, 5)
    spans = np.asarray([[at, 2 * at] for at in range(count)])
    examples = Examples(
        {"question": [row[0] for row in rows], "text": [row[1] for row in rows], "answer": [row[2] for row in rows]},
        {"label": [row[3] for row in rows], "span": spans, "picture": pictures},
        longest=7,
    )
    short = [at for at, row in enumerate(rows) if max(map(len, row[:3])) <= 7]
    assert (examples.kept.tolist(), examples.dropped) == (short, count - len(short))
    chosen = [order.randrange(len(short)) for _ in range(order.randrange(1, 6))]
    batch = examples.collate(chosen)
    picked = [short[at] for at in chosen]
    for part, name in enumerate(("question", "text", "answer")):
        assert torch.equal(batch[name], pad_rows([rows[at][part] for at in picked]))
        assert examples.lengths[name].tolist() == [len(rows[at][part]) for at in short]
    assert batch["label"].tolist() == [rows[at][3] for at in picked]
    assert torch.equal(batch["picture"], torch.from_numpy(pictures[picked]))
    assert torch.equal(batch["span"], torch.from_numpy(spans[picked]))


def test_pictures_may_lie_in_a_file_and_stand_without_any_sequence(tmp_path):
    pictures = np.memmap(tmp_path / "pictures", dtype=np.uint8, mode="w+", shape=(7, 3, 4))
    pictures[:] = np.arange(84).reshape(7, 3, 4)
    examples = Examples({}, {"picture": pictures, "label": range(7)})
    assert isinstance(examples.fields["picture"], np.memmap)
    assert (len(examples), examples.lengths) == (7, {})
    batch = examples.collate([6, 2])
    assert (batch["picture"].dtype, batch["picture"].shape) == (torch.uint8, (2, 3, 4))
    assert batch["label"].tolist() == [6, 2]


def test_fields_of_another_number_are_refused():
    with pytest.raises(ShapeError, match=r"label came as \(3,\) for 2 examples; give one entry for each"):
        Examples({"text": [[5], [6]]}, {"label": [0, 1, 1]})


def test_only_what_is_asked_for_ends_in_a_special_token():
    assert Examples({"text": [[5, 6]]})[0] == {"text": [5, 6]}
    assert Examples({"text": [[5, 6]]}, end=END)[-1] == {"text": [5, 6, END]}
