"""Where a command gets its text from, the same for all of them: TEXT, `-` for standard input, or --file PATH."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from regard.errors import ConfigError, DataError

FILE = Annotated[Path | None, typer.Option("--file", help="Read the text from this UTF-8 file.")]
LENGTH = Annotated[
    int | None, typer.Option("--length", min=1, metavar="N", help="Truncate the text to its first N tokens.")
]
STDIN = "-"


class Line(NamedTuple):
    """A text, and where it stands; "" where it was given as a text."""

    text: str
    place: str = ""

    @property
    def blank(self) -> bool:
        return bool(self.place) and not self.text.strip()


class FileLines:
    """The lines of a file, read anew each time they are gone through: only one is in memory.

    The file is read once when this is made, so that what is wrong with any line is said before the first is used.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.filled = sum(not line.blank for line in self)

    def __iter__(self) -> Iterator[Line]:
        return number_lines(self.file)


def number_lines(file: Path) -> Iterator[Line]:
    """Each line of a file with its place."""
    from regard.data.lines import stream_lines

    for number, text in enumerate(stream_lines(file), 1):
        yield Line(text, f"{file}, line {number}")


def count_filled(lines: list[Line] | FileLines) -> int:
    """How many lines hold something."""
    return lines.filled if isinstance(lines, FileLines) else sum(not line.blank for line in lines)


def read_text(text: str | None, file: Path | None) -> str:
    """One text: as it was given, or all of a file or of standard input."""
    lines = read_lines([] if text is None else [text], file)
    whole = "\n".join(line.text for line in lines)
    if not whole.strip():
        came = f"{file} holds no text" if file else f"{'standard input' if text == STDIN else 'the text'} is empty"
        raise DataError(f"{came}, so there is nothing to look at; give some words")
    return whole


def read_lines(texts: Sequence[str], file: Path | None) -> list[Line] | FileLines | Iterator[Line]:
    """The texts, the lines of a file, or those of standard input as they come; exactly one of the three."""
    if file is not None and texts:
        raise ConfigError(f"both a text and the file {file} were given; give one of them")
    if file is not None:
        return FileLines(file) if os.path.isfile(file) else list(number_lines(file))  # a pipe can be read once
    if not texts:
        raise ConfigError("no text was given; give TEXT, - to read standard input, or --file PATH")
    if STDIN not in texts:
        for text in texts:
            check_characters(text)
            mention_file(text)
        return [Line(text) for text in texts]
    if len(texts) > 1:
        raise ConfigError(
            f"{len(texts)} texts were given, and one of them is -; give texts, or - alone for standard input"
        )
    return standard_input()


def check_characters(text: str) -> None:
    """Refuse a text of the command line with bytes that are no UTF-8, which Python hands on as half characters."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise DataError(f"{text!a:.80} holds bytes that are no UTF-8; give a text of whole characters")


def mention_file(text: str) -> None:
    """Say so where a text is also the name of a file: whoever gave it may have meant the file."""
    if len(text) < 4096 and "\0" not in text and os.path.isfile(text):
        typer.echo(
            f"{text!r} is read as text, but there is also a file of that name; to read the file: --file {text}",
            err=True,
        )


def standard_input() -> Iterator[Line]:
    """Its lines, each as soon as it is there."""
    if sys.stdin is None:
        raise DataError("there is no standard input; give TEXT, or --file PATH")
    for number, data in enumerate(sys.stdin.buffer, 1):
        place = f"standard input, line {number}"
        try:
            text = data.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            wrong = f"byte {error.start} (0x{data[error.start]:02x}) is no UTF-8"
            raise DataError(f"{place}: {wrong}; convert it first, for example by iconv -t UTF-8") from error
        if "\0" in text:
            raise DataError(f"{place}: byte {data.index(0)} is NUL, which no text has; give UTF-8 text")
        yield Line(text.removesuffix("\n").removesuffix("\r"), place)
