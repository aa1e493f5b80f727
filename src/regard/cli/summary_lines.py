"""`regard summarise`: a text in, its summary and the origin of each word out."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from regard.cli.explore import explore, why_not
from regard.cli.harmless import format_json
from regard.cli.outputs import check_target
from regard.cli.texts import STDIN, read_text
from regard.cli.translation_lines import ENDINGS, ONE_LINE, make_explored_run, write_maps
from regard.errors import DataError
from regard.tasks.text_summariser import SummaryWord, TextSummary, open_summariser
from regard.tokens.visible import columns, cut
from regard.views.static.grid import clean_label

TITLE = "What each word was copied from"
WIDE = 24  # columns of a word
PATH = re.compile(r"\S*(/|\\|\.[A-Za-z]\w{0,4}(\.gz)?$)\S*")  # what looks like the name of a file


def summarise_text(given: str, where: str, *, beams: int, see: bool, to: Path | None, as_json: bool) -> Iterator[str]:
    """What to print: the summary, and below it each word with g and its place in the text."""
    check_target(to, ENDINGS)
    text = read_document(given)
    summariser = open_summariser(where)
    opens = False
    if see and not as_json:
        why = why_not()
        opens, see = not why, bool(why)
        if why:
            typer.echo(f"the map is drawn here, because {why}; open it with: regard serve {where}", err=True)
    summary = summariser.summarise([text], beams=beams)[0]
    read = len(summary.shown.source) - 1
    if read < summary.tokens:
        typer.echo(f"the model reads the first {read:,} of the {summary.tokens:,} tokens of this text", err=True)
    words = summary.words() if summariser.copies else None
    yield format_json(record(summary, words)) if as_json else summary.text.translate(ONE_LINE)
    if words and not as_json:
        yield from ["", *format_words(words)]
    if see and not as_json:
        from regard.views.static.alignment import alignment_text

        rows, read_names, weights = summary.alignment()
        yield from ["", alignment_text(weights, rows, read_names)]
    if to is not None:
        write_maps([summary], to, title=TITLE)
        typer.echo(f"wrote {to}", err=True)
    if opens:
        explore(where, [make_explored_run(summary)])


def read_document(given: str) -> str:
    """A file as one text, all of standard input, or the text itself."""
    if os.path.isdir(given):
        raise DataError(f"{cut(given, 80)!r} is a folder, but one text was wanted; give a file, or the text itself")
    if given == STDIN or not os.path.isfile(given):
        if given != STDIN and len(given) < 4096 and PATH.fullmatch(given):
            raise DataError(f"there is no file {cut(given, 80)!r}; give one that exists, or the text itself")
        return read_text(given, None)
    return read_text(None, Path(given))


def record(summary: TextSummary, words: Sequence[SummaryWord] | None) -> dict[str, Any]:
    """A summary as plain values; `words` is null where the model copies nothing."""
    listed = None if words is None else [word._asdict() for word in words]
    for one in listed or []:
        one |= {"g": round(one["g"], 6), "copied": round(one["copied"], 6)}
    read = len(summary.shown.source) - 1
    return {"text": summary.text, "tokens": summary.tokens, "read": read, "words": listed}


def format_words(words: Sequence[SummaryWord]) -> list[str]:
    """A line for each word: g, whether it was copied or generated, and from where.

    >>> print(*format_words([SummaryWord("Bishops", 0.1, 0.93, 27, "…out of [Bishops] Corner…")]), sep="\\n")
    word     g     came from
    Bishops  0.10  copied, token 27: …out of [Bishops] Corner…
    """
    names = [clean_label(word.text, WIDE) for word in words]
    width = max(columns(name) for name in ["word", *names]) + 2
    lines = [f"{'word':<{width}}g     came from"]
    for name, word in zip(names, words):
        origin = "the vocabulary" if word.position is None else f"copied, token {word.position}: {word.context}"
        lines.append(f"{name}{' ' * (width - columns(name))}{word.g:.2f}  {origin.translate(ONE_LINE)}")
    return lines
