"""The codes of a GGUF file in the order in which a kernel reads them: the same bits at other places.

Sixteen rows are a tile, 32 columns of it a block: first the scales of the sixteen rows (float16), then, where the code
has them, their offsets, then the codes. Each 32-bit number holds neighbouring columns of one row, the first in its
lowest bits: eight of 4 bits, or four of 8. So one vector holds sixteen rows, and a whole matrix is read in one sweep.
Rows are filled up to a whole tile with zeros.
"""

import numpy as np
from numpy.typing import NDArray

from regard.models.fast.tables import Q4_0, Q4_1, Q8_0, pad

Bytes = NDArray[np.uint8]

COLUMNS = 32  # that share a scale
ROW_BYTES = {Q4_0: 18, Q4_1: 20, Q8_0: 34}  # of one row of a block


def pack(blocks: Bytes, code: int) -> Bytes:
    """Tiles of the rows of a matrix, given as the file has them: (rows, bytes of a row)."""
    rows, size = len(blocks), ROW_BYTES[code]
    padded = np.zeros((pad(rows), blocks.shape[1] // size, size), np.uint8)
    padded[:rows] = blocks.reshape(rows, -1, size)
    tiles = padded.reshape(-1, 16, padded.shape[1], size).transpose(0, 2, 1, 3)  # tile, block, row, bytes
    scales, codes = np.split(tiles, [4 if code == Q4_1 else 2], axis=-1)
    scales = scales.reshape(*scales.shape[:3], -1, 2).swapaxes(2, 3)  # tile, block, scale or offset, row
    words = join_columns(codes, code).swapaxes(2, 3)  # tile, block, word, row, bytes
    lead = tiles.shape[:2]
    return np.ascontiguousarray(np.concatenate((scales.reshape(*lead, -1), words.reshape(*lead, -1)), -1))


def join_columns(codes: Bytes, code: int) -> Bytes:
    """Neighbouring columns in one 32-bit word: (…, words, 4 bytes).

    The file has 8-bit codes in order. Its 4-bit codes have columns 0 … 15 in the low halves of 16 bytes, and columns
    16 … 31 in the high ones.
    """
    if code != Q8_0:
        columns = np.concatenate((codes & 15, codes >> 4), -1)
        codes = columns[..., 0::2] | (columns[..., 1::2] << 4)
    return codes.reshape(*codes.shape[:-1], -1, 4)
