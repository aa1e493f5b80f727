"""A figure as a file: SVG with real text, PNG or PDF, all or nothing."""

import os
import tempfile
import warnings
from contextlib import AbstractContextManager
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from regard.files import replace, sync_folder

ENDINGS = (".svg", ".png", ".pdf")


def check_path(path: str | Path | None) -> Path | None:
    """The path, if a figure can be written there; asked before anything is drawn."""
    if path is None:
        return None
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"a figure is written as {', '.join(ENDINGS)}, but {path.name!r} ends otherwise; rename it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {str(path.parent)!r} for {path.name!r} does not exist; make it first")
    return path


def reproducible_output() -> AbstractContextManager[None]:
    """Text stays text, and the same figure gives the same bytes."""
    return matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "regard", "pdf.fonttype": 42})


def write(figure: Figure, path: Path) -> None:
    """All or nothing: a reader sees the old file or the whole new one."""
    ending = path.suffix.lower()
    stamp = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending, {})
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".regard-") as near:
        whole = Path(near) / f"figure{ending}"
        with reproducible_output(), warnings.catch_warnings():
            # fonts.py has warned of it once; and an SVG's text is drawn by the fonts of who reads it
            warnings.filterwarnings("ignore", message=r"Glyph .* missing")
            figure.savefig(whole, metadata=stamp, bbox_inches="tight")
        with whole.open("rb") as file:
            os.fsync(file.fileno())
        replace(whole, path)
    sync_folder(path.parent)
