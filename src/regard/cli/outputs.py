"""Files that a command writes: refused before anything is computed where they cannot be, in one sentence."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from regard.errors import ConfigError, DataError
from regard.tokens.visible import cut


def check_target(to: Path | None, endings: Sequence[str], *, explorer: bool = True) -> None:
    """Refuse a file of another kind, in a folder that is not there or that may not be written to, or in place of one.

    `explorer`: a page is one of the explorer, which must have been built.
    """
    if to is None:
        return
    name, folder = cut(to.name, 60), cut(str(to.parent), 60)
    if to.suffix.lower() not in endings:
        raise ConfigError(f"{name!r} ends in none of {', '.join(endings)}; give another name")
    if not os.path.isdir(to.parent):
        raise ConfigError(f"the folder {folder!r} for {name!r} does not exist; make it first")
    if not os.access(to.parent, os.W_OK):
        raise ConfigError(f"the folder {folder!r} cannot be written to; name another one for {name!r}")
    if os.path.isdir(to):
        raise ConfigError(f"{str(to)!r} is a folder, but a file is written; give another name")
    if explorer and to.suffix.lower() == ".html":
        from regard.views.explorer.bundle import read_bundle

        read_bundle()  # says what to do where the explorer is not built


@contextmanager
def explain_write_errors(to: Path) -> Iterator[None]:
    """Turn an error of the system while writing a file into one sentence that names the file."""
    try:
        yield
    except OSError as error:
        shown = cut(str(to), 200)
        raise DataError(f"{shown} cannot be written ({error.strerror or error}); name a file that can be") from error
