"""Packed codes against what the gguf package unpacks, number by number and bit by bit."""

from typing import NamedTuple

import numpy as np
import pytest

from regard.models.fast.packing import pack
from regard.models.fast.tables import NAMES
from tests.models.fast.raw_codes import SCALES, draw_codes

pytest.importorskip("gguf", reason="needs gguf to compare with: pip install gguf")
import gguf


class Layout(NamedTuple):
    """How packing.py lays out one kind."""

    shared: int  # float16 that 256 columns share
    kind: str  # of the numbers that 32 columns have
    count: int
    bits: int  # of a code


LAYOUTS = {
    "Q4_0": Layout(0, "<f2", 1, 4),
    "Q4_1": Layout(0, "<f2", 2, 4),
    "Q8_0": Layout(0, "<f2", 1, 8),
    "Q4_K": Layout(2, "u1", 2, 4),
    "Q6_K": Layout(1, "i1", 2, 8),
}


def unpack(packed, name, row, column, columns):
    """One value of a packed matrix, found as packing.py says."""
    shared, kind, count, bits = LAYOUTS[name]
    own, blocks = count * 16 * np.dtype(kind).itemsize, 8 if shared else 1
    size, block, place = own + 64 * bits, column // 32, column % 32
    whole = blocks * size + 32 * shared
    part = packed.reshape(-1)[((row // 16) * (columns // 32 // blocks) + block // blocks) * whole :][:whole]
    factors = part[: 32 * shared].view("<f2").astype(np.float32).reshape(shared, 16)[:, row % 16]
    inner = part[32 * shared + block % blocks * size :][:size]
    numbers = inner[:own].view(kind).astype(np.float32).reshape(count, 16)[:, row % 16]
    word = int(inner[own:].view("<u4")[place // (32 // bits) * 16 + row % 16])
    code = word >> bits * (place % (32 // bits)) & (2**bits - 1)
    if bits == 8:
        code = (code + 128) % 256 - 128
    if name == "Q4_K":
        return factors[0] * numbers[0] * np.float32(code) - factors[1] * numbers[1]
    if name == "Q6_K":
        return factors[0] * numbers[place // 16] * np.float32(code)
    if name == "Q4_1":
        return numbers[0] * np.float32(code) + numbers[1]
    return numbers[0] * np.float32(code - 8 if name == "Q4_0" else code)


@pytest.mark.parametrize("kind", SCALES)
def test_packed_codes_are_the_same_bits_at_other_places(kind):
    columns = 512 if kind.endswith("K") else 96
    stored = draw_codes(kind, 21, columns)
    packed = pack(stored, NAMES.index(kind))
    assert packed.nbytes <= stored.nbytes * 32 / 21 * (1.31 if kind == "Q6_K" else 1.03)
    expected = gguf.quants.dequantize(stored, gguf.GGMLQuantizationType[kind])
    values = [[unpack(packed, kind, row, column, columns) for column in range(columns)] for row in range(21)]
    np.testing.assert_array_equal(np.array(values, np.float32), expected)
