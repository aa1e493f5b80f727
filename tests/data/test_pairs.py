"""Pairs are read from every kind of file alike, and a line that cannot be used is named."""

import csv
import gzip
import io
import json

import pytest

from regard.data.pairs import Pair, read_pairs
from regard.errors import DataError

FEW = [("Hi.", "嗨。", "Ann & Bo"), ("I ran.", "我跑了。", "Cy"), ("Stop  it!", "停！", "Ann & Bo")]


@pytest.fixture
def folder(tmp_path):
    """The same pairs in every kind of file."""
    files = {
        "few.tsv": "".join("\t".join(row) + "\n" for row in FEW),
        "few.txt": "\r\n".join("\t".join(row) for row in FEW),
        "few.jsonl": "".join(json.dumps({"target": b, "source": a, "credit": c}) + "\n" for a, b, c in FEW),
        "keys.jsonl": "".join(json.dumps({"zh": b, "en": a, "n": 7}, ensure_ascii=False) + "\n" for a, b, _ in FEW),
        "few.en": "".join(f" {a}\n" for a, _, _ in FEW),
        "few.zh": "".join(f"{b}\u3000\n" for _, b, _ in FEW),
    }
    for name, text in files.items():
        (tmp_path / name).write_bytes(text.encode())
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path


@pytest.mark.parametrize("packed", ["", ".gz"], ids=["plain", "packed"])
def test_every_kind_of_file_gives_the_same_pairs(folder, packed):
    with_credit, without = [Pair(*row) for row in FEW], [Pair(*row[:2]) for row in FEW]
    for name in ("few.tsv", "few.txt", "few.jsonl"):
        assert read_pairs(folder / f"{name}{packed}") == with_credit
    assert read_pairs(folder / f"keys.jsonl{packed}", fields=("en", "zh")) == without
    assert read_pairs(folder / f"few.en{packed}", str(folder / "few.zh")) == without
    assert read_pairs(folder / f"few.tsv{packed}", swap=True) == [Pair(b, a, c) for a, b, c in with_credit]


def test_files_of_unequal_length_are_refused(folder):
    (folder / "more.zh").write_text("一\n二\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"few\.en has 3 lines, but .*more\.zh has 2; give two files in which line n"):
        read_pairs(folder / "few.en", folder / "more.zh")


LONG_WORDS, LONG_TEXT = "word " * 10_000, "字" * 5_001
BAD_LINES = {
    "no column": ("one", "line 2: there is 1 column, but a source and a target were wanted"),
    "empty line": ("", "line 2: the line is empty; remove it, or leave such lines out with skip_empty=True"),
    "empty source": ("\t二", "line 2: the source is empty; write it, or leave"),
    "empty target": ("two\t \tAnn", "line 2: the target is empty; write it, or leave"),
    "many words": (f"{LONG_WORDS[:4_999]}\t二", ""),
    "too many words": (f"{'w ' * 1_001}\t二", "line 2: the source has 1,001 words, more than 1,000; cut it"),
    "far too many": (f"{LONG_WORDS}\t二", "line 2: the source has 49,999 characters, more than 5,000; cut it"),
    "characters": (f"two\t{LONG_TEXT}", "line 2: the target has 5,001 characters, more than 5,000; cut it"),
}


@pytest.mark.parametrize(("line", "message"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_line_that_cannot_be_used_is_named_or_skipped(tmp_path, line, message):
    path = tmp_path / "some.tsv"
    path.write_text(f"one\t一\n{line}\nthree\t三\n", encoding="utf-8")
    if not message:
        assert len(read_pairs(path)) == 3
        return
    with pytest.raises(DataError) as error:
        read_pairs(path)
    assert f"some.tsv, {message}" in str(error.value)
    assert len(str(error.value)) < 400
    if "column" in message:
        with pytest.raises(DataError, match="1 column"):
            read_pairs(path, skip_empty=True)
    else:
        pairs = read_pairs(path, skip_empty=True)
        assert (list(pairs), pairs.skipped) == ([Pair("one", "一"), Pair("three", "三")], (2,))


def test_two_files_and_objects_skip_alike(tmp_path):
    (tmp_path / "a").write_text("one\n\nthree\nfour\n", encoding="utf-8")
    (tmp_path / "b").write_text("一\n二\n \n四\n", encoding="utf-8")
    (tmp_path / "c.jsonl").write_text('\n{"source": "a", "target": ""}\n{"source": "b", "target": "c"}\n')
    with pytest.raises(DataError, match="line 2: the source is empty"):
        read_pairs(tmp_path / "a", tmp_path / "b")
    assert read_pairs(tmp_path / "a", tmp_path / "b", skip_empty=True).skipped == (2, 3)
    assert read_pairs(tmp_path / "c.jsonl", skip_empty=True).skipped == (1, 2)


def test_what_is_long_can_be_chosen(tmp_path):
    (tmp_path / "a.tsv").write_text("a b c\t一\n", encoding="utf-8")
    assert len(read_pairs(tmp_path / "a.tsv", longest=3)) == 1
    with pytest.raises(DataError, match="the source has 3 words, more than 2"):
        read_pairs(tmp_path / "a.tsv", longest=2)


@pytest.mark.parametrize(
    ("line", "fields", "message"),
    [
        ('{"en": "a"}', ("en", "zh"), "line 1: there is no 'zh', but en; name the keys with fields=(source, target)"),
        ("{}", ("en", "zh"), "line 1: there is no 'en', but nothing"),
        ('{"en": "a", "zh": 7}', ("en", "zh"), "line 1: 'zh' is int, but a sentence was wanted"),
        ("{}", "en", "fields is 'en', but two different keys were wanted"),
        ("{}", ("en", "en"), "fields is ('en', 'en'), but two different keys were wanted"),
        ("{}", ("en", "zh", "de"), "two different keys were wanted"),
    ],
)
def test_objects_without_the_two_texts_are_refused(tmp_path, line, fields, message):
    path = tmp_path / "few.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(DataError) as error:
        read_pairs(path, fields=fields)
    assert message in str(error.value)


def test_a_file_that_does_not_say_what_it_holds_and_an_empty_one_are_refused(tmp_path):
    for name in ("few.en", "few", "few.csv.gz"):
        with pytest.raises(DataError, match=r"does not say what it holds; give a \.tsv or a \.jsonl"):
            read_pairs(tmp_path / name)
    (tmp_path / "none.tsv").write_text("")
    with pytest.raises(DataError, match=r"none\.tsv holds no pairs"):
        read_pairs(tmp_path / "none.tsv")


def test_multi30k_is_read_as_its_page_says(shared):
    folder = shared / "data" / "multi30k"
    for stem, count in (("train", 29_000), ("val", 1_014), ("test_2016_flickr", 1_000)):
        pairs = read_pairs(folder / f"{stem}.en.gz", folder / f"{stem}.de.gz")
        assert (len(pairs), pairs.skipped) == (count, ())
        assert all(side == side.strip() != "" for pair in pairs for side in pair[:2])
    assert pairs[0].source == "A man in an orange hat starring at something."
    assert pairs[0].target == "Ein Mann mit einem orangefarbenen Hut, der etwas anstarrt."


def test_tatoeba_is_read_as_its_page_says(shared):
    path = shared / "data" / "tatoeba-cmn-eng" / "cmn.tsv.gz"
    pairs = read_pairs(path)
    assert (len(pairs), pairs.skipped) == (29_155, ())
    assert len({pair[:2] for pair in pairs}) == 29_055
    assert len({pair.source for pair in pairs}) == 27_661
    assert len({pair.target for pair in pairs}) == 25_543
    assert all(credit.startswith("CC-BY 2.0 (France) Attribution: tatoeba.org") for *_, credit in pairs)
    rows = csv.reader(io.StringIO(gzip.decompress(path.read_bytes()).decode()), delimiter="\t", quoting=csv.QUOTE_NONE)
    assert pairs == [tuple(row) for row in rows]
    assert read_pairs(path, swap=True)[2] == Pair(pairs[2].target, pairs[2].source, pairs[2].credit)
