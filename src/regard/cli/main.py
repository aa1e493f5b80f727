"""The command `regard`. Nothing heavy loads before a command runs, so that help is instant."""

import sys
from typing import Annotated

import typer

from regard import __version__
from regard.errors import RegardError

# Plain help: the library that draws boxes around it takes longer to load than all the rest.
app = typer.Typer(name="regard", rich_markup_mode=None, pretty_exceptions_enable=False)


def _version(asked: bool) -> bool:
    if asked:
        typer.echo(f"regard {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def regard(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and stop.")
    ] = False,
) -> None:
    """Build, train and see attention."""


@app.command()
def demo() -> None:
    """Attention worked by hand on a small example."""
    from regard.cli.demo import by_hand  # torch loads when a command runs, not when help is shown

    typer.echo(by_hand())


def main() -> None:
    """Run one command. What goes wrong on purpose is told in one sentence, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ░ or → still gets the numbers
    try:
        app(args=sys.argv[1:] or ["--help"], prog_name="regard")
    except RegardError as error:
        typer.echo(f"regard: {error}", err=True)
        raise SystemExit(2) from None
