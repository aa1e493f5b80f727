"""The runs in some folders, newest first, and what is left out among them."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from regard.errors import RunError
from regard.training.run import MANIFEST
from regard.training.status import RunStatus, read_status


class LeftOut(NamedTuple):
    """A folder that is not listed, and one sentence why."""

    folder: Path
    why: str


def find_runs(folders: Iterable[Path]) -> tuple[list[RunStatus], list[LeftOut]]:
    """The runs in these folders, each a run itself or a folder of runs; the one that was written last comes first.

    A folder that holds no run, or one that cannot be read, stops nobody: it is given back with the reason.

    >>> find_runs([Path("nowhere")])
    Traceback (most recent call last):
    regard.errors.RunError: there is no folder nowhere; name a run, or a folder of runs
    """
    runs: dict[Path, RunStatus] = {}
    left_out: list[LeftOut] = []
    for folder in (one for given in folders for one in list_candidates(given)):
        try:
            if not (folder / MANIFEST).exists():
                left_out.append(LeftOut(folder, f"it holds no {MANIFEST}"))
            else:
                runs.setdefault(folder.resolve(), read_status(folder))
        except RunError as error:
            left_out.append(LeftOut(folder, str(error)))
        except OSError as error:
            left_out.append(LeftOut(folder, f"it cannot be read ({error.strerror})"))
    return sorted(runs.values(), key=lambda run: (-run.written, run.folder)), left_out


def list_candidates(folder: Path) -> list[Path]:
    """The folder itself where it holds a run, else the folders in it."""
    if not folder.is_dir():
        raise RunError(f"there is no folder {folder}; name a run, or a folder of runs")
    if (folder / MANIFEST).exists():
        return [folder]
    try:
        return sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))
    except OSError as error:
        raise RunError(f"{folder} cannot be read ({error.strerror}); name a folder that can be") from error
