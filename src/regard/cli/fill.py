"""`regard fill`: the command that the task of hidden words adds."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import DOWNLOAD, JSON, MODEL
from regard.cli.texts import FILE


def fill(
    texts: Annotated[
        list[str] | None, typer.Argument(help="What to fill, with [MASK] for each hidden word; - reads standard input.")
    ] = None,
    model: Annotated[str, MODEL] = "filler",
    file: FILE = None,
    top: Annotated[int, typer.Option(min=1, help="How many words to list for each gap.")] = 5,
    see: Annotated[bool, typer.Option("--see", help="Open the explorer: what each gap looked at.")] = False,
    to: Annotated[Path | None, typer.Option(help="Write its map: .html, .svg, .png, .pdf or .trace.")] = None,
    download: Annotated[bool, DOWNLOAD] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Fill in the words that [MASK] hides in TEXTS, or in each line of a file, with their probabilities."""
    from regard.cli.fill_texts import fill_texts  # torch loads when a command runs, not when help is shown

    fill_texts(model, texts or [], file=file, top=top, see=see, to=to, download=download, as_json=as_json)
