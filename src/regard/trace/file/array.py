"""An array that stays in its file until somebody asks for it, and then only the part that is asked for is read."""

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.attention.axes.select import Index, Where, bounds, pick, take

if TYPE_CHECKING:
    from regard.trace.file.container import Container

LITTLE = 1 << 22  # bytes that are read whole rather than row by row
PIECE = 1 << 20  # bytes of rows that are read without the others


class FileArray:
    """A contiguous array of a trace file: its shape and kind at once, its numbers when they are asked for.

    What comes out is an ordinary tensor in memory of our own, checked against the digests of the file: whatever happens
    to the file later cannot change it.
    """

    __slots__ = ("container", "dtype", "held", "holds", "shape", "start")
    device = torch.device("cpu")

    def __init__(
        self, container: "Container", dtype: torch.dtype, shape: tuple[int, ...], start: int, *, holds: bool = False
    ) -> None:
        self.container, self.dtype, self.shape, self.start = container, dtype, shape, start
        self.holds = holds  # whether its numbers stay in memory once they were read
        self.held: Tensor | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for two that are the same array of the same file."""
        return self.container.serial, self.start, self.dtype, self.shape

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def tensor(self) -> Tensor:
        """All of it."""
        if self.held is not None and self.held._version == 0:
            return self.held
        found = self.read(self.start, self.shape)
        if self.holds and self.nbytes > LITTLE:
            self.held = found
        return found

    def rows(self, where: Where) -> Tensor:
        """Some entries along the last axis but one."""
        if isinstance(where, slice) and prod(self.shape[:-2]) == 1 and self.nbytes > LITTLE and self.held is None:
            first, stop, step = bounds(where, self.shape[-2])
            row = self.shape[-1] * self.dtype.itemsize
            if step == 1 and (stop - first) * row <= PIECE:
                return self.read(self.start + first * row, (*self.shape[:-2], stop - first, self.shape[-1]))
        return take(self.tensor(), -2, where)

    def pick(self, chosen: tuple[Index, ...]) -> "FileArray | Tensor":
        """The part at one index per axis, from the first on; an axis of size 1 stands for all its indices."""
        count = 0
        while count < len(chosen) and isinstance(chosen[count], int):
            count += 1
        rest = chosen[count:]
        if any(not isinstance(index, slice) or index != slice(None) for index in rest):
            return pick(self.tensor(), chosen)
        at = 0
        for index, size in zip(chosen[:count], self.shape):
            assert isinstance(index, int)
            at = at * size + (0 if size == 1 else range(size)[index])
        shape = self.shape[count:]
        start = self.start + at * prod(shape) * self.dtype.itemsize
        return FileArray(self.container, self.dtype, shape, start, holds=True)

    def pieces(self, size: int) -> Iterator[Tensor]:
        """Its bytes, at most `size` of them at once."""
        for at in range(0, self.nbytes, size):
            yield self.container.tensor(self.start + at, torch.uint8, (min(size, self.nbytes - at),))

    def read(self, start: int, shape: tuple[int, ...]) -> Tensor:
        size = prod(shape) * self.dtype.itemsize
        if not size:
            return torch.empty(shape, dtype=self.dtype)
        return self.container.tensor(start, self.dtype, shape)

    def __reduce__(self) -> Any:
        return torch.clone, (self.tensor(),)  # elsewhere there is no file

    def __repr__(self) -> str:
        return f"FileArray({self.dtype}, {self.shape})"


def unread(owner: Any, name: str) -> Any:
    """The attribute of this name as it is kept: a `FileArray` where it is still in a file."""
    files = getattr(owner, "files", {})
    return files[name] if name in files else getattr(owner, name)


def read_when_asked(name: str) -> Any:
    """A property that reads its array when somebody asks for it; `files` of the object holds what it is read from."""

    def get(owner: Any) -> Any:
        return tensor_of(owner.files[name])

    def put(owner: Any, value: Any) -> None:
        if not hasattr(owner, "files"):
            owner.files = {}
        owner.files[name] = value

    return property(get, put)


def tensor_of(x: Any) -> Any:
    return x.tensor() if isinstance(x, FileArray) else x


def pick_of(x: FileArray | Tensor, chosen: tuple[Index, ...]) -> FileArray | Tensor:
    return x.pick(chosen) if isinstance(x, FileArray) else pick(x, chosen)


def rows_of(x: FileArray | Tensor, where: Where) -> Tensor:
    return x.rows(where) if isinstance(x, FileArray) else take(x, -2, where)
