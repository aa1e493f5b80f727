"""`regard translate`: texts in, translations and their alignments out."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from regard.cli.explore import ExploredRun, explore, why_not, written_output
from regard.cli.harmless import format_json
from regard.cli.lengths import check_length, say_cut
from regard.cli.outputs import check_target, explain_write_errors
from regard.cli.texts import Line, count_filled, read_lines
from regard.data.special import END, SPECIAL
from regard.errors import ConfigError, DataError
from regard.models.open.locate import is_run
from regard.tasks.read_and_written import looks_across
from regard.tasks.text_translator import TextTranslator, Translation, check_looks_across, open_translator

AT_ONCE = 64  # lines of a file
ENDINGS = (".html", ".svg", ".png", ".pdf", ".trace")
ONE_LINE = dict.fromkeys([*range(0x20), 0x7F, 0x85, 0x2028, 0x2029], " ")  # a line out for each line in


def translate_lines(
    where: str,
    texts: list[str],
    *,
    file: Path | None,
    length: int | None,
    beams: int,
    see: bool,
    to: Path | None,
    as_json: bool,
) -> Iterator[str]:
    """What to print, line by line as it is ready: a line for each line that came, an empty one for an empty one."""
    check_target(to, ENDINGS)
    if texts and is_run(Path(texts[0])):
        raise ConfigError(f"{texts[0]} is a run, not a text; name it as the model: regard translate -m {texts[0]} …")
    lines = read_lines(texts, file)
    translator = open_translator(where)
    opens = False
    if see or to is not None:
        check_looks_across(translator)
    if see and not as_json:
        why = why_not()
        opens, see = not why, bool(why)
        if why:
            typer.echo(f"the map is drawn here, because {why}; open it with: regard serve --model {where}", err=True)
    if not isinstance(lines, Iterator):  # what is wrong with one of them is said before the first is translated
        lines = readable_lines(translator, lines, length)
        check_fit(to, count_filled(lines))
    kept: list[Translation] = []
    any_came = False
    for some in chunks(lines, AT_ONCE if isinstance(lines, list) else 1):
        any_came = True
        some = some if isinstance(lines, list) else readable_lines(translator, some, length)
        made = iter(translator.translate([line.text for line in some if not line.blank], beams=beams))
        for line in some:
            one = None if line.blank else next(made)
            yield from format_translation(one, line, see, as_json)
            if one is not None and (opens or to is not None):
                kept.append(one)
    if not any_came or ((opens or to is not None) and not kept):
        raise DataError("there is nothing to translate; give a text, a file with --file, or lines on standard input")
    if to is not None:
        check_fit(to, len(kept))
        write_maps(kept, to)
        typer.echo(f"wrote {to}", err=True)  # what is printed are translations and nothing else
    if opens:
        explore(where, [make_explored_run(one) for one in kept])


# What comes in


def chunks(lines: Iterable[Line], size: int) -> Iterator[list[Line]]:
    some: list[Line] = []
    for line in lines:
        some.append(line)
        if len(some) >= size:
            yield some
            some = []
    if some:
        yield some


def readable_lines(translator: TextTranslator, lines: Iterable[Line], length: int | None) -> list[Line]:
    """The lines, cut where that is wanted; what the model cannot read is refused, with its place."""
    return [line if line.blank else readable_line(translator, line, length) for line in lines]


def readable_line(translator: TextTranslator, line: Line, length: int | None) -> Line:
    try:
        if length is not None:
            ends = [end for _, end in translator.source.encoding(line.text).offsets]
            if len(ends) > length:
                say_cut(len(ends), length, line.place)
                line = Line(line.text[: ends[length - 1]], line.place)
        translator.read(line.text)
    except DataError as error:
        if error.code == "text.longer":
            check_length(error.about["tokens"], error.about["limit"], line.place)
        raise DataError(f"{line.place}: {error}" if line.place else str(error)) from error
    return line


# What goes out


def check_fit(to: Path | None, count: int) -> None:
    if to is not None and to.suffix.lower() != ".html" and count > 1:
        raise ConfigError(f"{to.name!r} holds one map, but {count} texts came; write .html, or give one text")


def format_translation(one: Translation | None, line: Line, see: bool, as_json: bool) -> Iterator[str]:
    if as_json:
        yield format_json(record(one, line))
        return
    yield "" if one is None else one.text.translate(ONE_LINE)
    if see and one is not None:
        from regard.views.static.alignment import alignment_text

        rows, columns, weights = one.alignment()
        yield alignment_text(weights, rows, columns)


def record(one: Translation | None, line: Line) -> dict[str, Any]:
    """A translation as plain values; without weights where the model looks at nothing."""
    if one is None:
        return {"source": line.text, "text": "", "written": [], "read": [], "weights": []}
    texts: dict[str, Any] = {"source": one.source, "text": one.text}
    if not looks_across(one.translator.model):
        rows = [*one.shown.written_names, SPECIAL[END]]
        return texts | {"written": rows, "read": list(one.shown.source_names), "weights": None}
    rows, columns, weights = one.alignment()
    shares = [[round(share, 6) for share in row] for row in weights.tolist()]
    return texts | {"written": rows, "read": columns, "weights": shares}


def make_explored_run(one: Translation) -> ExploredRun:
    """A translation for the explorer, where it can be edited and made again."""
    given = {"text": one.source, "source": list(one.shown.source), "written": list(one.shown.written)}
    return ExploredRun(one.source, written_output(one.text), given, one.trace)


def write_maps(translations: Sequence[Translation], to: Path, title: str = "Which word looked at which") -> None:
    """The maps of translations as a page, or that of one as a picture or a trace."""
    with explain_write_errors(to):
        if to.suffix.lower() == ".trace":
            translations[0].trace().save(to)
        elif to.suffix.lower() == ".html":
            page(translations, to, title)
        else:
            figure(translations[0], to)


def page(translations: Sequence[Translation], to: Path, title: str) -> None:
    from regard.cli.pages import make_translations_page
    from regard.files import put

    put(to, make_translations_page(title, [(one.source, one) for one in translations]).encode())


def figure(one: Translation, to: Path) -> None:
    from regard.views.static.figure import heatmap
    from regard.views.static.grid import clean_label

    rows, columns, weights = one.alignment()
    title = clean_label(f"{one.source} → {one.text}", 90)
    heatmap(weights, title=title, rows="written", columns="read", row_labels=rows, column_labels=columns, to=to)
