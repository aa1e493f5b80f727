"""Vectors into a file while they are computed: one block is in memory, and the file is there whole or not at all."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from jaxtyping import Float
from torch import Tensor

from regard.errors import ConfigError
from regard.files import put_stream
from regard.tasks.text_blocks import TextBlock, hash_texts

FORMAT = "regard-vectors/1"
ROOM = 2048  # bytes before the numbers, for a header that is written last
DIGITS = 9  # by which a float32 is known


class VectorWriter(Protocol):
    """Writes blocks of vectors into a file, and what can be said only at the end."""

    def __init__(self, file: BinaryIO, width: int, about: dict[str, str]) -> None: ...

    def add(self, block: TextBlock, vectors: Float[Tensor, "n m"]) -> None:
        """The next texts with their vectors."""
        ...

    def finish(self) -> None:
        """What is written last."""
        ...


class SafetensorsWriter:
    """`vectors` (n, m), `lines` (n,), the numbers of the lines, and `hashes` (n, 16) of their texts, as safetensors."""

    def __init__(self, file: BinaryIO, width: int, about: dict[str, str]) -> None:
        self.file, self.width, self.about = file, width, about
        self.lines: list[np.ndarray] = []
        self.hashes: list[np.ndarray] = []
        file.write(b"\0" * ROOM)

    def add(self, block: TextBlock, vectors: Float[Tensor, "n m"]) -> None:
        self.file.write(np.ascontiguousarray(vectors.numpy(), dtype="<f4").data)
        self.lines.append(np.asarray(block.lines, dtype="<i4"))
        self.hashes.append(hash_texts(block.texts))

    def finish(self) -> None:
        count = sum(map(len, self.lines))
        header: dict[str, Any] = {"__metadata__": {"format": FORMAT, **self.about}}
        start = 0
        for name, kind, shape, size in (
            ("vectors", "F32", [count, self.width], 4 * count * self.width),
            ("lines", "I32", [count], 4 * count),
            ("hashes", "U8", [count, hash_texts([]).shape[1]], count * hash_texts([]).shape[1]),
        ):
            header[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, start + size]}
            start += size
        for part in (*self.lines, *self.hashes):
            self.file.write(part.tobytes())
        self.file.seek(0)
        self.file.write((ROOM - 8).to_bytes(8, "little") + json.dumps(header).encode().ljust(ROOM - 8))


class NpyWriter:
    """The vectors alone, (n, m), as `numpy.load` reads them."""

    def __init__(self, file: BinaryIO, width: int, about: dict[str, str]) -> None:
        self.file, self.width, self.count = file, width, 0
        self.write_header()

    def write_header(self) -> None:
        self.file.seek(0)  # it has room for more digits, so that it keeps its size
        header = {"descr": "<f4", "fortran_order": False, "shape": (self.count, self.width)}
        np.lib.format.write_array_header_1_0(self.file, header)

    def add(self, block: TextBlock, vectors: Float[Tensor, "n m"]) -> None:
        self.file.write(np.ascontiguousarray(vectors.numpy(), dtype="<f4").data)
        self.count += len(vectors)

    def finish(self) -> None:
        self.write_header()


class JsonlWriter:
    """An object for each text: its line, the text, and its vector."""

    def __init__(self, file: BinaryIO, width: int, about: dict[str, str]) -> None:
        self.file = file

    def add(self, block: TextBlock, vectors: Float[Tensor, "n m"]) -> None:
        for line, text, vector in zip(block.lines, block.texts, vectors):
            self.file.write((json.dumps(describe_vector(line, text, vector), ensure_ascii=False) + "\n").encode())

    def finish(self) -> None:
        pass


def describe_vector(line: int, text: str, vector: Float[Tensor, " m"]) -> dict[str, Any]:
    """A vector as plain values, with as many digits as tell it from every other."""
    return {"line": line, "text": text, "vector": [float(f"{x:.{DIGITS}g}") for x in vector.tolist()]}


WRITERS: dict[str, type[VectorWriter]] = {
    ".safetensors": SafetensorsWriter,
    ".npy": NpyWriter,
    ".jsonl": JsonlWriter,
}


@contextmanager
def write_vectors(
    to: Path, *, width: int, model: str, name: str
) -> Iterator[Callable[[TextBlock, Float[Tensor, "n m"]], None]]:
    """What takes blocks of texts with their vectors, until the file is whole; its ending says what is written.

    `model` is the identity of the model (`TextEmbedder.identity`), `name` what it is called; .safetensors keep both.

    >>> import tempfile, torch
    >>> place = Path(tempfile.mkdtemp()) / "few.npy"
    >>> with write_vectors(place, width=3, model="", name="") as add:
    ...     add(TextBlock([1, 4], ["a", "b"]), torch.ones(2, 3))
    >>> np.load(place).shape
    (2, 3)
    """
    ending = to.suffix.lower()
    if ending not in WRITERS:
        raise ConfigError(f"{to.name!r} ends in none of {', '.join(WRITERS)}; give another name")
    with put_stream(to) as file:
        writer = WRITERS[ending](file, width, {"model": model, "name": name[-200:]})
        yield writer.add
        writer.finish()
