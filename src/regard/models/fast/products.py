"""Matrix products of tokens, whatever way the matrix lies in memory: sixteen rows of it, one tile, at a time."""

from typing import Any

from regard.models.fast.code_products import multiply_q4, multiply_q4_few, multiply_q8, multiply_q8_few, unpack_row
from regard.models.fast.compile import inline_kernel, kernel
from regard.models.fast.float_products import FEW, TILE, multiply_tile_f32
from regard.models.fast.tables import F32, Q4_0, Q4_1, Q4_K, Q8_0
from regard.models.fast.vectors import view


@inline_kernel
def has_nibbles(code: int) -> bool:
    """Whether codes have 4 bits, and need what `prepare` makes of activations."""
    return code in (Q4_0, Q4_1, Q4_K)


@inline_kernel
def tile_size(code: int, columns: int) -> int:
    """Bytes of sixteen packed rows."""
    blocks = columns // 32
    if code == Q4_0:
        return 288 * blocks
    if code == Q4_1:
        return 320 * blocks
    if code == Q8_0:
        return 544 * blocks
    return 2368 * (blocks // 8) if code == Q4_K else 4384 * (blocks // 8)


@kernel
def multiply_tile(matrix: Any, tile: int, count: int, x: int, room: int, stride: int, out: int, step: int) -> None:
    """Rows 16 · tile … of a matrix times so many tokens, to `out`, `step` bytes apart.

    A token's activations stand at `x`, `room` bytes after them what `prepare` made of them, again `room` bytes later
    the sums, and the next token `stride` bytes after it.
    """
    columns, code = matrix.columns, matrix.code
    if code == F32:
        multiply_tile_f32(matrix, tile, count, x, stride, out, step)
    else:
        at, nibbles, token = matrix.address + tile * tile_size(code, columns), has_nibbles(code), 0
        while token < count:
            to, of = out + token * step, x + token * stride
            few = token + FEW <= count
            if nibbles and few:
                multiply_q4_few(code, at, columns, of + room, of + 2 * room, stride, to, step)
            elif nibbles:
                multiply_q4(code, at, columns, of + room, of + 2 * room, to)
            elif few:
                multiply_q8_few(code, at, columns, of, stride, to, step)
            else:
                multiply_q8(code, at, columns, of, to)
            token += FEW if few else 1
    if matrix.bias:
        add_bias(matrix, tile, count, out, step)


@kernel
def add_bias(matrix: Any, tile: int, count: int, out: int, step: int) -> None:
    """The bias of a tile's rows, added to every token."""
    bias, last = view(matrix.bias, matrix.rows), min(matrix.rows - TILE * tile, TILE)
    for token in range(count):
        row_out = view(out + token * step, TILE)
        for row in range(last):
            row_out[row] += bias[TILE * tile + row]


@kernel
def read_row(matrix: Any, row: int, scratch: int, out: int) -> None:
    """One row of a matrix as float32: the embedding of a token."""
    columns, code = matrix.columns, matrix.code
    if code == F32:
        source, result = view(matrix.address + 4 * columns * row, columns), view(out, columns)
        for column in range(columns):
            result[column] = source[column]
    else:
        tile = matrix.address + row // TILE * tile_size(code, columns)
        unpack_row(code, tile, columns, row % TILE, not has_nibbles(code), scratch, out)
