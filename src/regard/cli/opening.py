"""The model that a command names: ours, or where ours cannot be what it is, that of `transformers`."""

from typing import Any

import typer

from regard.models.open.converted import NotConvertibleError
from regard.models.open.load_model import LoadedModel, load_model, widen
from regard.tasks.text_filler import TextFiller
from regard.tasks.text_writer import TextWriter, open_writer


def load_named_model(name: str, *, download: bool = False) -> LoadedModel:
    """The model of this name, in float32; where a table refuses it, that of `transformers`, which is said on stderr."""
    try:
        return widen(load_model(name, download=download))
    except NotConvertibleError as error:
        typer.echo(error.notice, err=True)
        return widen(load_model(name, ours=False, download=download))


def open_named_writer(name: str, **settings: Any) -> TextWriter:
    """The same, ready to write; `settings` are those of `open_writer`."""
    try:
        return open_writer(name, **settings)
    except NotConvertibleError as error:
        typer.echo(error.notice, err=True)
        return open_writer(name, ours=False, **settings)


def open_named_filler(name: str, *, download: bool = False) -> TextFiller:
    """The same, ready to fill gaps."""
    return TextFiller(name, load_named_model(name, download=download))
