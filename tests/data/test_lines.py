"""Text files: what can be wrong with one is said in one sentence, with the line."""

import gzip
import os
import tracemalloc

import pytest

from regard.data.lines import PIECE, lines_of, objects_of, stream_lines
from regard.errors import DataError


@pytest.fixture
def wrote(tmp_path):
    """Writes bytes to a new file and gives its path."""

    def write(data: bytes, name: str = "text.en"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


def test_only_a_line_feed_ends_a_line(wrote):
    text = "one\u2028still\x85one\x0b\x0c\x1c\r\ntwo\rtwo\n\nfour"
    expected = ["one\u2028still\x85one\x0b\x0c\x1c", "two\rtwo", "", "four"]
    assert lines_of(wrote(text.encode())) == expected
    assert lines_of(wrote(text.encode() + b"\n")) == expected
    assert lines_of(wrote(gzip.compress(text.encode()), "text.en.gz")) == expected


def test_an_empty_file_has_no_lines_and_a_byte_order_mark_is_no_text(wrote):
    assert lines_of(wrote(b"")) == []
    assert lines_of(wrote("é\n".encode("utf-8-sig"))) == ["é"]


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        ("fine\nGrüße\n".encode("latin-1"), "a.de", "a.de, line 2: byte 7 (0xfc) is no UTF-8; save the file as UTF-8"),
        ("猫".encode()[:2], "a.zh", "a.zh, line 1: byte 0 (0xe7) is no UTF-8"),
        ("cat\n".encode("utf-16"), "a.en", "is a UTF-16 file, but UTF-8 text was wanted; save it as UTF-8"),
        (gzip.compress(b"cat\n"), "a.en", "is a gzip file, but UTF-8 text was wanted; name it .gz"),
        (b"PK\x03\x04....", "a.tsv", "is a zip file, but UTF-8 text was wanted; unpack it first"),
        (b"a\nb\nc\0c\n", "a.en", "a.en, line 3: byte 5 is NUL, which no text has"),
        (gzip.compress(b"cat\n" * 99)[:-9], "a.en.gz", "is no whole gzip file"),
        (b"cat\n", "a.en.gz", "is no whole gzip file"),
        (gzip.compress("ü".encode("latin-1")), "a.en.gz", "line 1: byte 0 (0xfc) is no UTF-8"),
    ],
    ids=["latin-1", "half", "utf-16", "packed", "zip", "nul", "cut-off", "unpacked", "packed-latin-1"],
)
def test_a_file_that_is_no_text_is_refused_with_its_place(wrote, data, name, message):
    with pytest.raises(DataError) as error:
        lines_of(wrote(data, name))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_of_two_gigabytes_without_a_line_end_is_refused_after_its_beginning(tmp_path, monkeypatch):
    path = tmp_path / "sparse.tsv"
    path.touch()
    os.truncate(path, 2**31)
    tracemalloc.start()
    with pytest.raises(DataError, match=r"sparse\.tsv, line 1: byte 0 is NUL"):
        lines_of(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * PIECE
    monkeypatch.setattr("regard.data.lines.LONGEST", 3 * PIECE)
    path.write_bytes(b"short\n" + b"a" * (3 * PIECE) + b"\n")
    with pytest.raises(DataError, match=r"sparse\.tsv, line 2: the line goes on beyond 3,145,728 bytes"):
        lines_of(path)


@pytest.mark.parametrize("length", [2**20 - 1, 2**20, 2**20 + 1, 3 * 2**20 + 5])
def test_a_long_line_is_one_line(wrote, length):
    path = wrote(b"x" * length + b"\n" + b"y" * length)
    assert [(line[0], len(line)) for line in stream_lines(path)] == [("x", length), ("y", length)]


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path):
    with pytest.raises(DataError, match=r"there is no file .*none\.en; give one that exists"):
        lines_of(tmp_path / "none.en")
    with pytest.raises(DataError, match="cannot be read"):
        lines_of(tmp_path)


def test_objects_are_read_line_by_line(wrote):
    path = wrote(b'{"a": "b"}\n\n{"c": 3}\n')
    assert objects_of(path) == [{"a": "b"}, None, {"c": 3}]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{'a': 1}", "line 2: there is no JSON"),
        (b"[1, 2]", "line 2: there is a JSON list; write one object a line"),
        (b"[" * 100_000, "line 2: there is no JSON"),
        (rb'{"a": "\ud800"}', "line 2: 'a' holds NUL or half a character"),
        (rb'{"a": "x\u0000"}', "line 2: 'a' holds NUL or half a character"),
    ],
    ids=["quotes", "list", "deep", "surrogate", "nul"],
)
def test_a_line_that_is_no_object_is_refused(wrote, line, message):
    with pytest.raises(DataError) as error:
        objects_of(wrote(b"{}\n" + line + b"\n", "few.jsonl"))
    assert message in str(error.value)
