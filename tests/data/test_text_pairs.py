"""Pairs of texts from files of every form, held out so that no text stands in two parts."""

import gzip
import json

import pytest
from hypothesis import given, strategies

from regard.data.text_pairs import (
    TextPair,
    TextPairs,
    drop_words,
    group_pairs,
    hold_out_pairs,
    read_text_pairs,
    tell_unread,
)
from regard.errors import DataError

ROWS = [("Hi.", "Hello.", "Bye."), ("A cat, black", 'Said "no"', "A dog")]


def test_every_form_gives_the_same_pairs(tmp_path):
    wanted = [TextPair(*row) for row in ROWS]
    (tmp_path / "a.tsv").write_text("".join("\t".join(row) + "\n" for row in ROWS))
    (tmp_path / "b.tsv").write_text(
        "Negative\tSentence2\tSentence1\n" + "".join(f"{c}\t{b}\t{a}\n" for a, b, c in ROWS)
    )
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in ROWS]
    (tmp_path / "c.csv").write_text("anchor,positive,negative\n" + "\n".join(quoted))
    objects = [json.dumps({"query": a, "answer": b, "negative": c}) for a, b, c in ROWS]
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress("\n\n".join(objects).encode()))
    for name in ("a.tsv", "b.tsv", "c.csv", "d.jsonl.gz"):
        found = read_text_pairs([tmp_path / name])
        assert (found, found.skipped) == (wanted, 0), name


def test_single_texts_are_their_own_partners_and_empty_ones_are_counted(tmp_path):
    (tmp_path / "a.txt").write_text("A cat.\n\n  two dogs \n")
    (tmp_path / "b.jsonl").write_text('{"text": "Three."}\n{"text": " "}\n{"text": "x", "other": ""}\n')
    (tmp_path / "c.tsv").write_text("text\tscore\nfour\t2.5\n")
    found = read_text_pairs([tmp_path / name for name in ("a.txt", "b.jsonl", "c.tsv")])
    assert [pair.text for pair in found] == [pair.other for pair in found] == ["A cat.", "two dogs", "Three.", "four"]
    assert [pair.single for pair in found] == [True, True, True, False]
    assert (found.skipped, found[3].score) == (3, 2.5)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.tsv", "text\tother\tscore\na\tb\thigh\n", r"a\.tsv, line 2: the score is 'high', but a number was wanted"),
        ("a.tsv", "text\tother\tscore\na\tb\tnan\n", r"line 2: the score is 'nan'"),
        ("a.tsv", "a\tb\nc\n", "line 2: there is 1 column, but 2 in the first row"),
        ("a.jsonl", '{"title": "a"}', "line 1: there is none of text, sentence1, anchor, query for the text"),
        ("a.jsonl", '{"text": 3}', "line 1: 'text' is int, but a text was wanted"),
        ("a.txt", "a\0b", "line 1: byte 1 is NUL"),
        ("a.tsv", "id\tpremise\nx1\tA cat.\n", "line 1: 'id', 'premise' read as names of columns, but text and other"),
        (
            "a.csv",
            'text,other\n"Hi.,Hello.\nBye.,See you.\nA 15",A screen\n',
            "line 2: a quoted field goes on to line 4, and its lines read as rows of their own; close the quote",
        ),
        (
            "a.csv",
            'text,other\nA 15,"A screen\nBye.,See you."\n',
            "line 2: a quoted field goes on to line 3, and its lines read as rows of their own",
        ),
        ("a.txt", "\n \n", r"a\.txt holds no text; give a file with some, one to a line"),
    ],
)
def test_what_is_no_pair_is_refused_with_its_line(tmp_path, name, content, sentence):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=sentence):
        read_text_pairs([tmp_path / name])


def test_rows_of_words_and_lines_within_a_text_are_pairs(tmp_path):
    """No header, and no row that was swallowed: words on both lines, prose, an empty column, another number of them."""
    (tmp_path / "a.tsv").write_text("cat\tdog\nred\tblue\n")
    (tmp_path / "b.csv").write_text(
        'Well, then\n"Dear John, dear Ann\nbye","Dear John,\nbye"\n"a,b,c\nd",e\n"a\nb",c\n'
    )
    (tmp_path / "c.tsv").write_text("你好\t您好\n我走了。\t再见！\n")
    found = read_text_pairs([tmp_path / name for name in ("a.tsv", "b.csv", "c.tsv")])
    assert [pair.text for pair in found] == [
        "cat", "red", "Well", "Dear John, dear Ann\nbye", "a,b,c\nd", "a\nb", "你好", "我走了。"
    ]  # fmt: skip
    assert found[3].other == "Dear John,\nbye"


def test_a_column_that_is_not_read_is_told(tmp_path):
    files = {
        "a.tsv": "text\thypothesis\nA cat.\tA pet.\n",
        "b.jsonl": '{"text": "A cat.", "id": 3}\n',
        "c.tsv": "text\tother\tid\nA cat.\tA pet.\t3\n",
        "d.tsv": "text\tscore\nA cat.\t3\n",
        "e.txt": "text\n",
        "f.csv": "",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    first, second = tell_unread(tmp_path / name for name in files)
    assert first.endswith("a.tsv has no column 'other', so each text stands alone; 'hypothesis' is not read")
    assert second.endswith("b.jsonl has no column 'other', so each text stands alone; 'id' is not read")


LETTERS = strategies.sampled_from("abcdefghijklmnop")


@given(strategies.lists(strategies.tuples(LETTERS, LETTERS), min_size=4, max_size=30), strategies.integers(1, 5))
def test_no_text_stands_in_both_parts(rows, count):
    pairs = TextPairs([TextPair(*row) for row in rows], skipped=3)
    try:
        train, held = hold_out_pairs(pairs, count, seed=1)
    except DataError:
        with pytest.raises(DataError, match="none can be held out"):
            hold_out_pairs(pairs, count, seed=1)
        return
    assert 0 < len(held) <= count
    assert not {text for pair in train for text in pair[:2]} & {text for pair in held for text in pair[:2]}
    true = [pair for pair in pairs if not pair.single]
    if true:
        assert not any(pair.single for pair in held)
        assert len([pair for pair in train if not pair.single]) + len(held) == len(true)
    again = hold_out_pairs(TextPairs(reversed(pairs)), count, seed=1)
    assert sorted(again[1]) == sorted(held)  # the order of the file does not matter
    assert train.skipped == 3


def test_pairs_are_together_that_others_connect():
    pairs = [TextPair("a", "b"), TextPair("c", "d"), TextPair("B!", "e"), TextPair("e", "C"), TextPair("x", "y")]
    one, two, three, four, five = group_pairs(pairs)
    assert one == two == three == four == "a"
    assert five == "x"


def test_pairs_that_cannot_be_told_apart_are_refused():
    with pytest.raises(DataError, match="of 3 pairs none can be held out so that others are left"):
        hold_out_pairs(TextPairs([TextPair("a", "b"), TextPair("b", "c"), TextPair("c", "a")]), 1, seed=0)
    with pytest.raises(DataError, match="of 1 pairs none can be held out"):
        hold_out_pairs(TextPairs([TextPair("a", "b")]), 1, seed=0)


@given(strategies.text(alphabet="ab 猫", max_size=40))
def test_a_thinned_text_is_another_one_of_which_most_is_left(text):
    thin = drop_words(text.strip())
    if thin:
        assert thin != text.strip()
        assert len(thin) >= 0.4 * len("".join(text.split()))
