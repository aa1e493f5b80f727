"""`regard classify`: texts in; their classes, and which words mattered in three ways, out."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from regard.cli.explore import ExploredRun, check_explorer, explore
from regard.cli.harmless import format_json
from regard.cli.lengths import say_unknown
from regard.cli.outputs import check_target, explain_write_errors
from regard.cli.texts import Line, count_filled, read_lines
from regard.errors import ConfigError, DataError
from regard.files import put
from regard.tasks.explanation_agreement import agreement_sentence
from regard.tasks.text_classification import TextClassification, classify_and_explain, trace_text
from regard.tasks.trained_classifier import TrainedClassifier, open_classifier
from regard.tokens.visible import cut, visible
from regard.views.words.terminal import ways_notes, words_text

AT_ONCE = 256  # lines of a file
ENDINGS = (".html", ".svg", ".png", ".pdf")


def classify_lines(
    where: str,
    texts: list[str],
    *,
    file: Path | None,
    words: bool | None,
    see: bool,
    to: Path | None,
    download: bool,
    as_json: bool,
) -> Iterator[str]:
    """What to print: of texts that were given their classes and words, of lines one line each, as they are ready."""
    check_target(to, ENDINGS, explorer=False)
    lines = read_lines(texts, file)
    listed = file is not None or not isinstance(lines, list)  # lines of a file or of standard input
    explain = to is not None or (not listed if words is None else words)
    opened = open_classifier(where, download=download)
    if see:
        check_explorer()
    if not isinstance(lines, Iterator):
        check_fit(to, count_filled(lines))
    kept: list[TextClassification] = []
    first: TextClassification | None = None
    for some in chunks(lines, 1 if isinstance(lines, Iterator) else AT_ONCE):
        made = iter(classify_and_explain(opened, [line.text for line in some if not line.blank], explain=explain))
        for line in some:
            one = None if line.blank else next(made)
            yield from format_classification(one, line, listed=listed, as_json=as_json)
            if one is not None:
                first = first or one
                tell_unread(opened, one, line)
                if see or to is not None:
                    kept.append(one)
    if first is None:
        raise DataError(f"{file or 'standard input'} holds no text, so there is nothing to classify; give some words")
    if explain and not as_json:
        yield from closing_lines(opened, first, where)
    if to is not None:
        check_fit(to, len(kept))
        write_words(opened, kept, to)
        typer.echo(f"wrote {to}", err=True)  # what is printed are classes and nothing else
    if see:
        explore(where, [keep_run(opened, one) for one in kept])


def chunks(lines: Iterable[Line], size: int) -> Iterator[list[Line]]:
    some: list[Line] = []
    for line in lines:
        some.append(line)
        if len(some) >= size:
            yield some
            some = []
    if some:
        yield some


def check_fit(to: Path | None, count: int) -> None:
    if to is not None and to.suffix.lower() != ".html" and count > 1:
        raise ConfigError(f"{to.name!r} holds one text, but {count} came; write .html, or give one text")


def format_classification(one: TextClassification | None, line: Line, *, listed: bool, as_json: bool) -> Iterator[str]:
    """A text as it is printed: JSON, a line for each line, or its words in three columns."""
    if as_json:
        nothing: dict[str, Any] = {"text": line.text, "class": None, "cut": False, "unknown": 0, "probabilities": {}}
        yield format_json(nothing if one is None else one.to_json())
    elif one is None:
        yield ""
    elif listed and one.importance is None:
        yield f"{visible(one.label)}\t{one.probabilities[one.label]:.4f}\t{cut(visible(one.text), 100)}"
    else:
        yield words_text(one) + "\n"


def tell_unread(opened: TrainedClassifier, one: TextClassification, line: Line) -> None:
    """Say what of a text the model could not read: its middle, or tokens that it does not know."""
    where = line.place or "the text"
    if one.is_cut:
        typer.echo(f"{where}: longer than {opened.max_length} tokens, so its beginning and its end are read", err=True)
    say_unknown(one.unknown, len(one.ids) - len(opened.tokens.before) - len(opened.tokens.after), where)


def closing_lines(opened: TrainedClassifier, one: TextClassification, where: str) -> Iterator[str]:
    """What the columns are, and how far attention can be trusted."""
    yield from ways_notes(one)
    measured = opened.facts.get("explain")
    if isinstance(measured, dict):
        yield agreement_sentence(measured)
    elif opened.facts:
        yield f"How well attention says what matters here: regard evaluate {where} --explain"


def write_words(opened: TrainedClassifier, kept: list[TextClassification], to: Path) -> None:
    """The words of texts as a page, or of one text as a figure."""
    with explain_write_errors(to):
        if to.suffix.lower() == ".html":
            from regard.views.words.page import words_page

            measured = opened.facts.get("explain")
            notes = [agreement_sentence(measured)] if isinstance(measured, dict) else []
            put(to, words_page(kept, title="Which words mattered", notes=notes).encode())
        else:
            from regard.views.words.figure import words_figure

            words_figure(kept[0], to=to)


def keep_run(opened: TrainedClassifier, one: TextClassification) -> ExploredRun:
    """A text as the explorer keeps it: it can be run again, and edited."""
    ranked = sorted(one.probabilities.items(), key=lambda item: -item[1])
    classes = [{"name": name, "share": share} for name, share in ranked[:10]]
    output: dict[str, Any] = {"text": None, "next": None, "classes": classes}
    given = {"ids": one.ids, "steps": 0, "temperature": 0.0, "seed": 0}
    return ExploredRun(one.text, output, given, lambda: trace_text(opened, one))
