"""Texts with summaries from files: read as they stand, or refused with the line at fault."""

import gzip
import json

import pytest

from regard.data.summaries import FieldNames, SummaryExample, SummarySet, hold_out, read_summaries
from regard.errors import DataError
from tests.shared import MISSING_DATA, SHARED

A, B = SummaryExample("We meet on Monday.", "Meeting"), SummaryExample("Dinner is ready.", "Dinner")


def write(to, *lines, end="\n"):
    data = "".join(line + end for line in lines).encode("utf-8", "surrogatepass")
    to.write_bytes(gzip.compress(data) if to.suffix == ".gz" else data)
    return to


@pytest.mark.parametrize("name", ["few.tsv", "few.tsv.gz"])
def test_text_and_summary_stand_in_two_columns(tmp_path, name):
    file = write(tmp_path / name, f" {A.text}\t{A.summary} ", f"{B.text}\t{B.summary}", end="\r\n")
    assert read_summaries(file) == [A, B]


@pytest.mark.parametrize(
    ("header", "given"),
    [
        ("text\tsummary", FieldNames()),
        ("Document\tTITLE", FieldNames()),
        ("Post\tTL;DR", FieldNames("post", "TL;DR")),
        ("post\tsummary", FieldNames("post")),
    ],
)
def test_a_first_line_that_names_the_columns_is_no_example_and_says_their_order(tmp_path, header, given):
    rows = [(A.text, A.summary), (B.text, B.summary)]
    file = write(tmp_path / "few.tsv", header, "", *map("\t".join, rows))
    found = read_summaries(file, fields=given, skip_empty=True)
    assert (found, found.skipped) == ([A, B], (2,))
    turned = "\t".join(header.split("\t")[::-1])
    assert read_summaries(
        write(tmp_path / "few.tsv", turned, *("\t".join(row[::-1]) for row in rows)), fields=given
    ) == [A, B]


def test_columns_of_a_tsv_that_are_not_there_are_said(tmp_path):
    file = write(tmp_path / "few.tsv", "text\tpoem", "a\tb")
    with pytest.raises(DataError, match=r"line 1: no field holds a summary \(there is 'text', 'poem'\)"):
        read_summaries(file)
    with pytest.raises(
        DataError, match="line 1: there is no 'verse', but 'text', 'poem'; name it with --summary-field"
    ):
        read_summaries(file, fields=FieldNames(summary="verse"))
    with pytest.raises(DataError, match="holds no text with a summary"):
        read_summaries(write(tmp_path / "few.tsv", "text\tsummary"))


@pytest.mark.parametrize("text", ["document", "text", "body", "article"])
@pytest.mark.parametrize("summary", ["summary", "subject", "title", "headline"])
def test_fields_are_found_by_their_usual_names(tmp_path, text, summary):
    file = write(
        tmp_path / "few.jsonl", *(json.dumps({"id": 3, text: one.text, summary: one.summary}) for one in (A, B))
    )
    assert read_summaries(file) == [A, B]


def test_the_likeliest_of_several_usual_names_is_taken_and_a_name_that_is_given_before_it(tmp_path):
    one = {"title": "News", "summary": "Meeting", "text": "We meet on Monday.", "note": "Dinner is ready."}
    file = write(tmp_path / "few.jsonl", json.dumps(one))
    assert read_summaries(file) == [A]
    assert read_summaries(file, fields=FieldNames("note", "title")) == [SummaryExample("Dinner is ready.", "News")]


def test_further_summaries_come_along(tmp_path):
    lines = [{"body": "a", "subject": "b", "annotations": ["c", " ", "d "]}, {"body": "e", "subject": "f"}]
    file = write(tmp_path / "few.jsonl.gz", *map(json.dumps, lines))
    assert [one.references for one in read_summaries(file)] == [("c", "d"), ()]
    named = FieldNames(references="others")
    assert [one.references for one in read_summaries(file, fields=named)] == [(), ()]


def test_empty_lines_are_left_out_and_counted_or_refused(tmp_path):
    file = write(tmp_path / "few.tsv", "", f"{A.text}\t{A.summary}", "\tno text", "no summary\t ")
    found = read_summaries(file, skip_empty=True)
    assert (found, found.skipped) == ([A], (1, 3, 4))
    with pytest.raises(DataError, match=r"few\.tsv, line 1: the line is empty"):
        read_summaries(file)


