"""`regard fill`: texts with gaps in, the words expected there out."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from regard.app.protocol.messages import ModelOutput, Probability
from regard.cli.explore import ExploredRun, explore, why_not
from regard.cli.harmless import format_json
from regard.cli.opening import open_named_filler
from regard.cli.outputs import check_target, explain_write_errors
from regard.cli.see import ENDINGS, write_file
from regard.cli.texts import Line, count_filled, read_lines
from regard.cli.token_lines import TokenPrinter, show_row
from regard.cli.translation_lines import check_fit
from regard.errors import DataError
from regard.tasks.text_filler import FilledText, Gap, TextFiller
from regard.tokens.visible import columns, cut
from regard.trace.record.trace import Trace
from regard.views.static.trace_terminal import TOKEN, pad_right, style_of

BAR = 32  # columns of a probability of 1
EIGHTHS = " ▏▎▍▌▋▊▉"


def fill_texts(
    where: str,
    texts: list[str],
    *,
    file: Path | None,
    top: int,
    see: bool,
    to: Path | None,
    download: bool,
    as_json: bool,
) -> None:
    """Print the words of each gap as they are found, and then what was looked at, where that is wanted."""
    check_target(to, ENDINGS)
    lines = read_lines(texts, file)
    filler = open_named_filler(where, download=download)
    opens = False
    if see and not as_json:
        why = why_not()
        opens = not why
        if why:
            typer.echo(f"shown here, because {why}; open it with: regard serve --model {where}", err=True)
    if not isinstance(lines, Iterator):  # what is wrong with one of them is said before the first is filled
        for line in lines:
            None if line.blank else read_line(filler, line)
        check_fit(to, count_filled(lines))
    printer = TokenPrinter()
    kept: list[FilledText] = []
    count = 0
    for count, filled in enumerate(fill_lines(filler, lines, top), 1):
        if as_json:
            typer.echo(format_json(record(filled)))
        else:
            show_filled(filler, filled, printer, first=count == 1, looks=see and not opens)
        if opens or to is not None:
            kept.append(filled)
    if not count:
        raise DataError("there is nothing to fill; give a text, a file with --file, or lines on standard input")
    if to is not None:
        check_fit(to, len(kept))
        write_maps(filler, kept, to)
        typer.echo(f"wrote {to}", err=True)  # what is printed are the words and nothing else
    if opens:
        explore(where, [run_of(filler, one) for one in kept])


def fill_lines(filler: TextFiller, lines: Iterable[Line], top: int) -> Iterator[FilledText]:
    """Each line that holds something, filled; what cannot be is refused with its place."""
    for line in lines:
        if not line.blank:
            read_line(filler, line)
            yield filler.fill(line.text, top=top)


def read_line(filler: TextFiller, line: Line) -> None:
    try:
        filler.read(line.text)
    except DataError as error:
        raise DataError(f"{line.place}: {error}" if line.place else str(error)) from error


# What goes out


def record(filled: FilledText) -> dict[str, Any]:
    """A filled text as plain values."""
    gaps = [{"position": gap.position, "words": [word._asdict() for word in gap.words]} for gap in filled.gaps]
    return {"source": filled.source, "text": filled.text, "gaps": gaps}


def show_filled(filler: TextFiller, filled: FilledText, printer: TokenPrinter, *, first: bool, looks: bool) -> None:
    """The filled text, and below it a bar for each word of each gap; with `looks` what the gap attended to."""
    printer.show(f"{'' if first else chr(10)}{filled.text}\n", "bold")
    trace, names = (filler.trace(filled), filler.names.names(filled.ids)) if looks else (None, [])
    for number, gap in enumerate(filled.gaps, 1):
        if len(filled.gaps) > 1:
            printer.show(f"gap {number}\n", "dim")
        show_gap(gap, printer)
        if trace is not None:
            show_row(trace, gap.position, names[gap.position], names, printer)


def show_gap(gap: Gap, printer: TokenPrinter) -> None:
    names = [cut(word.name, 2 * TOKEN) for word in gap.words]
    wide = max(TOKEN, *map(columns, names))
    for word, name in zip(gap.words, names):
        printer.show(f"  {pad_right(name, wide)}  ")
        printer.show(f"{word.probability:.3f} {draw_bar(word.probability)}\n", style_of(word.probability))


def draw_bar(share: float) -> str:
    """A share as a bar of at most 32 columns, to an eighth of a column.

    >>> draw_bar(1.0) == "█" * 32, draw_bar(0.05), draw_bar(0.001)
    (True, '█▌', '')
    """
    whole, rest = divmod(int(share * BAR * 8), 8)
    return ("█" * whole + EIGHTHS[rest]).rstrip()


# Maps


def write_maps(filler: TextFiller, texts: Sequence[FilledText], to: Path) -> None:
    """What the gaps attended to: all texts as a page, or one as a picture or a trace."""
    with explain_write_errors(to):
        if to.suffix.lower() != ".html":
            write_file(filler.trace(texts[0]), texts[0].source, None, None, to, words=False)
            return
        from regard.views.explorer.page import PageTrace, page_html, write_page

        pages = [PageTrace(run.trace(), run.text, run.output) for run in (run_of(filler, one) for one in texts)]
        first, *others = pages
        start = find_address(texts[0], first.trace)
        made = page_html(first.trace, name=first.name, output=first.output, others=others, first=start)
        write_page(to, made)


def find_address(filled: FilledText, trace: Trace) -> str:
    """The address of the first gap in the sharpest head of the last layer."""
    layer = len(trace.layers) - 1
    head = int(trace.layers[layer].weights[0].entropy()[:, filled.gaps[0].position].argmin())
    return f"#/layer={layer}&head={head}&q={filled.gaps[0].position}"


def run_of(filler: TextFiller, filled: FilledText) -> ExploredRun:
    """The same as a run of the explorer, which names the words of the first gap."""
    words = [Probability(name=word.name, share=word.probability) for word in filled.gaps[0].words]
    output = ModelOutput(text=filled.text, next=None, classes=None, masked=words)
    given = {"ids": list(filled.ids), "steps": 0, "temperature": 0.0, "seed": 0}
    return ExploredRun(filled.source, output.to_json(), given, lambda: filler.trace(filled))
