"""Matrix products: sixteen rows of a matrix, one tile, times the activations of a token.

Codes stay where they are in a word: `word & (15 << 4 j)` is the code of column j times 16 ** j, an exact float32, and
the activation of that column was multiplied by 16 ** -j beforehand (`prepare`), exactly too. What 32 columns share is
applied once: Σ (scale · code + offset) · x = scale · Σ code · x + offset · Σ x.

Everything is named by its address; `x` of a token is `columns` float32, and 16 are written to `out`.
"""

from typing import Any

import numpy as np

from regard.models.fast.compile import inline_kernel, kernel
from regard.models.fast.tables import F32, Q4_0, Q4_1, Q8_0
from regard.models.fast.vectors import (
    add_lanes,
    broadcast,
    broadcast_from,
    fma,
    load,
    load_halves,
    load_ints,
    nibble_scales,
    read_byte,
    select_bits,
    shift_left,
    shift_right,
    store,
    to_floats,
    view,
)

TILE = 16  # rows that are computed together
FEW = 4  # tokens that are computed together
I4 = np.int32
TOP = I4(-(2**24))  # the highest byte of a word


@kernel
def prepare(x: int, columns: int, scaled: int, sums: int) -> None:
    """What 4-bit codes are multiplied with: each column by its power of 16, and the sum of each 32 columns."""
    for block in range(columns // 32):
        low, high = load(x + 128 * block), load(x + 128 * block + 64)
        store(scaled + 128 * block, low * nibble_scales())
        store(scaled + 128 * block + 64, high * nibble_scales())
        view(sums, columns // 32)[block] = add_lanes(low + high)


@inline_kernel
def add_nibbles(word: Any, x: int, even: Any, odd: Any) -> Any:
    """Eight columns of 4-bit codes, times x."""
    even = fma(select_bits(word, I4(0xF)), broadcast_from(x), even)
    odd = fma(select_bits(word, I4(0xF0)), broadcast_from(x + 4), odd)
    even = fma(select_bits(word, I4(0xF00)), broadcast_from(x + 8), even)
    odd = fma(select_bits(word, I4(0xF000)), broadcast_from(x + 12), odd)
    even = fma(select_bits(word, I4(0xF0000)), broadcast_from(x + 16), even)
    odd = fma(select_bits(word, I4(0xF00000)), broadcast_from(x + 20), odd)
    even = fma(select_bits(word, I4(0xF000000)), broadcast_from(x + 24), even)
    odd = fma(to_floats(shift_right(word, I4(28))), broadcast_from(x + 28), odd)
    return even, odd


@kernel
def multiply_q4(tile: int, with_offset: bool, columns: int, x: int, sums: int) -> Any:
    """A tile of 4-bit codes times one token; `x` and `sums` as `prepare` gives them."""
    total = broadcast(np.float32(0))
    for block in range(columns // 32):
        scale, a, b = load_halves(tile), broadcast(np.float32(0)), broadcast(np.float32(0))
        c, d = a, b
        total_of_x = broadcast_from(sums + 4 * block)
        if with_offset:
            total = fma(load_halves(tile + 32), total_of_x, total)
            tile += 64
        else:
            a = total_of_x * broadcast(np.float32(-8))  # Q4_0 counts its codes from -8 on
            tile += 32
        at = x + 128 * block
        a, b = add_nibbles(load_ints(tile), at, a, b)
        c, d = add_nibbles(load_ints(tile + 64), at + 32, c, d)
        a, b = add_nibbles(load_ints(tile + 128), at + 64, a, b)
        c, d = add_nibbles(load_ints(tile + 192), at + 96, c, d)
        total = fma(scale, (a + b) + (c + d), total)
        tile += 256
    return total


@inline_kernel
def add_nibbles_few(word: Any, x: int, stride: int, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Eight columns of 4-bit codes, times four tokens."""
    for j in range(7):
        code, at = select_bits(word, I4(15) << I4(4 * j)), x + 4 * j
        a = fma(code, broadcast_from(at), a)
        b = fma(code, broadcast_from(at + stride), b)
        c = fma(code, broadcast_from(at + 2 * stride), c)
        d = fma(code, broadcast_from(at + 3 * stride), d)
    code, at = to_floats(shift_right(word, I4(28))), x + 28
    a = fma(code, broadcast_from(at), a)
    b = fma(code, broadcast_from(at + stride), b)
    c = fma(code, broadcast_from(at + 2 * stride), c)
    d = fma(code, broadcast_from(at + 3 * stride), d)
    return a, b, c, d


@kernel
def multiply_q4_few(tile: int, with_offset: bool, columns: int, x: int, sums: int, stride: int) -> Any:
    """A tile of 4-bit codes times four tokens, `stride` bytes apart."""
    zero, eight = broadcast(np.float32(0)), broadcast(np.float32(-8))
    total_a, total_b, total_c, total_d = zero, zero, zero, zero
    for block in range(columns // 32):
        scale, at = load_halves(tile), sums + 4 * block
        a, b = broadcast_from(at), broadcast_from(at + stride)
        c, d = broadcast_from(at + 2 * stride), broadcast_from(at + 3 * stride)
        if with_offset:
            offset = load_halves(tile + 32)
            total_a, total_b = fma(offset, a, total_a), fma(offset, b, total_b)
            total_c, total_d = fma(offset, c, total_c), fma(offset, d, total_d)
            a, b, c, d = zero, zero, zero, zero
            tile += 64
        else:
            a, b, c, d = a * eight, b * eight, c * eight, d * eight
            tile += 32
        for word in range(4):
            at = x + 128 * block + 32 * word
            a, b, c, d = add_nibbles_few(load_ints(tile + 64 * word), at, stride, a, b, c, d)
        total_a, total_b = fma(scale, a, total_a), fma(scale, b, total_b)
        total_c, total_d = fma(scale, c, total_c), fma(scale, d, total_d)
        tile += 256
    return total_a, total_b, total_c, total_d


@kernel
def multiply_q8(tile: int, columns: int, x: int) -> Any:
    """A tile of 8-bit codes times one token."""
    total, unit = broadcast(np.float32(0)), broadcast(np.float32(2.0**-24))
    for _ in range(columns // 32):
        scale = load_halves(tile) * unit  # codes are taken as the highest byte of a word
        tile += 32
        a = broadcast(np.float32(0))
        b, c, d = a, a, a
        for _word in range(8):
            word = load_ints(tile)
            a = fma(to_floats(shift_left(word, I4(24))), broadcast_from(x), a)
            b = fma(select_bits(shift_left(word, I4(16)), TOP), broadcast_from(x + 4), b)
            c = fma(select_bits(shift_left(word, I4(8)), TOP), broadcast_from(x + 8), c)
            d = fma(select_bits(word, TOP), broadcast_from(x + 12), d)
            x, tile = x + 16, tile + 64
        total = fma(scale, (a + b) + (c + d), total)
    return total


@kernel
def multiply_row(row: int, columns: int, x: int) -> Any:
    """A row of float32 times one token: a number."""
    a = broadcast(np.float32(0))
    b, c, d = a, a, a
    at = 0
    while at + 64 <= columns:
        a = fma(load(row + 4 * at), load(x + 4 * at), a)
        b = fma(load(row + 4 * at + 64), load(x + 4 * at + 64), b)
        c = fma(load(row + 4 * at + 128), load(x + 4 * at + 128), c)
        d = fma(load(row + 4 * at + 192), load(x + 4 * at + 192), d)
        at += 64
    while at + 16 <= columns:
        a = fma(load(row + 4 * at), load(x + 4 * at), a)
        at += 16
    total = add_lanes((a + b) + (c + d))
    for rest in range(at, columns):
        total += view(row, columns)[rest] * view(x, columns)[rest]
    return total


@inline_kernel
def tile_size(code: int, columns: int) -> int:
    """Bytes of sixteen packed rows."""
    size = 544  # Q8_0
    if code == Q4_0:
        size = 288
    elif code == Q4_1:
        size = 320
    return size * (columns // 32)


@kernel
def multiply_tile(matrix: Any, tile: int, count: int, x: int, room: int, stride: int, out: int, step: int) -> None:
    """Rows 16 · tile … of a matrix times so many tokens, to `out`, `step` bytes apart.

    A token's activations stand at `x`, `room` bytes after them what `prepare` made of them, again `room` bytes later
    the sums, and the next token `stride` bytes after it.
    """
    columns, code, scaled, sums = matrix.columns, matrix.code, x + room, x + 2 * room
    if code == F32:
        last = min(matrix.rows - TILE * tile, TILE)
        for row in range(last):
            at = matrix.address + 4 * columns * (TILE * tile + row)
            for token in range(count):
                view(out + token * step, TILE)[row] = multiply_row(at, columns, x + token * stride)
    elif code == Q8_0:
        at = matrix.address + tile * tile_size(code, columns)
        for token in range(count):
            store(out + token * step, multiply_q8(at, columns, x + token * stride))
    else:
        at = matrix.address + tile * tile_size(code, columns)
        token = 0
        while token + FEW <= count:
            of, to = token * stride, out + token * step
            a, b, c, d = multiply_q4_few(at, code == Q4_1, columns, scaled + of, sums + of, stride)
            store(to, a)
            store(to + step, b)
            store(to + 2 * step, c)
            store(to + 3 * step, d)
            token += FEW
        while token < count:
            of = token * stride
            store(out + token * step, multiply_q4(at, code == Q4_1, columns, scaled + of, sums + of))
            token += 1
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
    to, lane, lanes = view(out, columns), row % TILE, view(scratch, 2 * TILE)
    if code == F32:
        source = view(matrix.address + 4 * columns * row, columns)
        for column in range(columns):
            to[column] = source[column]
        return
    at, size = matrix.address + row // TILE * tile_size(code, columns), tile_size(code, 32)
    for block in range(columns // 32):
        store(scratch, load_halves(at))
        store(scratch + 64, load_halves(at + 32))
        for place in range(32):
            if code == Q8_0:
                byte = read_byte(at + 32 + 64 * (place // 4) + 4 * lane + place % 4)
                value = lanes[lane] * np.float32(np.int8(byte))
            else:
                codes = at + (64 if code == Q4_1 else 32) + 64 * (place // 8)
                nibble = (read_byte(codes + 4 * lane + place % 8 // 2) >> (4 * (place % 2))) & 15
                if code == Q4_1:
                    value = lanes[lane] * np.float32(nibble) + lanes[TILE + lane]
                else:
                    value = lanes[lane] * (np.float32(nibble) - np.float32(8))
            to[32 * block + place] = value
        at += size
