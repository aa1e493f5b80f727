"""`regard classify-image`: the command that the task of pictures adds."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import DOWNLOAD, JSON


def classify_image(
    files: Annotated[list[Path], typer.Argument(help="Pictures, each a file.")],
    model: Annotated[
        str,
        typer.Option(
            "--model", "-m", help="A model that comes with regard, a run, or a folder of a model of pictures."
        ),
    ] = "digits",
    top: Annotated[int, typer.Option("--top", min=1, help="Classes to list for each picture.")] = 3,
    see: Annotated[bool, typer.Option("--see", help="Open the explorer over the pictures.")] = False,
    to: Annotated[
        Path | None, typer.Option(help="Write what the model attended to: .html, .trace, .svg, .png or .pdf.")
    ] = None,
    download: Annotated[bool, DOWNLOAD] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Say which class pictures are of."""
    from regard.cli.picture_lines import classify_pictures  # torch loads when a command runs, not when help is shown

    for line in classify_pictures(model, files, top=top, see=see, to=to, download=download, as_json=as_json):
        typer.echo(line)
