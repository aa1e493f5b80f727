"""Texts with labels, one at a time: rows of .tsv, .csv and .jsonl files, or a folder with one folder for each class."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.class_folders import has_parts, left_out_folders, stream_class_files
from regard.data.lines import refuse, stem_of
from regard.data.records import Record, choose_column, stream_records, text_in
from regard.data.swallowed import SwallowedRows
from regard.errors import ConfigError, DataError

TEXT_NAMES = ("text", "sentence", "review", "content", "comment", "document", "tweet", "body")
LABEL_NAMES = ("label", "sentiment", "class", "category", "target", "polarity")
BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


class LabelledText(NamedTuple):
    """One text, its label, and where it stands.

    >>> LabelledText("a good film", "pos", Path("few.tsv"), 2).label
    'pos'
    """

    text: str
    label: str
    path: Path
    line: int


@dataclass(frozen=True)
class LabelledTexts:
    r"""The texts of several files or folders, read anew each time they are gone through: only one is in memory.

    `text_field` and `label_field` name the columns; unless given, the first usual name that is there is taken. A text
    without letters, a label that is missing or empty, and a row of a .csv that swallowed others are refused with their
    line. Labels are strings; a number of a .jsonl becomes one.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "few.csv"
    >>> _ = file.write_text('review,sentiment\n"Good,<br />very good.",positive\nBad.,negative\n', encoding="utf-8")
    >>> [(one.text, one.label, one.line) for one in LabelledTexts([file])]
    [('Good,\nvery good.', 'positive', 2), ('Bad.', 'negative', 3)]
    """

    paths: list[Path]
    text_field: str = ""
    label_field: str = ""
    label_names: Mapping[str, str] = field(default_factory=dict)  # what a label is called instead

    def __post_init__(self) -> None:
        if self.text_field and self.text_field == self.label_field:
            raise ConfigError(f"text and label are both {self.text_field!r}; name two columns")

    def __iter__(self) -> Iterator[LabelledText]:
        for path in self.paths:
            some = stream_class_files(path) if path.is_dir() else self.stream_rows(path)
            for text, label, where, line in some:
                cleaned = clean_text(text)
                if not cleaned:
                    refuse(where, line, "the text is empty; give some words, or leave the row out")
                yield LabelledText(cleaned, self.label_names.get(label, label), where, line)

    def stream_rows(self, path: Path) -> Iterator[tuple[str, str, Path, int]]:
        """Text, label, file and line of each row."""
        names = [*first_of(self.text_field, "text"), *first_of(self.label_field, "label"), *TEXT_NAMES, *LABEL_NAMES]
        columns: tuple[str, str] | None = None
        swallowed = SwallowedRows(path)
        for row in stream_records(path, list(dict.fromkeys(names))):
            if columns is None:
                columns = self.choose_columns(path, row)
                swallowed.label = list(row.values).index(columns[1])
            label = label_in(path, row, columns[1])
            if stem_of(path) == ".csv":
                swallowed.look(row, label)
            yield text_in(path, row, columns[0]), label, path, row.line
        swallowed.must_be_none()

    def choose_columns(self, path: Path, row: Record) -> tuple[str, str]:
        """Where the text and the label stand."""
        text = choose_column(path, row, self.text_field, TEXT_NAMES, "text (--text-field)")
        label = choose_column(path, row, self.label_field, LABEL_NAMES, "label (--label-field)")
        return text, label

    @property
    def notices(self) -> list[str]:
        """What of the folders is not read, in a sentence each."""
        found = []
        for path in self.paths:
            if path.is_dir():
                if has_parts(path):
                    found.append(
                        f"{path} has parts of its own, of which {path / 'train'} is read; name another by its folder"
                    )
                found += [f"{one} is left out: its texts have no labels" for one in left_out_folders(path)]
        return found


def first_of(named: str, usual: str) -> list[str]:
    """What a column without a header is called: as it was named, or by its first usual name."""
    return [named.lower() if named else usual]


def clean_text(text: str) -> str:
    r"""A text as it is read: `<br />` is a line break, and white space around it is no part of it.

    >>> clean_text(" Good.<br /><BR>Very good. ")
    'Good.\n\nVery good.'
    """
    return BREAK.sub("\n", text).strip() if "<" in text else text.strip()


def label_in(path: Path, row: Record, column: str) -> str:
    """The label of a row as a string."""
    value: Any = row.values.get(column)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        refuse(path, row.line, f"the label {column!r} is {'missing' if value is None else 'empty'}; give one")
    if not isinstance(value, str):
        refuse(
            path, row.line, f"the label {column!r} is {type(value).__name__}, but one name was wanted; give a string"
        )
    return value.strip()


def split_names(named: str) -> dict[str, str]:
    """Names of labels, as a setting has them.

    >>> split_names("0=negative, 1=positive")
    {'0': 'negative', '1': 'positive'}
    """
    pairs = [part.partition("=") for part in named.split(",") if part.strip()]
    wrong = next((label for label, sign, name in pairs if not (label.strip() and sign and name.strip())), None)
    if wrong is not None:
        raise ConfigError(f"{wrong.strip()!r} is no name of a label; write '0=negative,1=positive'")
    return {label.strip(): name.strip() for label, _, name in pairs}


def labelled_paths(named: str) -> list[Path]:
    """The files and folders that a setting names, as 'a.tsv,b.csv.gz'."""
    paths = [Path(part.strip()) for part in named.split(",") if part.strip()]
    if not paths:
        raise ConfigError("no texts were named; give a .tsv, .csv or .jsonl file, or a folder of class folders")
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise DataError(
            f"there is no file or folder {str(missing)!r} to read labelled texts from; name one that exists"
        )
    return paths
