"""`regard translate`: the command that the translation task adds."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import JSON
from regard.cli.texts import FILE, LENGTH

DEFAULT = "en-zh"


def translate(
    texts: Annotated[list[str] | None, typer.Argument(help="What to translate; - reads standard input.")] = None,
    model: Annotated[
        str, typer.Option("--model", "-m", help="A run, a folder of a model, or an embedded translator.")
    ] = DEFAULT,
    file: FILE = None,
    length: LENGTH = None,
    beams: Annotated[int, typer.Option(min=1, help="Beam size; 1 is greedy.")] = 5,
    see: Annotated[bool, typer.Option("--see", help="Open the explorer: which word looked at which.")] = False,
    to: Annotated[Path | None, typer.Option(help="Write its map: .html, .svg, .png, .pdf or .trace.")] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Translate TEXTS, or each line of a file or of standard input."""
    from regard.cli.translation_lines import translate_lines  # torch loads when a command runs, not when help is shown

    lines = translate_lines(model, texts or [], file=file, length=length, beams=beams, see=see, to=to, as_json=as_json)
    for line in lines:
        typer.echo(line)
