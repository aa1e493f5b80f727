"""`regard summarise`: the command that the task of summaries adds."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import JSON


def summarise(
    text: Annotated[str, typer.Argument(metavar="FILE|TEXT", help="A text file (.gz too), a text, or - (stdin).")],
    model: Annotated[
        str, typer.Option("--model", "-m", help="A run, a folder of a model, or an embedded model that summarises.")
    ] = "summariser",
    beams: Annotated[int, typer.Option(min=1, help="Beam size; 1 is greedy.")] = 5,
    see: Annotated[bool, typer.Option("--see", help="Open the explorer: which word was copied from where.")] = False,
    to: Annotated[Path | None, typer.Option(help="Write its map: .html, .svg, .png, .pdf or .trace.")] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Write the summary of a text, and say which of its words were copied from where."""
    from regard.cli.summary_lines import summarise_text  # torch loads when a command runs, not when help is shown

    for line in summarise_text(text, model, beams=beams, see=see, to=to, as_json=as_json):
        typer.echo(line)
