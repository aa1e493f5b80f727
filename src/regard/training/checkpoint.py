"""Everything a run needs to go on, in one folder that is there whole or not at all.

The tensors are written first, then the manifest with their checksum; both are flushed to the disk before the folder
gets its name, and older ones go only after that, under another name first. So whatever happens, the newest folder with
a name is whole.
"""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from regard.errors import RunError
from regard.files import make_folder, part_of, remove, replace, scrap, sweep, sync_folder, write_synced
from regard.training.manifest import OtherVersionError, seal, unseal

FORMAT = "regard-checkpoint/2"
TENSORS, MANIFEST = "state.safetensors", "manifest.json"
NAMED = re.compile(r"step-(\d{9,18})", re.ASCII)


class Checkpoint(NamedTuple):
    """A moment of a run: where it stands, and every tensor that the next step depends on."""

    step: int
    facts: dict[str, Any]
    tensors: dict[str, Tensor]


class DamagedCheckpoint(RunError):
    """A checkpoint that is not what was written; the one before it can be used."""


def write(folder: Path, checkpoint: Checkpoint, *, check: Callable[[], None] = lambda: None) -> Path:
    """The checkpoint as a folder inside `folder`, flushed to the disk; `check` is asked before it gets its name."""
    make_folder(folder)
    place = folder / name_of(checkpoint.step)
    beside = part_of(place)
    data = save({name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.tensors.items()})
    manifest = {
        "format": FORMAT,
        "step": checkpoint.step,
        **checkpoint.facts,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    try:
        beside.mkdir()
        write_synced(beside / TENSORS, data)
        write_synced(beside / MANIFEST, seal(manifest))
        sync_folder(beside)
        check()
        if not is_whole(place):  # a step is always the same, so one that is there whole is the one that is wanted
            remove(place)
            replace(beside, place)
            sync_folder(folder)
    finally:
        scrap(beside)
    return place


def is_whole(place: Path) -> bool:
    try:
        read(place)
    except RunError:
        return False
    return True


def name_of(step: int) -> str:
    return f"step-{step:09d}"


def step_of(place: Path) -> int:
    return int(place.name.removeprefix("step-"))


def list_checkpoints(folder: Path) -> list[Path]:
    """The folders that have the name of a checkpoint, oldest first."""
    inside = [path for path in folder.glob("step-*") if NAMED.fullmatch(path.name)] if folder.is_dir() else []
    return sorted((path for path in inside if path.is_dir()), key=step_of)


def list_usable(folder: Path) -> list[Path]:
    """Those of them whose manifest is right, and whose tensors are all there; oldest first."""
    return [place for place in list_checkpoints(folder) if is_usable(place)]


def is_usable(place: Path) -> bool:
    try:
        describe(place)
    except RunError:
        return False
    return True


def list_strays(folder: Path) -> list[str]:
    """What lies among the checkpoints and is none: it is left alone."""
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path.name for path in inside if not path.name.startswith(".") and path not in list_checkpoints(folder)]


def describe(place: Path) -> dict[str, Any]:
    """The manifest of one checkpoint."""
    try:
        manifest = unseal((place / MANIFEST).read_bytes(), FORMAT)
        if manifest["step"] != step_of(place):
            raise ValueError(f"it is of step {manifest['step']}")
        size = (place / TENSORS).stat().st_size
        if size != manifest["bytes"]:
            raise ValueError(f"{TENSORS} has {size} bytes instead of {manifest['bytes']}")
    except OtherVersionError as error:
        raise RunError(f"{place} {error}") from error
    except (OSError, ValueError, KeyError) as error:
        raise damage_error(place, error) from error
    return manifest


def read(place: Path) -> Checkpoint:
    """A checkpoint, after its checksum was found right."""
    manifest = describe(place)
    try:
        data = (place / TENSORS).read_bytes()
        if hashlib.sha256(data).hexdigest() != manifest["sha256"]:
            raise ValueError(f"{TENSORS} is not what was written")
        tensors = load(data)
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise damage_error(place, error) from error
    facts = {key: value for key, value in manifest.items() if key not in ("format", "step", "bytes", "sha256")}
    return Checkpoint(int(manifest["step"]), facts, tensors)


def damage_error(place: Path, error: Exception) -> DamagedCheckpoint:
    said = error.strerror if isinstance(error, OSError) and error.strerror else error
    return DamagedCheckpoint(f"{place} is no whole checkpoint ({said}); remove it to go on from the one before")


def newest(folder: Path, skipped: Callable[[Path, Exception], None] = lambda place, error: None) -> Checkpoint | None:
    """The last checkpoint that is whole; `skipped` hears of those after it that are not."""
    lost: DamagedCheckpoint | None = None
    for place in reversed(list_checkpoints(folder)):
        try:
            return read(place)
        except DamagedCheckpoint as error:
            skipped(place, error)
            if any((place / name).exists() for name in (MANIFEST, TENSORS)):  # there was something to go on from
                lost = error
    if lost is not None:
        raise lost
    return None


def prune(folder: Path, keep: set[int]) -> None:
    """Remove every checkpoint but those of these steps, and what a crash left behind."""
    for place in list_checkpoints(folder):
        if step_of(place) not in keep:
            remove(place)
    sweep(folder)
