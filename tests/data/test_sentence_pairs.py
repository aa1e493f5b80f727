"""Pairs of texts: what follows is what follows, what does not is of another document, and nothing else tells them."""

from collections import Counter

import numpy as np
import pytest

from regard.data.byte_level import train_byte_level
from regard.data.sentence_pairs import EncodedSentence, SentencePairs, draw_others
from regard.data.sentences import split_sentences
from regard.errors import DataError


def encoded(document, sentence, length):
    """A sentence whose tokens say where they come from; at the beginning of a text it is one token longer."""
    ids = [100_000 * document + 100 * sentence + at for at in range(length)]
    return EncodedSentence([99, *ids], ids)


def documents(seed=0, count=23):
    random = np.random.default_rng(seed)
    many = (
        [encoded(number, sentence, int(random.integers(1, 19))) for sentence in range(random.integers(2, 31))]
        for number in range(1, count + 1)
    )
    return [[encoded(count + 1, 0, 3)], *many, [encoded(count + 2, 0, 11)]]  # of one sentence, too


def read_all(pairs, **at):
    layout = pairs.layout(**at)
    return [pairs.read(layout, row) for row in range(len(layout.first))], layout


def document_of(ids):
    [number] = {token // 100_000 for token in ids if token != 99}
    return number


def sentences_of(ids):
    return sorted({token % 100_000 // 100 for token in ids if token != 99})


@pytest.mark.parametrize("epoch", [0, 5])
def test_a_second_text_goes_on_where_the_first_ends_or_is_of_another_document(epoch):
    pairs = SentencePairs(documents(), longest=29)
    some, layout = read_all(pairs, seed=3, epoch=epoch)
    assert len(some) > 100
    for pair in some:
        first, second = document_of(pair.first), document_of(pair.second)
        assert (first == second) == pair.is_next
        assert pair.first[0] == pair.second[0] == 99  # each begins a text
        assert pair.first.count(99) == pair.second.count(99) == 1
        for text in (pair.first, pair.second):
            assert len(text) <= 29
            assert sentences_of(text) == list(range(sentences_of(text)[0], sentences_of(text)[-1] + 1))
        if pair.is_next:
            assert sentences_of(pair.second)[0] == sentences_of(pair.first)[-1] + 1
    assert pairs.lengths(layout).tolist() == [len(pair.first) + len(pair.second) for pair in some]


def test_half_of_the_pairs_follow_and_what_stands_second_does_not_say_which():
    pairs = SentencePairs(documents(count=400), longest=29)
    some, _ = read_all(pairs, seed=0, epoch=0)
    assert np.mean([pair.is_next for pair in some]) == pytest.approx(0.5, abs=4 * 0.5 / len(some) ** 0.5)
    for measure in (len, lambda ids: sentences_of(ids)[0], lambda ids: len(sentences_of(ids))):
        real, other = ([measure(pair.second) for pair in some if pair.is_next is kind] for kind in (True, False))
        error = (np.var(real) / len(real) + np.var(other) / len(other)) ** 0.5
        assert np.mean(real) == pytest.approx(np.mean(other), abs=4 * error)


def test_every_text_but_the_last_of_a_document_is_first_once_and_whole_documents_are_read():
    given = documents()
    pairs = SentencePairs(given, longest=29)
    some, layout = read_all(pairs, seed=1, epoch=2)
    assert pairs.left_out == 2
    read = Counter((document_of(pair.first), sentence) for pair in some for sentence in sentences_of(pair.first))
    assert set(read.values()) == {1}
    for number, document in enumerate(given[1:-1], 1):
        first = [sentence for one, sentence in read if one == number]
        assert sorted(first) == list(range(len(first)))
        rest = sum(len(sentence.inside) for sentence in document[len(first) :])
        assert 0 < len(first) < len(document)
        assert rest + 1 <= 29  # one text is left to be second
    assert (np.diff(layout.first) > 0).all()


def test_all_is_drawn_from_seed_and_epoch_and_each_epoch_cuts_and_pairs_anew():
    pairs, again = (SentencePairs(documents(), longest=29) for _ in range(2))
    first = read_all(pairs, seed=3, epoch=1)[0]
    assert first == read_all(again, seed=3, epoch=1)[0]
    assert first != read_all(pairs, seed=3, epoch=2)[0]
    assert first != read_all(pairs, seed=4, epoch=1)[0]
    cuts = [set(pairs.layout(seed=3, epoch=epoch).first.tolist()) for epoch in range(2)]
    assert cuts[0] != cuts[1]


def test_a_long_sentence_is_cut_and_loses_nothing():
    given = [[encoded(1, 0, 50), encoded(1, 1, 3)], [encoded(2, 0, 4), encoded(2, 1, 5)]]
    pairs = SentencePairs(given, longest=17)
    assert pairs.alone.lengths.tolist() == [17, 17, 17, 4, 5, 6]
    assert pairs.alone.flat[:51].tolist() == given[0][0].alone


def test_others_are_all_equally_likely():
    groups = np.repeat([3, 5, 6], [10, 20, 30])
    drawn = np.concatenate([draw_others(groups, np.random.default_rng(seed)) for seed in range(300)])
    of = np.tile(groups, 300)
    assert (groups[drawn] != of).all()
    counts = np.bincount(drawn[of == 5], minlength=60)
    assert (counts[10:30] == 0).all()
    expected = counts.sum() / 40
    assert ((counts[counts > 0] - expected) ** 2 / expected).sum() < 39 + 6 * (2 * 39) ** 0.5  # χ² of 39 degrees


def test_texts_are_spelled_as_they_stand():
    """What a pair holds is what encoding its sentences, with a space between them, gives."""
    texts = [
        "The cat sat. The dog ran! Why?\nNobody said so.",
        "A bird sang. It flew away. The end.",
        "猫坐。狗跑。 The cat ran.",
    ]
    tokenizer = train_byte_level(texts * 3, 290)
    pairs = SentencePairs.encode(texts, tokenizer, longest=64)
    some, layout = read_all(pairs, seed=0, epoch=0)
    sentences = [sentence for text in texts for sentence in split_sentences(text)]
    assert len(some) == 3
    for row, pair in enumerate(some):
        for ids, start, end in (
            (pair.first, layout.first[row], layout.first_end[row]),
            (pair.second, layout.second[row], layout.second_end[row]),
        ):
            whole = " ".join(sentences[start:end])
            assert ids == tokenizer.encode(whole, add_special_tokens=False).ids
            assert tokenizer.decode(ids) == whole


@pytest.mark.parametrize("given", [[], [[]], [[encoded(1, 0, 3)]] * 3, [[encoded(1, 0, 3)] * 4, [encoded(2, 0, 3)]]])
def test_without_two_documents_that_go_on_there_is_nothing_to_pair(given):
    with pytest.raises(DataError, match=r"of \d+ documents have two sentences or more, but two such"):
        SentencePairs(given, longest=9)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", []),
        (" \n ", []),
        ("one", ["one"]),
        ("One. Two", ["One.", "Two"]),
        ("3.14 and e.g. this", ["3.14 and e.g.", "this"]),
        ('"Yes!" she said... (Really?) No', ['"Yes!"', "she said...", "(Really?)", "No"]),
        ("你好。“真的！”她说。", ["你好。", "“真的！”", "她说。"]),
        ("a line\nanother\r\n\n third ", ["a line", "another", "third"]),
    ],
)
def test_sentences_end_where_a_reader_sees_it(text, wanted):
    assert split_sentences(text) == wanted
