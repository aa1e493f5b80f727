"""The header of a GGUF file: what it says of its model, and where each tensor lies. No weight is touched."""

import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from regard.errors import ModelError
from regard.models.gguf.cursor import Cursor
from regard.models.gguf.types import StorageType, storage_type

MAGIC, VERSIONS = b"GGUF", (2, 3)
MAX_AXES = 4
ALIGNMENT = 32  # of tensors, unless the file says otherwise
SMALLEST_PAIR, SMALLEST_INFO = 13, 32  # bytes that a key with its value, or an entry of a tensor, takes at least


@dataclass(frozen=True)
class TensorInfo:
    """Where one tensor lies in the file, and how."""

    name: str
    type: StorageType
    shape: tuple[int, ...]  # as torch has it: rows first; GGUF itself lists the axes from the last
    start: int  # bytes from the beginning of the file

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return prod(self.shape) // self.type.values * self.type.bytes


@dataclass(frozen=True)
class GGUFHeader:
    """What a GGUF file says of itself before its weights begin."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, TensorInfo]

    @property
    def architecture(self) -> str:
        """The family of its model, such as "llama"."""
        return str(self.metadata.get("general.architecture", ""))


def read_header(path: str | os.PathLike[str]) -> GGUFHeader:
    """Metadata and places of tensors, checked against the size of the file: one that lies is a `ModelError`."""
    path = Path(path)
    with map_file(path) as data:
        cursor = Cursor(data, path.name)
        tensors, pairs = read_counts(cursor)
        metadata: dict[str, Any] = {}
        for _ in range(pairs):
            key = cursor.key("a key")
            if key in metadata:
                raise ModelError(f"{path.name} says {key!r} twice; fetch it again")
            metadata[key] = cursor.value(cursor.number("<I", key), key)
        return GGUFHeader(path, metadata, read_infos(cursor, tensors, metadata))


@contextmanager
def map_file(path: Path) -> Iterator[mmap.mmap]:
    """The bytes of a file, read as they are looked at."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < len(MAGIC):
                raise ModelError(f"{path.name} is no GGUF file: it holds less than 4 bytes; fetch it again")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield data
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror or error}); give a GGUF file") from error


def read_counts(cursor: Cursor) -> tuple[int, int]:
    """How many tensors and how many keys follow, after what makes a file a GGUF file."""
    if cursor.data[: len(MAGIC)] != MAGIC:
        raise ModelError(f"{cursor.name} is no GGUF file: it does not begin with {MAGIC.decode()}; give one that is")
    cursor.at = len(MAGIC)
    version = cursor.number("<I", "the version")
    if version & 0xFFFF == 0:
        raise ModelError(f"{cursor.name} is a big-endian GGUF file, which is not read here; give a little-endian one")
    if version not in VERSIONS:
        raise ModelError(f"{cursor.name} is GGUF of version {version}, but 2 and 3 are read; convert the model again")
    tensors, pairs = cursor.number("<Q", "the number of tensors"), cursor.number("<Q", "the number of keys")
    cursor.must_have(pairs * SMALLEST_PAIR + tensors * SMALLEST_INFO, f"a header of {tensors} tensors and {pairs} keys")
    return tensors, pairs


def read_infos(cursor: Cursor, count: int, metadata: Mapping[str, Any]) -> dict[str, TensorInfo]:
    """Each tensor by its name, within the file and apart from the others."""
    entries = [read_info(cursor) for _ in range(count)]
    unit = metadata.get("general.alignment", ALIGNMENT)
    if type(unit) is not int or unit <= 0 or unit & (unit - 1):
        raise ModelError(f"{cursor.name} aligns its tensors to {unit!r}, wanted a power of two; fetch it again")
    base = -(-cursor.at // unit) * unit
    infos = [TensorInfo(name, kind, shape, base + offset) for name, kind, shape, offset in entries]
    if len({info.name for info in infos}) < count:
        raise ModelError(f"{cursor.name} has two tensors of one name; fetch it again")
    end = base
    for info in sorted(infos, key=lambda info: info.start):
        if info.start < end:
            raise ModelError(f"{cursor.name} has tensors that overlap, {info.name!r} for one; fetch it again")
        end = info.start + info.size
        if end > cursor.size:
            raise ModelError(
                f"{cursor.name} ends too early: the tensor {info.name!r} goes up to byte {end}, but the file has "
                f"{cursor.size}; fetch it again"
            )
    return {info.name: info for info in infos}


def read_info(cursor: Cursor) -> tuple[str, StorageType, tuple[int, ...], int]:
    """Name, type, shape and offset of one tensor."""
    name = cursor.key("the name of a tensor")
    axes = cursor.number("<I", name)
    if not 1 <= axes <= MAX_AXES:
        raise ModelError(f"{cursor.name} gives the tensor {name!r} {axes} axes, wanted 1 to 4; fetch it again")
    shape = tuple(reversed([cursor.number("<Q", name) for _ in range(axes)]))
    kind = storage_type(cursor.number("<I", name), f"{name!r} of {cursor.name}")
    if 0 in shape or shape[-1] % kind.values:
        raise ModelError(
            f"{cursor.name} gives the tensor {name!r} the shape {shape} in {kind.name}, which stores rows in blocks of "
            f"{kind.values}; fetch it again"
        )
    return name, kind, shape, cursor.number("<Q", name)
