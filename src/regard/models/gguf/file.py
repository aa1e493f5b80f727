"""A GGUF file, opened once: its metadata, and any one tensor as it is stored or as floats."""

import math
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import ModelError
from regard.extras import GGUF, importing
from regard.models.gguf.header import read_header

AT_ONCE = 1024  # blocks in a row: the package takes 16 rows at a time, and short ones cost it eight times as much
MISSING = "to unpack the weights of a GGUF file, install regard[gguf]: pip install 'regard[gguf]'"


@dataclass(frozen=True)
class StoredTensor:
    """One tensor as the file has it."""

    name: str
    type: str  # "F32", "F16", "Q4_1", …
    shape: tuple[int, ...]  # of its values, rows first
    codes: NDArray[np.uint8]  # the same axes, but in bytes: the last is shape[-1] // values per block · bytes per block


class GGUFFile:
    """The metadata of a GGUF file and its tensors, which stay in the file until they are looked at.

    `metadata` is a dict; `tensors[name]` a `StoredTensor`, whose codes are a read-only view of the mapped file;
    `dequantize(name)` its values in float32.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.header = read_header(path)
        self.path, self.metadata = self.header.path, self.header.metadata
        self.architecture = self.header.architecture

    @cached_property
    def data(self) -> NDArray[np.uint8]:
        """All bytes of the file, mapped."""
        return np.memmap(self.path, np.uint8, "r")

    @cached_property
    def tensors(self) -> dict[str, StoredTensor]:
        """Every tensor by its name."""
        result = {}
        for info in self.header.tensors.values():
            codes = self.data[info.start : info.start + info.size].reshape(*info.shape[:-1], -1)
            result[info.name] = StoredTensor(info.name, info.type.name, info.shape, codes)
        return result

    def dequantize(self, name: str) -> NDArray[np.float32]:
        """The values of one tensor, in an array of their own."""
        if name not in self.tensors:
            raise ModelError(f"{self.path.name} has no tensor {name!r}; it has {', '.join(list(self.tensors)[:4])}, …")
        info = self.header.tensors[name]
        blocks = self.tensors[name].codes.reshape(-1, info.type.bytes)
        values = dequantize_codes(blocks.reshape(-1, info.type.bytes * math.gcd(len(blocks), AT_ONCE)), info.type.name)
        return np.require(values, np.float32, ["C", "W"]).reshape(info.shape)


def dequantize_codes(codes: NDArray[np.uint8], kind: str) -> Any:
    """The values that stored bytes stand for."""
    with importing(*GGUF, missing=ModelError(MISSING)):
        import gguf
    return gguf.quants.dequantize(codes, gguf.GGMLQuantizationType[kind])
