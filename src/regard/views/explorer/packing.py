"""A trace file in memory, and the same bytes small enough for a page.

Packed: the bytes of each array are sorted by place (all first bytes of its numbers, then all second ones, …), because
signs and exponents are alike and compress where the rest does not; then zlib, then base64. The browser goes back the
same way, array by array, by what the file's own header says.
"""

import base64
import json
import threading
import zlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.trace.file.array import FileArray
from regard.trace.file.digests import ChunkDigests, seal_header
from regard.trace.file.header import Info
from regard.trace.file.stream import Writer
from regard.trace.file.write import ManifestWriter
from regard.trace.record.trace import Trace

ALIGN = 8  # bytes; the widest number
BUDGET = 1 << 30


class MemoryWriter(Writer):
    """A trace file that is never on a disk."""

    def __init__(self) -> None:  # nothing of a file is opened
        self.start = self.end = 0
        self.infos: list[Info] = []
        self.pads: list[Info] = []
        self.known: dict[tuple[Any, ...], int] = {}
        self.held: list[Tensor | FileArray] = []
        self.lock = threading.Lock()
        self.digests = ChunkDigests()
        self.pieces: list[bytes] = []

    def must_be_open(self) -> None:
        """It always is."""

    def bytes_of(self, tensor: Tensor) -> None:
        if tensor.numel():
            flat = tensor.detach().cpu().contiguous().view(-1)
            flat = flat if flat.stride(0) == 1 else flat.clone(memory_format=torch.contiguous_format)  # of one number
            data = flat.view(torch.uint8).numpy().tobytes()
            self.append(data)

    def pad(self) -> None:
        left = -self.end % ALIGN
        if left:
            self.pads.append(Info(torch.uint8, (left,), self.end, self.end + left))
            self.append(bytes(left))

    def append(self, data: bytes) -> None:
        self.pieces.append(data)
        self.digests.update(data)
        self.end += len(data)

    def whole(self, manifest: dict[str, Any], names: dict[int, str]) -> tuple[bytes, list[Info]]:
        """The bytes of the file, and where its arrays stand in it."""
        words = json.dumps(manifest, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        self.pad()
        digests = self.digests.all()
        header = self.header({"regard": words}, names, digests)
        header = header.ljust(-(-len(header) // ALIGN) * ALIGN)
        begin = 8 + len(header)
        moved = [info._replace(start=info.start + begin, stop=info.stop + begin) for info in self.infos]
        return b"".join([seal_header(header), *self.pieces, digests]), moved


def file_bytes(trace: Trace) -> tuple[bytes, list[Info]]:
    """The bytes of the file that `trace.save` would write, and where its arrays stand."""
    writer = MemoryWriter()
    written = ManifestWriter(writer, budget=BUDGET)
    with torch.no_grad():
        manifest = written.trace(trace)
    return writer.whole(manifest, written.names)


def pack_bytes(data: bytes, arrays: list[Info]) -> str:
    """The bytes as text for a page."""
    sorted_bytes = np.frombuffer(data, dtype=np.uint8).copy()
    for info in arrays:
        size = info.dtype.itemsize
        if size > 1 and info.stop > info.start:
            sorted_bytes[info.start : info.stop] = (
                np.frombuffer(data, np.uint8, info.stop - info.start, info.start).reshape(-1, size).T.reshape(-1)
            )
    small = zlib.compressobj(6, zlib.DEFLATED, 15, 9, zlib.Z_FILTERED)  # for numbers that seldom repeat
    return base64.b64encode(small.compress(sorted_bytes.data) + small.flush()).decode("ascii")
