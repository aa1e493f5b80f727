"""Writing arrays while they come: they need not stay in memory, and the file gets its name only when it is whole.

Arrays go to a file beside the wanted one, behind room for a header that is written last; then the file is renamed.
Whatever was cut short has a header length of 0 and no other name than `….part`.
"""

import contextlib
import json
import mmap
import os
import secrets
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from hashlib import sha256
from io import FileIO
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import TraceError
from regard.files import replace, sync_folder
from regard.memory import give_back
from regard.trace.file.array import FileArray
from regard.trace.file.container import open_container
from regard.trace.file.digests import ARRAY, OPEN, WIDTH, ChunkDigests, seal_header
from regard.trace.file.header import DTYPES, Info

CODES = {dtype: code for code, dtype in DTYPES.items()}
ALIGN = 64  # bytes; where arrays start, so that every kind of number stands right and kernels read them fast
STRETCH = 1 << 28  # bytes of the file that one mapping covers: each keeps a file open
CHUNK = 1 << 24
GIVE_BACK = 1 << 25  # bytes written after which the memory that they were in goes back to the system
NO_RESERVE = 0x4000 if sys.platform == "linux" else 0  # a file may be larger than the memory it is written from


class Writer:
    """One trace file in the making.

    `add(tensor)` writes it and gives it back as a tensor over the file, so that the memory can be let go; `put(tensor)`
    only writes. A tensor that is already in the file is not written again. `finish(manifest, names)` makes the file
    whole and gives it its name; `abort()` leaves nothing behind. Digests are taken of all bytes as they are written.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> writer = Writer(folder / "small.trace")
    >>> writer.add(torch.arange(3))
    tensor([0, 1, 2])
    >>> writer.finish({"regard": "{}"}, {0: "numbers"})
    >>> open_container(folder / "small.trace")["numbers"].tensor()
    tensor([0, 1, 2])
    """

    def __init__(self, path: str | os.PathLike[str], *, room: int = 1 << 20) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise TraceError(f"{self.path} is a folder; give the name of a file in it, such as {self.path / 'a.trace'}")
        self.start = self.end = self.given_back = align(room)
        self.infos: list[Info] = []
        self.pads: list[Info] = []
        self.known: dict[tuple[Any, ...], int] = {}
        self.held: list[Tensor | FileArray] = []  # so that an address stays the address of the same numbers
        self.stretches: list[tuple[int, mmap.mmap]] = []
        self.lock = threading.Lock()
        self.digests = ChunkDigests()
        self.part, self.file = create(self.path)
        self.undo = weakref.finalize(self, discard, self.file, self.part)

    def add(self, tensor: Tensor) -> Tensor:
        """The same numbers as a tensor over the file; they are on the disk, not in memory."""
        with self.lock:
            self.must_be_open()
            index = self.known.get(key_of(tensor))
            if index is not None:
                return tensor
            if self.end - self.given_back > GIVE_BACK:
                give_back()
                self.given_back = self.end
            index = self.write(tensor)
            info = self.infos[index]
            if info.start == info.stop:
                return tensor.detach().clone()
            with writing(self.path):
                found = tensor_over(*self.stretch(info))
            self.known[key_of(found)] = index
            return found

    def put(self, tensor: Tensor | FileArray) -> int:
        """Write the numbers, and the number of the array they became. `tensor` is held until the file is finished."""
        with self.lock:
            self.must_be_open()
            key = key_of(tensor)
            if key not in self.known or not tensor.nbytes:
                self.known[key] = self.write(tensor)
                self.held.append(tensor)
            return self.known[key]

    def put_blocks(self, blocks: Iterator[Tensor], shape: tuple[int, ...], dtype: torch.dtype) -> int:
        """An array whose numbers come piece by piece, in order, and never stand in memory together."""
        with self.lock:
            self.must_be_open()
            self.pad()
            start = self.end
            for block in blocks:
                self.bytes_of(block.to(dtype))
            info = Info(dtype, shape, start, self.end)
            if self.end - start != prod(shape) * dtype.itemsize:
                raise TraceError(f"{self.end - start} bytes came for an array of shape {shape}; give all of it")
            self.infos.append(info)
            return len(self.infos) - 1

    def finish(
        self, metadata: dict[str, str], names: dict[int, str], *, check: Callable[[Path], object] = open_container
    ) -> None:
        """Write the header, see that `check` can read the file, put it on the disk and give it its name.

        Where anything goes wrong nothing is left behind, and a file of that name stays what it was.
        """
        with self.lock:
            self.must_be_open()
            try:
                self.pad()
                digests = self.digests.all()
                header = self.header(metadata, names, digests)
                with writing(self.path):
                    write_at(self.file, digests, self.end)
                    self.end += len(digests)
                    if len(header) > self.start - 8:
                        self.move(align(len(header) + 8))
                    self.file.truncate(self.end)
                    first = seal_header(header.ljust(self.start - 8))
                    write_at(self.file, first[8:], 8)
                    write_at(self.file, first[:8], 0)  # until now it says that the file is not finished
                    os.fsync(self.file.fileno())
                try:
                    check(self.part)
                except TraceError as error:
                    raise TraceError(str(error).replace(str(self.part), str(self.path))) from error
                self.file.close()
                with writing(self.path):
                    replace(self.part, self.path)
            except BaseException:
                self.close()
                raise
            self.undo.detach()
            self.close()
            sync_folder(self.path.parent)

    def abort(self) -> None:
        """Leave nothing behind. What `add` gave back can still be read."""
        with self.lock:
            self.close()

    # How it is done

    def must_be_open(self) -> None:
        if not self.undo.alive:
            raise TraceError(f"{self.path} is already written or given up; open another Writer")

    def close(self) -> None:
        self.undo()
        self.held, self.known, self.stretches = [], {}, []

    def write(self, tensor: Tensor | FileArray) -> int:
        if tensor.dtype not in CODES:
            raise TraceError(f"an array of {tensor.dtype} cannot be written; known are {', '.join(DTYPES)}")
        self.pad()
        start = self.end
        for piece in tensor.pieces(CHUNK) if isinstance(tensor, FileArray) else (tensor,):
            self.bytes_of(piece)
        self.infos.append(Info(tensor.dtype, tuple(tensor.shape), start, self.end))
        return len(self.infos) - 1

    def bytes_of(self, tensor: Tensor) -> None:
        if not tensor.numel():
            return
        flat = tensor.detach().cpu().contiguous().view(-1)
        if flat.stride(0) != 1:  # a single number may have any stride and still count as contiguous
            flat = flat.clone(memory_format=torch.contiguous_format)
        flat = flat.view(torch.uint8)
        with writing(self.path):
            write_at(self.file, flat.numpy(), self.end)
        self.digests.update(flat.numpy().data)
        self.end += flat.numel()

    def pad(self) -> None:
        """Go on at the next round place. The format knows no gaps, so what is left out becomes an array too."""
        left = align(self.end) - self.end
        if left:
            with writing(self.path):
                write_at(self.file, bytes(left), self.end)
            self.digests.update(bytes(left))
            self.pads.append(Info(torch.uint8, (left,), self.end, self.end + left))
            self.end += left

    def stretch(self, info: Info) -> tuple[mmap.mmap, Info, int]:
        """The mapping that covers an array, the array, and where the mapping begins."""
        if self.stretches:
            base, memory = self.stretches[-1]
            if base <= info.start and info.stop <= base + len(memory):
                return memory, info, base
        base = info.start // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        length = max(STRETCH, info.stop - base)
        self.file.truncate(max(base + length, self.end))  # takes no space until it is written
        memory = map_file(self.file.fileno(), length, base)
        self.stretches.append((base, memory))
        return memory, info, base

    def header(self, metadata: dict[str, str], names: dict[int, str], digests: bytes) -> bytes:
        """The JSON about all arrays, with the digest of their digests, and with room for the seal in front."""
        seal = {"seal": OPEN, "digests": sha256(digests).hexdigest()}
        last = Info(torch.uint8, (len(digests) // WIDTH, WIDTH), self.end, self.end + len(digests))
        entries: dict[str, Any] = {"__metadata__": seal | metadata, ARRAY: last}
        for i, info in enumerate(self.infos):
            entries[unused_name(names.get(i, f"unused/{i}"), entries)] = info
        for i, info in enumerate(self.pads):
            entries[unused_name(f"pad/{i}", entries)] = info
        for name, info in entries.items():
            if isinstance(info, Info):
                place = [info.start - self.start, info.stop - self.start]
                entries[name] = {"dtype": CODES[info.dtype], "shape": list(info.shape), "data_offsets": place}
        return json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")

    def move(self, start: int) -> None:
        """Make more room for the header: all arrays go to another file, further back."""
        part, file = create(self.path)
        undo = weakref.finalize(self, discard, file, part)
        self.file.seek(self.start)
        file.seek(start)
        left = self.end - self.start
        while left:
            piece = self.file.read(min(CHUNK, left))
            write_at(file, piece, file.tell())
            left -= len(piece)
        self.undo()
        by = start - self.start
        for infos in (self.infos, self.pads):
            infos[:] = [info._replace(start=info.start + by, stop=info.stop + by) for info in infos]
        self.start, self.end = start, self.end + by
        self.part, self.file, self.undo = part, file, undo


def key_of(tensor: Tensor | FileArray) -> tuple[Any, ...]:
    """The same for two tensors that are the same numbers in the same memory, or in the same file."""
    if isinstance(tensor, FileArray):
        return tensor.key
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.device


def tensor_over(memory: mmap.mmap, info: Info, base: int) -> Tensor:
    """A tensor whose numbers are bytes of a file; `base` is where the mapping begins in it."""
    return torch.frombuffer(memory, dtype=info.dtype, count=prod(info.shape), offset=info.start - base).view(info.shape)


def map_file(file: int, length: int, offset: int) -> mmap.mmap:
    """These bytes of an open file as memory of our own, read when touched and copied when written to."""
    if sys.platform == "win32":
        return mmap.mmap(file, length, access=mmap.ACCESS_COPY, offset=offset)
    writable = mmap.PROT_READ | mmap.PROT_WRITE
    return mmap.mmap(file, length, flags=mmap.MAP_PRIVATE | NO_RESERVE, prot=writable, offset=offset)


def align(place: int) -> int:
    return -(-place // ALIGN) * ALIGN


def unused_name(name: str, taken: dict[str, Any]) -> str:
    """`name`, or with a number behind it where it is taken."""
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name}#{count}"
    return found


def create(path: Path) -> tuple[Path, FileIO]:
    """A new file beside `path`; its first 8 bytes say that it is not finished."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    with writing(path):
        file = FileIO(part, "x+")
        file.write(bytes(8))
    return part, file


def discard(file: FileIO, part: Path) -> None:
    """Close and remove a file that was not finished."""
    with contextlib.suppress(OSError):
        file.close()
    with contextlib.suppress(OSError):
        os.unlink(part)


def write_at(file: FileIO, data: Any, at: int) -> None:
    """All of the bytes; the system may take them in pieces."""
    view = memoryview(data)
    file.seek(at)
    while view:
        view = view[file.write(view[:CHUNK]) :]


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system says against writing, in our words."""
    try:
        yield
    except OSError as error:
        raise TraceError(f"{path} cannot be written: {error.strerror or error}") from error
