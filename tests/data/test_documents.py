"""Documents of text files: how they are cut, and that nothing stands in two parts."""

import gzip

import pytest

from regard.data.documents import DocumentSet, split_paths, stream_documents
from regard.errors import ConfigError, DataError
from tests.shared import MISSING_DATA, SHARED

TEXT = "one\n two \n\n \n\nthree\r\nfour\n"


@pytest.mark.parametrize(
    ("split", "wanted"),
    [
        ("paragraph", ["one\n two", "three\nfour"]),
        ("line", ["one", "two", "three", "four"]),
        ("file", ["one\n two \n\n \n\nthree\nfour"]),
        ("heading", ["one\n two \n\n \n\nthree\nfour"]),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_cut_into_documents(tmp_path, split, wanted, packed):
    path = tmp_path / ("a.txt.gz" if packed else "a.txt")
    path.write_bytes(gzip.compress(TEXT.encode()) if packed else TEXT.encode())
    assert list(stream_documents(path, split)) == wanted


def test_a_heading_begins_a_document_and_nothing_that_only_looks_like_one(tmp_path):
    path = tmp_path / "a.txt"
    lines = ["before", "", " = A = ", "", "a", " = not between blanks = ", "", " = = deeper = = ", " = x == y = ", "b"]
    path.write_text("\n".join([*lines, "", "=no spaces=", "", "", " = Two words = ", ""]))
    assert list(stream_documents(path, "heading")) == [
        "before",
        "\n".join([*lines[2:], "", "=no spaces="]).strip(),
        "= Two words =",
    ]


@pytest.mark.parametrize(("part", "articles"), [("train", 600), ("valid", 60), ("test", 60)])
def test_the_articles_of_wikitext_are_as_many_as_published(part, articles):
    """Merity et al. 2017, table 1."""
    path = SHARED / "data" / "wikitext2" / f"{part}.txt.gz"
    if not path.exists():
        pytest.skip(MISSING_DATA)
    assert sum(1 for _ in stream_documents(path, "heading")) == articles


def test_no_text_stands_in_two_parts_whatever_the_order(tmp_path):
    lines = [f"Line {number % 37}{'!' * (number % 3)}" for number in range(120)]
    parts = []
    for number, some in enumerate((lines, lines[::-1])):
        path = tmp_path / f"{number}.txt"
        path.write_text("\n".join(some))
        train, held = DocumentSet([path], "line", seed=5).hold_out(7)
        parts.append((set(train), set(held)))
        assert len(list(train)) + len(list(held)) == len(lines)
        assert len({text.rstrip("!") for text in held}) == 7
        assert not {text.rstrip("!") for text in held} & {text.rstrip("!") for text in train}
    assert parts[0] == parts[1]


def test_another_seed_holds_out_others(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(f"line {number}" for number in range(50)))
    held = [set(DocumentSet([path], "line", seed=seed).hold_out(5)[1]) for seed in (1, 2)]
    assert held[0] != held[1]


@pytest.mark.parametrize(("lines", "held"), [(7, 1), (58, 5), (5200, 500)])
def test_a_tenth_is_held_out_where_no_number_is_given(tmp_path, lines, held):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(f"line {number}" for number in range(lines)))
    train, validation = (list(part) for part in DocumentSet([path], "line").hold_out(0))
    assert (len(train), len(validation)) == (lines - held, held)
    assert not set(train) & set(validation)


def test_bad_input_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\nb\xe9d\n")
    with pytest.raises(DataError, match=r"a\.txt, line 2: byte 6 \(0xe9\) is no UTF-8"):
        list(stream_documents(path, "line"))
    path.write_text("one\n")
    with pytest.raises(DataError, match="3 documents for validation leave nothing to learn from, as there are 1"):
        DocumentSet([path], "line").hold_out(3)
    path.write_text("\n \n")
    for ask in (lambda empty: empty.hold_out(0), DocumentSet.must_hold_text):
        with pytest.raises(DataError, match=r"a\.txt holds no text; give a file with some"):
            ask(DocumentSet([path], "line"))
    with pytest.raises(ConfigError, match="split is 'word'; choose one of paragraph, line, file"):
        list(stream_documents(path, "word"))
    with pytest.raises(ConfigError, match="no text was named"):
        split_paths(" , ")
    with pytest.raises(DataError, match="there is no file"):
        list(DocumentSet(split_paths(f"{path},{tmp_path / 'b.txt'}")))


def test_lines_are_read_one_at_a_time(tmp_path):
    """A fault far on is told only when it is reached: nothing reads ahead of it."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\n" * 100_000 + b"\xff\n")
    documents = stream_documents(path, "line")
    assert [next(documents) for _ in range(3)] == ["good"] * 3
    with pytest.raises(DataError, match="line 100001"):
        list(documents)
