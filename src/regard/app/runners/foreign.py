"""Models that others made: run as ours where they can be, else by the `transformers` library."""

import sys
from collections.abc import Callable
from pathlib import Path

from regard.app.runners.library import open_library, read_config
from regard.app.runners.runner import Runner
from regard.errors import ModelError
from regard.models.gguf import read_header
from regard.models.gguf.tables import table_of
from regard.models.open.converted import NotConvertibleError, kind_of_family, kind_of_table
from regard.models.open.library import has_tokenizer


def open_foreign(name: str, folder: Path) -> Runner:
    """The runner of a model in a folder of `transformers`: that of its kind of ours, or of the library itself."""
    kind = kind_of_family(read_config(folder))
    if kind is None or not has_tokenizer(folder):
        return open_library(name, folder)
    try:
        runner: Runner = kind.open(name, folder)
    except NotConvertibleError as error:
        sys.stderr.write(f"{error.notice}\n")
        return open_library(name, folder)
    return runner


def describe_gguf(path: Path) -> tuple[str, Callable[[str, Path], Runner]]:
    """What a GGUF file says of its model, and what opens that."""
    header = read_header(path)
    kind = kind_of_table(table_of(header.architecture, path.name))
    if kind is None:
        raise ModelError(
            f"{path.name} holds a {header.architecture!r}, which no server of ours runs; watch it yourself"
        )
    return f"{header.metadata.get('general.name', header.architecture)} (GGUF)", kind.open
