"""Rows of .tsv, .csv and .jsonl files, one at a time: a file may be larger than the memory, a fault names its line."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.lines import refuse, stem_of, stream_lines, stream_objects
from regard.errors import DataError

FORMS = (".tsv", ".csv", ".jsonl")
SEPARATORS = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}
LARGEST = 2**24  # characters of a quoted field: more are a quote that was never closed


class Record(NamedTuple):
    """One row of a file.

    >>> Record(3, 3, {"text": "a cat", "label": "1"}).values["label"]
    '1'
    """

    line: int  # where it begins, from 1 on
    last: int  # where it ends: a quoted field of a .csv may hold line breaks
    values: dict[str, Any]  # by the name of the column; of a .jsonl whatever JSON holds


def stream_records(path: Path, names: Sequence[str]) -> Iterator[Record]:
    r"""The rows of a file, in order. A row that has not as many columns as the first is refused with its line.

    In .tsv a tab separates, and a quote is a letter like others. In .csv a comma separates, and a field in double
    quotes may hold commas, line breaks and doubled quotes; one that is never closed is refused with the line where it
    opened. In .jsonl each line is an object. Each may be compressed (.gz); all are UTF-8; empty lines are no rows.

    The first row is a header where one of its cells is one of `names`, whatever its case. Without a header the columns
    are called `names`, in that order, and what more there is by its number.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "few.csv"
    >>> _ = file.write_text('Label,Text\n1,"good, ""very""\ngood"\n0,bad\n', encoding="utf-8")
    >>> [tuple(row) for row in stream_records(file, ["text", "label"])]
    [(2, 3, {'label': '1', 'text': 'good, "very"\ngood'}), (4, 4, {'label': '0', 'text': 'bad'})]
    """
    form = stem_of(path)
    if form not in FORMS:
        raise DataError(f"{path} does not say what it holds; give a {', '.join(FORMS[:-1])} or {FORMS[-1]} (also .gz)")
    if form == ".jsonl":
        for number, one in stream_objects(path):
            if one is not None:
                yield Record(number, number, one)
        return
    header: list[str] | None = None
    for line, last, cells in stream_cells(path) if form == ".csv" else split_tabs(path):
        if header is None:
            folded = [cell.strip().lower() for cell in cells]
            known = {name.lower() for name in names}
            must_be_separated(path, line, folded, known)
            header = folded if set(folded) & known else []
            if header:
                if len(set(header)) < len(header):
                    refuse(path, line, "two columns have the same name; give each its own")
                continue
            header = [*names[: len(cells)], *map(str, range(len(names) + 1, len(cells) + 1))]
        if len(cells) != len(header):
            there = "there is 1 column" if len(cells) == 1 else f"there are {len(cells)} columns"
            advice = "quote a field that holds a comma" if form == ".csv" else "check its tabs"
            if last > line:
                advice = f'a quote (") opens here and goes on to line {last}: close it, or double one that is text ("")'
            refuse(path, line, f"{there}, but {len(header)} in the first row; {advice}")
        yield Record(line, last, dict(zip(header, cells)))


def must_be_separated(path: Path, line: int, first: list[str], known: set[str]) -> None:
    """Refuse a first row in which names of columns stand between other separators, or rows between other line ends."""
    ending = stem_of(path)
    if any("\r" in cell for cell in first) and ending == ".tsv":
        refuse(path, line, "a carriage return stands within the row; end each line with a line feed")
    if len(first) > 1:
        return
    for sign, name in SEPARATORS.items():
        parts = first[0].split(sign)
        if len(parts) > 1 and {part.strip('" ') for part in parts} & known:
            wanted = "tabs" if ending == ".tsv" else "commas"
            refuse(
                path, line, f"the columns are separated by {name}, but {wanted} were wanted in a {ending}; save it so"
            )


def split_tabs(path: Path) -> Iterator[tuple[int, int, list[str]]]:
    for number, line in enumerate(stream_lines(path), 1):
        if line.strip():
            yield number, number, line.split("\t")


def stream_cells(path: Path) -> Iterator[tuple[int, int, list[str]]]:
    """The rows of a .csv with their first and last lines."""
    reader = csv.reader((f"{line}\n" for line in stream_lines(path)), strict=True)
    before = 0
    while True:
        limit = csv.field_size_limit(LARGEST)  # one for the whole process: left as it was before anybody else reads
        try:
            cells = next(reader, None)
        except csv.Error as error:
            refuse(path, before + 1, explain_quote(str(error), before + 1, reader.line_num))
        finally:
            csv.field_size_limit(limit)
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            yield before + 1, reader.line_num, cells
        before = reader.line_num


def explain_quote(said: str, first: int, last: int) -> str:
    """What is wrong with the quotes of a row, and what to do."""
    if "unexpected end" in said or "field larger" in said:
        return 'a quote (") opens here and is never closed; close it, or double a quote that is text ("")'
    if "new-line character" in said:
        return "a carriage return stands within a field; quote the field, or end each line with a line feed"
    over = f" (the row was read on to line {last})" if last > first else ""
    return f'a quote (") closes a field in its middle{over}; double a quote that is text ("")'


def choose_column(path: Path, row: Record, named: str, usual: Sequence[str], what: str) -> str:
    """The name of the column that holds `what`: the one that was named, or the first of the usual names that is there.

    >>> choose_column(Path("a.tsv"), Record(2, 2, {"sentence": "a", "label": "1"}), "", ("text", "sentence"), "text")
    'sentence'
    """
    name = named if named else next((one for one in usual if one in row.values), "")
    if name not in row.values:
        there = ", ".join(map(repr, row.values)) or "nothing"
        wanted = f"no {named!r}" if named else f"none of {', '.join(usual)}"
        refuse(path, row.line, f"there is {wanted} for the {what}, but {there}; name its column")
    return name


def text_in(path: Path, row: Record, column: str) -> str:
    """The text of a row in this column, without the white space around it."""
    value = row.values.get(column)
    if not isinstance(value, str):
        came = "missing" if value is None else type(value).__name__
        refuse(path, row.line, f"{column!r} is {came}, but a text was wanted; give a string")
    return value.strip()
