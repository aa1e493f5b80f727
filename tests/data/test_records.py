"""Rows of files: what csv of the standard library reads, with lines, and faults that swallow nothing in silence."""

import csv
import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.records import Record, choose_column, stream_records, text_in
from regard.errors import DataError

CELL = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0\r"), max_size=12)


def rows(path, names=("text", "label")):
    return list(stream_records(path, names))


@given(table=st.lists(st.tuples(CELL, CELL, CELL).filter(lambda row: any(c.strip() for c in row)), max_size=7))
def test_what_the_standard_library_wrote_as_csv_comes_back(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([("text", "label", "more"), *table])
    path.write_bytes(buffer.getvalue().encode())
    came = rows(path)
    assert [tuple(row.values.values()) for row in came] == table
    whole = buffer.getvalue().split("\n")
    for row, (text, *_) in zip(came, table):
        assert row.last - row.line == sum(cell.count("\n") for cell in row.values.values())
        assert text.split("\n")[0].replace('"', '""') in whole[row.line - 1]


def test_a_tsv_takes_quotes_as_letters_and_knows_its_header(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b'LABEL\tsentence\n1\ta "good film\n\n0\tbad\n'))
    assert rows(path, ("sentence", "label")) == [
        Record(2, 2, {"label": "1", "sentence": 'a "good film'}),
        Record(4, 4, {"label": "0", "sentence": "bad"}),
    ]


def test_without_a_header_columns_are_called_by_the_names_that_are_wanted(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("good film\tpos\tx\n", encoding="utf-8")
    assert rows(path) == [Record(1, 1, {"text": "good film", "label": "pos", "3": "x"})]


def test_objects_keep_their_types(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "猫", "label": 3}) + "\n\n" + json.dumps({"text": "b", "label": None}) + "\n")
    assert [(row.line, row.values["label"]) for row in rows(path)] == [(1, 3), (3, None)]


FAULTS = {
    "open quote": ("a.csv", b'text,label\ngood,1\n"bad,0\nfine,1\n', "line 3: a quote .* never closed"),
    "quote within": ("a.csv", b'text,label\n"bad,0\n"fine",1\n', "line 2: a quote .* read on to line 3"),
    "rows within": (
        "a.csv",
        b'text,label\n"bad,0\nfine,1"\n',
        "line 2: there is 1 column, .* goes on to line 3",
    ),
    "columns": ("a.csv", b"text,label\ngood, very good,1\n", "line 2: there are 3 columns, but 2"),
    "tabs": ("a.tsv", b"text\tlabel\ngood\n", "line 2: there is 1 column, but 2"),
    "NUL": ("a.tsv", b"text\tlabel\ngood\t1\nb\0d\t0\n", "line 3: byte 19 is NUL"),
    "encoding": ("a.csv", b"text,label\ngood,1\ncaf\xe9,0\n", "line 3: byte 21 .* is no UTF-8"),
    "twice": ("a.csv", b"text,text\ngood,1\n", "line 1: two columns have the same name"),
    "encoding after a mark": ("a.csv", b"\xef\xbb\xbftext,label\ncaf\xe9,0\n", "line 2: byte 17 .* is no UTF-8"),
    "semicolons": ("a.csv", b"text;label\ngood;1\n", "line 1: the columns are separated by semicolons, but commas"),
    "commas": ("a.tsv", b'"text","label"\ngood,1\n', "line 1: the columns are separated by commas, but tabs"),
    "line ends of a .tsv": ("a.tsv", b"text\tlabel\rgood\t1\r", "line 1: a carriage return stands within the row"),
    "line ends of a .csv": ("a.csv", b"text,label\rgood,1\r", "line 1: a carriage return stands within a field"),
    "no object": ("a.jsonl", b'{"text": "a"}\n[1]\n', "line 2: there is a JSON list"),
    "ending": ("a.parquet", b"", "does not say what it holds"),
}


@pytest.mark.parametrize(("name", "content", "said"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_with_its_line(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=said):
        rows(path)


def test_rows_come_before_the_file_is_read_to_its_end(tmp_path):
    path = tmp_path / "long.csv"
    path.write_bytes(b"text,label\n" + b"good,1\n" * 5 + b'"never closed')
    stream = stream_records(path, ["text", "label"])
    assert [next(stream).line for _ in range(5)] == [2, 3, 4, 5, 6]
    before = csv.field_size_limit()
    with pytest.raises(DataError, match="line 7"):
        next(stream)
    assert csv.field_size_limit() == before


def test_a_column_is_found_by_its_usual_names_or_asked_for(tmp_path):
    row = Record(4, 4, {"review": "good", "stars": 5})
    assert choose_column(tmp_path, row, "", ("text", "review"), "text") == "review"
    with pytest.raises(DataError, match="line 4: there is none of text, sentence for the text, but 'review', 'stars'"):
        choose_column(tmp_path, row, "", ("text", "sentence"), "text")
    with pytest.raises(DataError, match="line 4: 'stars' is int, but a text was wanted"):
        text_in(tmp_path, row, "stars")
