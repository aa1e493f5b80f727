"""Everything a run needs to go on, in one folder that is there whole or not at all.

The tensors are written first, then the manifest with their checksum; both are flushed to the disk before the folder
gets its name, and older ones go only after that. So whatever happens, the newest folder with a name is whole.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from regard.errors import RunError
from regard.models.files import flushed

FORMAT = "regard-checkpoint/1"
TENSORS, MANIFEST = "state.safetensors", "manifest.json"


class Checkpoint(NamedTuple):
    """A moment of a run: where it stands, and every tensor that the next step depends on."""

    step: int
    facts: dict[str, Any]
    tensors: dict[str, Tensor]


def write(folder: Path, checkpoint: Checkpoint) -> Path:
    """The checkpoint as a folder inside `folder`, flushed to the disk."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / name_of(checkpoint.step)
    beside = folder / f".{place.name}.{os.getpid()}"
    shutil.rmtree(beside, ignore_errors=True)
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
        flushed(beside / TENSORS, data)
        flushed(beside / MANIFEST, json.dumps(manifest, indent=1).encode())
        sync(beside)
        if not whole(place):  # a step is always the same, so one that is there whole is the one that is wanted
            shutil.rmtree(place, ignore_errors=True)
            os.replace(beside, place)
            sync(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return place


def whole(place: Path) -> bool:
    if not place.exists():
        return False
    try:
        read(place)
    except RunError:
        return False
    return True


def sync(folder: Path) -> None:
    """The names in a folder, flushed to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def name_of(step: int) -> str:
    return f"step-{step:09d}"


def found(folder: Path) -> list[Path]:
    """The checkpoints in a folder, oldest first."""
    return sorted(folder.glob("step-*")) if folder.is_dir() else []


def describe(place: Path) -> dict[str, Any]:
    """The manifest of one checkpoint."""
    try:
        manifest = json.loads((place / MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise RunError(f"{place} is no whole checkpoint ({error}); remove it to go on from the one before") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise RunError(f"{place} was written by another version; go on with the version that wrote it")
    return manifest


def read(place: Path) -> Checkpoint:
    """A checkpoint, after its checksum was found right."""
    manifest = describe(place)
    try:
        data = (place / TENSORS).read_bytes()
        if hashlib.sha256(data).hexdigest() != manifest["sha256"]:
            raise RunError(f"{place} is not what was written there; remove it to go on from the one before")
        tensors = load(data)
    except (OSError, SafetensorError, KeyError) as error:
        raise RunError(f"{place} is no whole checkpoint ({error}); remove it to go on from the one before") from error
    facts = {key: value for key, value in manifest.items() if key not in ("format", "step", "bytes", "sha256")}
    return Checkpoint(int(manifest["step"]), facts, tensors)


def newest(folder: Path) -> Checkpoint | None:
    """The last checkpoint that is whole."""
    damaged: RunError | None = None
    for place in reversed(found(folder)):
        try:
            return read(place)
        except RunError as error:
            damaged = error
    if damaged is not None:
        raise damaged
    return None


def prune(folder: Path, keep: set[int]) -> None:
    """Remove every checkpoint but those of these steps, and what a crash left behind."""
    for place in found(folder):
        if int(place.name.removeprefix("step-")) not in keep:
            shutil.rmtree(place, ignore_errors=True)
    for left in folder.glob(".step-*"):
        shutil.rmtree(left, ignore_errors=True)
