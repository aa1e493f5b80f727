"""Vectors of the lines of a file, kept for the next time: mapped into memory, and refused where they are of another."""

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from torch import Tensor

from regard.errors import DataError
from regard.tasks.text_blocks import HASH, TextBlock, hash_texts
from regard.tasks.vector_writers import FORMAT

BESIDE = ".safetensors"  # after the whole name of the file whose lines they are


class VectorFile:
    """Vectors that `write_vectors` wrote as .safetensors: they can be sliced, and only what is asked for is read.

    >>> import tempfile, torch
    >>> from regard.tasks.vector_writers import write_vectors
    >>> place = Path(tempfile.mkdtemp()) / "few.safetensors"
    >>> with write_vectors(place, width=3, model="abc", name="mine") as add:
    ...     add(TextBlock([1, 4], ["a", "b"]), torch.arange(6.0).view(2, 3))
    >>> vectors = VectorFile(place)
    >>> len(vectors), vectors[1:2], vectors.lines
    (2, tensor([[3., 4., 5.]]), array([1, 4], dtype=int32))
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not os.path.isfile(path):
            raise DataError(f"there is no file {path}; make one with: regard embed --file FILE --to {path}")
        try:
            self.file = safe_open(path, framework="pt")
            self.about = self.file.metadata() or {}
            if self.about.get("format") != FORMAT:
                raise DataError(
                    f"{path} holds no vectors of regard; make them with: regard embed --file FILE --to {path}"
                )
            self.vectors = self.file.get_slice("vectors")
            self.lines: np.ndarray = self.file.get_tensor("lines").numpy()
            self.hashes: np.ndarray = self.file.get_tensor("hashes").numpy()
            self.shape: list[int] = self.vectors.get_shape()
        except (SafetensorError, OSError) as error:
            raise DataError(f"{path} is no whole safetensors file ({error}); make the vectors again") from error
        sizes = (self.lines.shape, self.hashes.shape)
        if len(self.shape) != 2 or sizes != ((self.shape[0],), (self.shape[0], HASH)):
            raise DataError(f"{path} has not one line and one hash for each vector; make the vectors again")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Float[Tensor, "n m"]:
        return self.vectors[rows]

    def check_model(self, identity: str, name: str, place: str) -> None:
        """Refuse vectors that another model than this made: they lie in another space."""
        if self.about.get("model") != identity:
            raise DataError(
                f"{self.path} holds vectors of another model ({self.about.get('name', 'unknown')}) than {name}, or of "
                f"other weights of it; {self.advise(place)}"
            )

    def check_texts(self, blocks: Iterable[TextBlock], place: str) -> None:
        """Refuse vectors of other texts than these, all of them, in their order; `place` is what they are called."""
        done = 0
        for block in blocks:
            rows = slice(done, done + len(block.lines))
            done = rows.stop
            lines, hashes = np.asarray(block.lines), hash_texts(block.texts)
            same = len(self.lines[rows]) == len(lines)
            same = same and np.array_equal(self.lines[rows], lines) and np.array_equal(self.hashes[rows], hashes)
            if not same:
                raise self.stale_error(self.first_other(rows, lines, hashes), place)
        if done != len(self):
            raise self.stale_error(int(self.lines[done]), place)

    def first_other(self, rows: slice, lines: np.ndarray, hashes: np.ndarray) -> int:
        """The number of the first line that is not as it was."""
        kept_lines, kept_hashes = self.lines[rows], self.hashes[rows]
        both = min(len(kept_lines), len(lines))
        other = (kept_lines[:both] != lines[:both]) | (kept_hashes[:both] != hashes[:both]).any(1)
        return int(lines[int(other.argmax()) if other.any() else both])

    def stale_error(self, line: int, place: str) -> DataError:
        return DataError(
            f"{self.path} holds vectors of another text: line {line} of {place} is not what it was; "
            f"{self.advise(place)}"
        )

    def advise(self, place: str) -> str:
        return f"make them again with: regard embed --file {place} --to {self.path}"


def name_beside(path: Path) -> Path:
    """Where the vectors of a file are kept unless another place is named.

    >>> name_beside(Path("notes/all.txt")).name
    'all.txt.safetensors'
    """
    return path.with_name(path.name + BESIDE)
