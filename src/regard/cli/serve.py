"""`regard serve`: the explorer in a browser, with models behind it."""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from regard.errors import ConfigError
from regard.extras import APP, importing

WRITTEN = 16  # tokens that a model which writes begins with
NETWORK = (
    "everybody who reaches this machine and has the token can run its models and read its traces, and nothing is "
    "encrypted on the way"
)


def default_folder() -> Path:
    """Where runs are kept unless somebody says."""
    base = os.environ.get("XDG_DATA_HOME", "")
    try:
        return (Path(base) if base else Path.home() / ".local" / "share") / "regard" / "runs"
    except RuntimeError:  # a user without a name, as in some containers
        folder = Path(tempfile.mkdtemp(prefix="regard-"))
        typer.echo(f"no home folder is known, so runs are kept in {folder}; name another with --keep", err=True)
        return folder


def serve(
    paths: Sequence[Path],
    *,
    model: str | None = None,
    text: str | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    allow_network: bool = False,
    keep: Path | None = None,
    show: bool = True,
    download: bool = False,
) -> None:
    """Serve until Ctrl-C."""
    if text is not None and model is None:
        raise ConfigError("a text came without a model to read it; name one with --model")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin while they wait slow all others down
    with importing(*APP, missing=ConfigError("to open the app, install regard[app]: pip install 'regard[app]'")):
        from regard.app import serving
        from regard.app.studio.studio import Studio
        from regard.models.open.locate import is_run
    if not serving.is_loopback(host):
        if not allow_network:
            raise ConfigError(
                f"--host {host} opens the app to the network: {NETWORK}; say --allow-network if you mean it"
            )
        typer.echo(f"Open to the network: {NETWORK}.", err=True)
    at = serving.listen(host, port)
    try:
        with busy("looking at what there is"):
            studio = Studio(paths, keep=keep or default_folder(), runs=Path("runs"))
        first = None if model is None else first_request(studio, model, text, download=download)
        view = "training" if paths and model is None and all(map(is_run, paths)) else ""  # what they were named for
        serving.serve(studio, at, host=host, announce=print_address, first=first, show=show, view=view)
    finally:
        at.close()
    typer.echo("Closed.", err=True)


def first_request(studio: Any, model: str, text: str | None, *, download: bool = False) -> Any:
    """The run to begin with; its model is opened before anything else."""
    from regard.app.protocol.messages import RunRequest

    model = make_known(studio, model, download=download)
    info = studio.models.find(model).info
    with busy(f"loading {model}"):
        studio.models.open(model)
    if info.reads == "picture":
        return None
    steps = WRITTEN if "generate" in info.tasks else 0
    return RunRequest(model=model, text=info.example if text is None else text, steps=steps)


def make_known(studio: Any, model: str, *, download: bool = False) -> str:
    """The name that a model goes by in the studio; a folder, or a model of the hub, is made known first."""
    if model in studio.models.known:
        return model
    from regard.models import embedded
    from regard.models.open.locate import UnknownModelError, locate

    try:
        with busy(f"looking for {model}"):
            place = locate(model, download=download)
    except UnknownModelError as error:
        raise ConfigError(
            f"there is no model {model[:80]!r} here ({embedded.suggest(model)}); to fetch one of the hub that is not "
            "in the local cache, pass --download"
        ) from error
    return str(studio.models.add(place))


def print_address(address: str) -> None:
    """Say where the app is. The address stands alone on its line, for those who copy it."""
    typer.echo(f"The explorer is open at\n\n  {address}\n\nCtrl-C closes it.")
    sys.stdout.flush()


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Something that moves while one waits, where there is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        yield
