"""The files that MNIST comes in: bytes in several axes, compressed or not."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from regard.errors import DataError

BYTES = 0x08  # the type of numbers that pictures and labels have
MOST = 4_000_000_000  # bytes
MAGIC = 4


def read_idx(path: Path, axes: int) -> UInt8[np.ndarray, "..."]:
    """The numbers of an idx file of so many axes: pictures have three, labels one.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels-idx1-ubyte"
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> read_idx(path, 1)
    array([7, 2, 1], dtype=uint8)
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            head = file.read(MAGIC + 4 * axes)
            if len(head) < MAGIC + 4 * axes or head[:2] != b"\0\0" or head[2:4] != bytes([BYTES, axes]):
                raise DataError(f"{path} is no idx file of bytes with {axes} axes; give one as MNIST is published")
            shape = struct.unpack(f">{axes}I", head[MAGIC:])
            size = math.prod(shape)
            if size > MOST:
                raise DataError(f"{path} speaks of {size:,} bytes, but at most {MOST:,} are read; give a part of it")
            data = file.read(size + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} is no whole gzip file ({error}); fetch it again") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); name an idx file") from error
    if len(data) != size:
        more = "more" if len(data) > size else f"{len(data):,}"
        raise DataError(f"{path} should hold {size:,} bytes after its head, but has {more}; fetch it again")
    return np.frombuffer(data, dtype=np.uint8).reshape(shape)
