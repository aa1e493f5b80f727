"""`regard caption`: the command that the task of captions adds."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import JSON


def caption(
    files: Annotated[list[Path], typer.Argument(help="Pictures, each a file.")],
    model: Annotated[
        str, typer.Option("--model", "-m", help="A run, a folder of a model, or an embedded captioner.")
    ] = "shapes-captioner",
    beams: Annotated[int, typer.Option(min=1, help="Beam size; 1 is greedy.")] = 5,
    see: Annotated[bool, typer.Option("--see", help="Open the explorer: where each word looked.")] = False,
    to: Annotated[
        Path | None, typer.Option(help="Write where each word looked: .html, .svg, .png, .pdf or .trace.")
    ] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Write what pictures show, and where each word was seen."""
    from regard.cli.caption_lines import caption_pictures  # torch loads when a command runs, not when help is shown

    for line in caption_pictures(model, files, beams=beams, see=see, to=to, as_json=as_json):
        typer.echo(line)
