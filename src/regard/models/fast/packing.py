"""The codes of a GGUF file in the order in which a kernel reads them: the same bits at other places.

Sixteen rows are a tile, 32 columns of it a block: first what a row has for these columns, scales and offsets, each for
sixteen rows, then the codes. Each 32-bit word holds neighbouring columns of one row, the first in its lowest bits:
eight of 4 bits, or four of 8. So one vector holds sixteen rows, and a whole matrix is read in one sweep. Before each
eighth block of Q4_K and Q6_K stands what 256 columns share. Rows are filled up to a whole tile with zeros.

The codes of Q6_K are widened to 8 bits, less 32: so they are a third larger than in the file.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.models.fast.tables import Q4_0, Q4_1, Q4_K, Q6_K, Q8_0, pad

Bytes = NDArray[np.uint8]

STORED = {Q4_0: 18, Q4_1: 20, Q8_0: 34, Q4_K: 144, Q6_K: 210}  # bytes of one block of the file
LOW, FOUR = np.uint8(15), np.uint8(4)
AT_ONCE = 512  # rows: what is in the making stays near


class Parts(NamedTuple):
    """The blocks of some rows, taken apart; r rows, s blocks of the file, b blocks of 32 columns in each."""

    shared: Bytes  # r s numbers 2: what a block of the file has once
    own: Bytes  # r s b numbers bytes: what 32 columns have
    codes: Bytes  # r s b 32: one each


def pack(blocks: Bytes, code: int) -> Bytes:
    """Tiles of the rows of a matrix, given as the file has them: (rows, bytes of a row)."""
    return np.concatenate([pack_rows(blocks[i : i + AT_ONCE], code) for i in range(0, len(blocks), AT_ONCE)])


def pack_rows(blocks: Bytes, code: int) -> Bytes:
    """Some tiles, (tiles, bytes)."""
    padded = np.zeros((pad(len(blocks)), blocks.shape[1]), np.uint8)
    padded[: len(blocks)] = blocks
    parts = Parts(*(part.reshape(len(part) // 16, 16, *part.shape[1:]) for part in take_apart(padded, code)))
    lead = parts.codes.shape[0], *parts.codes.shape[2:4]  # tile, block of the file, block
    own = parts.own.transpose(0, 2, 3, 4, 1, 5).reshape(*lead, -1)
    words = join_columns(parts.codes, code).transpose(0, 2, 3, 4, 1, 5).reshape(*lead, -1)
    inner = np.concatenate((own, words), -1).reshape(*lead[:2], -1)
    shared = parts.shared.transpose(0, 2, 3, 1, 4).reshape(*lead[:2], 32 * parts.shared.shape[3])
    return np.concatenate((shared, inner), -1).reshape(lead[0], -1)


def take_apart(rows: Bytes, code: int) -> Parts:
    """What the blocks of the file hold: see `gguf.quants`, or ggml-common.h of llama.cpp."""
    blocks = rows.reshape(len(rows), -1, STORED[code])
    if code == Q6_K:
        return take_apart_q6_k(blocks)
    if code == Q4_K:
        return take_apart_q4_k(blocks)
    head = 4 if code == Q4_1 else 2
    codes = blocks[..., None, head:]
    if code != Q8_0:  # columns 0 … 15 in the low halves of 16 bytes, 16 … 31 in the high ones
        codes = np.concatenate((codes & LOW, codes >> FOUR), -1)
    own = blocks[..., None, :head].reshape(*blocks.shape[:2], 1, -1, 2)
    return Parts(blocks[..., :0].reshape(*blocks.shape[:2], 0, 2), own, codes)


def take_apart_q4_k(blocks: Bytes) -> Parts:
    """Eight scales and eight offsets of 6 bits are woven into 12 bytes; each 32 bytes are two blocks of codes."""
    first, second, third = np.split(blocks[..., 4:16], 3, axis=-1)
    scales = np.concatenate((first & 63, (third & 15) | (first >> 6 << 4)), -1)
    offsets = np.concatenate((second & 63, (third >> 4) | (second >> 6 << 4)), -1)
    pairs = blocks[..., 16:].reshape(*blocks.shape[:2], 4, 1, 32)
    codes: Any = np.concatenate((pairs & LOW, pairs >> FOUR), -2).reshape(*blocks.shape[:2], 8, 32)
    shared = blocks[..., :4].reshape(*blocks.shape[:2], 2, 2)
    return Parts(shared, np.stack((scales, offsets), -1)[..., None], codes)


def take_apart_q6_k(blocks: Bytes) -> Parts:
    """Each 128 columns have 64 bytes of low halves and 32 of the two high bits; each 16 a scale of 8 bits."""
    lead = blocks.shape[:2]
    low: Any = blocks[..., :128].reshape(*lead, 2, 1, 2, 32)
    low = np.concatenate((low & LOW, low >> FOUR), -3).reshape(*lead, 2, 4, 32)
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    high = blocks[..., 128:192].reshape(*lead, 2, 1, 32) >> shifts & 3
    codes = (low | high << 4) - np.uint8(32)  # below zero it wraps: a signed byte
    own = blocks[..., 192:208].reshape(*lead, 8, 2, 1)
    return Parts(blocks[..., 208:].reshape(*lead, 1, 2), own, codes.reshape(*lead, 8, 32))


def join_columns(codes: Bytes, code: int) -> Bytes:
    """Neighbouring columns in one 32-bit word: (…, words, 4 bytes)."""
    if code not in (Q8_0, Q6_K):
        codes = codes[..., 0::2] | (codes[..., 1::2] << FOUR)
    return codes.reshape(*codes.shape[:-1], -1, 4)