WRONG = {
    "no.tsv": ("one column", "line 1: there is 1 column"),
    "many.tsv": ("a\tb\tc", "line 1: there are 3 columns, but a text and a summary were wanted"),
    "nul.tsv": ("a\0\tb", "line 1: byte 1 is NUL"),
    "no.jsonl": ('{"body": 1', "line 1: there is no JSON"),
    "list.jsonl": ("[1]", "line 1: there is a JSON list; write one object a line"),
    "text.jsonl": (
        '{"x": "a", "subject": "b"}',
        "line 1: no field holds a text .there is 'x', 'subject'.; name it with",
    ),
    "summary.jsonl": ('{"body": "a"}', "line 1: no field holds a summary .there is 'body'."),
    "type.jsonl": ('{"body": 3, "subject": "b"}', "line 1: 'body' is int, but a text was wanted"),
    "null.jsonl": ('{"body": "a", "subject": null}', "line 1: 'subject' is NoneType"),
    "nul.jsonl": (r'{"body": "a\u0000", "subject": "b"}', "line 1: 'body' holds NUL"),
    "half.jsonl": (r'{"body": "a", "subject": "\ud83d"}', "line 1: 'subject' holds NUL or half a character"),
    "others.jsonl": ('{"body": "a", "subject": "b", "annotations": "c"}', "line 1: 'annotations' is no list of texts"),
    "mixed.jsonl": ('{"body": "a", "subject": "b", "annotations": [1]}', "line 1: 'annotations' is no list of texts"),
    "broken.jsonl": (r'{"body": "a", "subject": "b", "annotations": ["\u0000"]}', "line 1: 'annotations' holds NUL"),
    "few.csv": ("a,b", "does not say what it holds"),
    "empty.jsonl": ("", "holds no text with a summary"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_a_sentence_with_file_and_line(tmp_path, name):
    line, said = WRONG[name]
    with pytest.raises(DataError, match=said) as error:
        read_summaries(write(tmp_path / name, line), skip_empty=name.startswith("empty"))
    assert str(tmp_path / name) in str(error.value)
    assert "\n" not in str(error.value)


def test_the_line_at_fault_is_counted_and_names_hold_for_the_whole_file(tmp_path):
    good, other = json.dumps({"body": "a", "subject": "b"}), json.dumps({"text": "a", "subject": "b"})
    with pytest.raises(DataError, match="line 3: there is no 'body', but 'text', 'subject'"):
        read_summaries(write(tmp_path / "few.jsonl", "", good, other), skip_empty=True)
    with pytest.raises(DataError, match="'body' cannot be both text and summary"):
        read_summaries(tmp_path / "few.jsonl", fields=FieldNames(summary="body"), skip_empty=True)


def test_other_encodings_and_damaged_archives_are_refused(tmp_path):
    (tmp_path / "latin.tsv").write_bytes("a\tcafé\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"latin\.tsv, line 1: byte 5 \(0xe9\) is no UTF-8"):
        read_summaries(tmp_path / "latin.tsv")
    (tmp_path / "cut.tsv.gz").write_bytes(gzip.compress(b"a\tb\n" * 99)[:-9])
    with pytest.raises(DataError, match="no whole gzip file"):
        read_summaries(tmp_path / "cut.tsv.gz")
    with pytest.raises(DataError, match="there is no file"):
        read_summaries(tmp_path / "none.tsv")


def test_no_text_stands_in_both_parts_whatever_the_order():
    examples = SummarySet([SummaryExample(f"text {i % 7}{'!' * (i % 2)}", f"{i}") for i in range(21)], skipped=[4])
    parts = hold_out(examples, 2, seed=5)
    sides = [{one.text.rstrip("!") for one in part} for part in parts]
    assert (len(sides[1]), sides[0] & sides[1], parts.train.skipped) == (2, set(), (4,))
    turned = hold_out(SummarySet(examples[::-1]), 2, seed=5)
    assert {one.text for one in turned.validation} == {one.text for one in parts.validation}
    with pytest.raises(DataError, match="7 texts for validation leave nothing to learn from"):
        hold_out(examples, 7, seed=5)


def test_real_mails_are_read(shared):
    folder = SHARED / "data" / "summaries"
    if not folder.is_dir():
        pytest.skip(MISSING_DATA)
    found = read_summaries(folder / "dev.jsonl.gz")
    assert (len(found), found.skipped) == (1960, ())
    assert {len(one.references) for one in found} == {3}
