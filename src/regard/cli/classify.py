"""`regard classify`: the command that the classification task adds."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import DOWNLOAD, JSON
from regard.cli.texts import FILE


def classify(
    texts: Annotated[list[str] | None, typer.Argument(help="What to classify; - reads standard input.")] = None,
    model: Annotated[
        str, typer.Option("--model", "-m", help="A run, a folder of a classifier, or an embedded one.")
    ] = "sentiment",
    file: FILE = None,
    words: Annotated[
        bool | None,
        typer.Option("--words/--no-words", help="Say which words mattered; by default of texts, not of lines."),
    ] = None,
    see: Annotated[bool, typer.Option("--see", help="Open the explorer: which token looked at which.")] = False,
    to: Annotated[Path | None, typer.Option(help="Write the words, shaded: .html, .svg, .png or .pdf.")] = None,
    download: Annotated[bool, DOWNLOAD] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Say which class TEXTS, or the lines of a file or of standard input, are of, and which words mattered."""
    from regard.cli.classify_lines import classify_lines  # torch loads when a command runs, not when help is shown

    lines = classify_lines(
        model, texts or [], file=file, words=words, see=see, to=to, download=download, as_json=as_json
    )
    for line in lines:
        typer.echo(line)
