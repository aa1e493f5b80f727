"""`--see`: translations and other runs in the explorer, opened as `regard serve` opens it."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer

from regard.cli.serve import busy, default_folder, make_known, print_address
from regard.errors import ConfigError, RegardError
from regard.extras import APP, is_missing
from regard.trace.record.trace import Trace
from regard.views.explorer.bundle import read_bundle

HOST = "127.0.0.1"
MOST = 32  # runs of one call


def why_not() -> str:
    """Why no explorer can be opened here; "" where one can."""
    if not in_terminal():
        return "what is printed here goes to no terminal"
    try:
        from regard.app import serving
    except ImportError as error:
        if is_missing(error, APP):
            return "the app is not installed (pip install 'regard[app]')"
        return f"the app cannot be imported ({type(error).__name__}: {error})"
    if not serving.has_browser():
        return "no browser can be opened here"
    try:
        read_bundle()
    except RegardError:
        return "the explorer is not built (make bundle)"
    return ""


def check_explorer() -> None:
    """Refuse, before anything is computed, where no explorer can be opened."""
    why = why_not()
    if why:
        raise ConfigError(f"the explorer cannot be opened here, because {why}; leave --see out, or write --to a file")


def in_terminal() -> bool:
    """Whether somebody reads what is printed."""
    return sys.stdout.isatty()


class ExploredRun(NamedTuple):
    """A run as the explorer keeps it: what was read, what came out, what is needed to run it again, and its trace."""

    text: str
    output: dict[str, Any]  # ModelOutput of the protocol
    given: dict[str, Any]  # the inputs of its runner
    trace: Callable[[], Trace]
    picture: dict[str, Any] | None = None  # ShownPicture of the protocol


def written_output(text: str) -> dict[str, Any]:
    """What came out of a model that writes, as ModelOutput of the protocol.

    >>> written_output("猫")
    {'text': '猫', 'next': None, 'classes': None}
    """
    return {"text": text, "next": None, "classes": None}


def explore(where: str, runs: Sequence[ExploredRun]) -> None:
    """Serve the runs until Ctrl-C, the first of them in front; they are kept like every run of the explorer."""
    from regard.app import serving
    from regard.app.studio.cards import Card, make_id
    from regard.app.studio.studio import Studio, title

    if len(runs) > MOST:
        typer.echo(f"The first {MOST} of {len(runs)} texts are opened.", err=True)
    at = serving.listen(HOST, None)
    try:
        with busy("opening the explorer"):
            studio = Studio(keep=default_folder(), runs=Path("runs"))
            model = make_known(studio, where)
            for one in reversed(runs[:MOST]):  # what is kept last stands in front
                what = {"output": one.output, "given": one.given, "picture": one.picture}
                card = Card(make_id(), title(one.text), model, one.text, **what)
                trouble = studio.traces.keep(card, one.trace())
        if trouble is not None:
            typer.echo(f"regard: {trouble}", err=True)
        serving.serve(studio, at, host=HOST, announce=print_address, first=None, show=True)
    finally:
        at.close()
    typer.echo("Closed.", err=True)
