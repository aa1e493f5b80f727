"""Rows of a .csv that a quote swallowed: a quoted field that holds what looks like whole rows is refused."""

import csv
from pathlib import Path

from regard.data.lines import refuse
from regard.data.records import Record

REMEMBERED = 10_000  # labels that might be some, each with its first line
CLOSE = 'close the quote that opens here, or double a quote that is text ("")'


class SwallowedRows:
    """Watches the rows of one file that go over several lines.

    A quote that opens by mistake and is closed by the quote of a later row makes one long field of all rows between,
    and no parser can tell. But a line of that field then reads as a row: as many columns, and a label that other rows
    have. That is refused with its line; what was read until then was not shown to be right.

    >>> rows = SwallowedRows(Path("few.csv"))
    >>> rows.label = 1
    >>> rows.look(Record(2, 4, {"text": "so-so,neg\\nbad,neg\\nfine", "label": "pos"}), "pos")
    >>> rows.look(Record(5, 5, {"text": "poor", "label": "neg"}), "neg")
    >>> rows.must_be_none()
    Traceback (most recent call last):
    regard.errors.DataError: few.csv, line 2: a quoted field goes on to line 4, and its line 2 reads as a row ...
    """

    def __init__(self, path: Path) -> None:
        self.path, self.label = path, 0  # which column is the label
        self.known: set[str] = set()
        self.maybe: dict[str, tuple[int, int, int]] = {}  # label → row, its last line, the line that reads as a row

    def look(self, row: Record, label: str) -> None:
        """Remember what inside a row could be another."""
        self.known.add(label)
        if row.last == row.line:
            return
        cells = [str(value) for value in row.values.values()]
        before = row.line
        for number, cell in enumerate(cells):
            lines = cell.split("\n")
            for offset, line in enumerate(lines if len(lines) > 1 else ()):
                # The first line of a field continues the columns before it; a row that begins there has all of them.
                head = cells[:number] if offset == 0 else []
                found = split_row(line)
                if len(head) + len(found) == len(cells) and (offset or len(found) > 1):
                    name = [*head, *found][self.label]
                    if len(self.maybe) < REMEMBERED:
                        self.maybe.setdefault(name, (row.line, row.last, before + offset))
            before += len(lines) - 1

    def must_be_none(self) -> None:
        """Refuse the file where one of them has a label that rows of their own have."""
        for name, (line, last, inner) in self.maybe.items():
            if name in self.known:
                refuse(
                    self.path,
                    line,
                    f"a quoted field goes on to line {last}, and its line {inner} reads as a row of its own with the "
                    f"label {name!r}; {CLOSE}",
                )


def must_swallow_none(path: Path, row: Record) -> None:
    """Refuse a row in which every line of a quoted field reads as one of the file, where there are no labels to tell.

    That is: as many columns, in each of them something, and no space after a comma, as there is one in prose.

    >>> must_swallow_none(Path("few.csv"), Record(2, 4, {"text": "Hi.,Hello.\\nBye.,See you.\\nYes", "other": "Yes."}))
    Traceback (most recent call last):
    regard.errors.DataError: few.csv, line 2: a quoted field goes on to line 4, and its lines read as rows of their ...
    """
    cells = [str(value) for value in row.values.values()]
    for number, cell in enumerate(cells):
        first, *others = cell.split("\n")
        if not others:
            continue
        rows = [[*cells[:number], *split_row(first)], *map(split_row, others[:-1])]
        rows.append([*split_row(others[-1]), *cells[number + 1 :]])
        if all(len(one) == len(cells) and all(one) and not any(part[0].isspace() for part in one) for one in rows):
            refuse(
                path,
                row.line,
                f"a quoted field goes on to line {row.last}, and its lines read as rows of their own; {CLOSE}",
            )


def split_row(line: str) -> list[str]:
    """The columns of a line, none where it cannot be a row: it holds a carriage return, or a field beyond all measure.

    >>> split_row('a,"b, c"'), split_row("a\\rb")
    (['a', 'b, c'], [])
    """
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []
