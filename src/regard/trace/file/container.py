"""A trace file that is open: its arrays by name, read when somebody asks, checked before anybody sees a number.

Files are read, never mapped: a mapping of a file that somebody cuts off ends the process, and one of a file that
somebody writes to changes its numbers.
"""

import itertools
import os
import stat
import threading
import weakref
from functools import cached_property
from hashlib import sha256
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from regard.errors import Stale, TraceError
from regard.trace.file.array import FileArray
from regard.trace.file.digests import ARRAY, CHUNK, WIDTH, chunks_of
from regard.trace.file.header import read_header
from regard.trace.file.recent import Recent

RECENT = Recent(1 << 27)
SERIALS = itertools.count()


class Container:
    """The arrays of one open file by name, and its metadata. `container[name]` is an array that was not read yet.

    Bytes are read into memory of our own and checked against the digests before anybody sees a number of them. A file
    that was renamed or removed stays readable; what was cut off or written over since raises `Stale`.
    """

    def __init__(self, path: Path, file: int) -> None:
        weakref.finalize(self, os.close, file)
        status = os.fstat(file)
        self.path, self.file, self.size, self.stamp = path, file, status.st_size, stamp(status)
        self.serial = next(SERIALS)
        self.lock = threading.Lock()
        weakref.finalize(self, RECENT.forget, self.serial)
        if not stat.S_ISREG(status.st_mode):
            raise TraceError(
                f"{path} is no file but something else, such as a folder; give the trace file itself"
            ).with_code("file.foreign")
        if self.size < 8:
            raise TraceError(f"{path} holds {self.size} bytes, too few for a trace; write it again").with_code(
                "file.small", size=self.size
            )
        self.metadata, self.infos, self.begin, self.sealed = read_header(path, self.size, self.bytes)

    def __getitem__(self, name: str) -> FileArray:
        info = self.infos[name]
        return FileArray(self, info.dtype, info.shape, info.start)

    def tensor(self, start: int, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
        """The numbers that begin at this byte of the file, found to be those that were written."""
        size = prod(shape) * dtype.itemsize
        first, last = (start - self.begin) // CHUNK, chunks_of(start + size - self.begin)
        key = (self.serial, first, last)
        chunks = RECENT.get(key)
        if chunks is None:
            chunks = self.read_checked(first, last)
            RECENT.put(key, chunks)
        at = start - self.begin - first * CHUNK
        found = chunks[at : at + size]
        if dtype == torch.bool and bool((found > 1).any()):
            raise self.damage_error("an array of truths holds something between true and false")
        return found.view(dtype).view(shape)

    def read_checked(self, first: int, last: int) -> Tensor:
        """The bytes of these chunks, each compared with its digest."""
        digests, end = self.digests
        start, stop = self.begin + first * CHUNK, min(self.begin + last * CHUNK, end)
        with torch.inference_mode(False):
            found = torch.empty(stop - start, dtype=torch.uint8)
        view = found.numpy().data
        self.read(view, start)
        for number in range(first, last):
            at = (number - first) * CHUNK
            if sha256(view[at : at + CHUNK]).digest() != digests[number * WIDTH : (number + 1) * WIDTH]:
                if stamp(os.fstat(self.file)) != self.stamp:
                    raise self.stale_error()
                raise self.damage_error(
                    f"its bytes {start + at} to {min(start + at + CHUNK, stop)} are not those written"
                )
        return found

    @cached_property
    def digests(self) -> tuple[bytes, int]:
        """Those of all chunks, and where these end; `TraceError` where they are not of this file."""
        info = self.infos.get(ARRAY)
        if not self.sealed or info is None or "digests" not in self.metadata:
            raise TraceError(
                f"{self.path} holds no digests, so nobody can check whether its numbers are those that were written; "
                "write it again with trace.save"
            ).with_code("file.unchecked")
        count = chunks_of(info.start - self.begin)
        if info.stop != self.size or info.dtype != torch.uint8 or info.shape != (count, WIDTH):
            raise self.damage_error(f"its digests are not those of {count} chunks")
        found = self.bytes(info.start, info.stop)
        if sha256(found).hexdigest() != self.metadata["digests"]:
            raise self.damage_error("its digests are not those that were written")
        return found, info.start

    def read(self, into: memoryview, start: int) -> None:
        """Fill a piece of memory with the bytes of the file from `start` on."""
        done = 0
        try:
            while done < len(into):
                if hasattr(os, "preadv"):
                    count = os.preadv(self.file, [into[done:]], start + done)
                else:
                    with self.lock:
                        os.lseek(self.file, start + done, os.SEEK_SET)
                        piece = os.read(self.file, len(into) - done)
                    count = len(piece)
                    into[done : done + count] = piece
                if not count:
                    raise self.stale_error()
                done += count
        except OSError as error:
            why = str(error.strerror or error)
            raise TraceError(f"{self.path} cannot be read: {why}").with_code("file.unreadable", why=why) from error

    def bytes(self, start: int, stop: int) -> bytes:
        """Bytes that have no digest of their own: the header, and the digests."""
        found = bytearray(stop - start)
        self.read(memoryview(found), start)
        return bytes(found)

    def stale_error(self) -> Stale:
        return Stale(
            f"{self.path} was changed after it was opened, so its numbers can no longer be read; load it again, "
            "or write it again"
        ).with_code("file.changed")

    def damage_error(self, what: str) -> TraceError:
        return TraceError(f"{self.path} is damaged: {what}; copy it again, or write it again").with_code("file.bytes")


def stamp(status: os.stat_result) -> tuple[int, ...]:
    """Changes with what was written to a file, also where somebody put the time of the last write back."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def open_container(path: Path) -> Container:
    """The file, after all that its header says was found to be what was written; `TraceError` otherwise."""
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        why = str(getattr(error, "strerror", None) or error)
        raise TraceError(f"{path} cannot be opened: {why}").with_code("file.unreadable", why=why) from error
    return Container(path, number)
