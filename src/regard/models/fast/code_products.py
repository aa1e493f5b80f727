"""Products with the codes of a file, sixteen rows (one tile) at a time, as packing.py lays them out.

Codes stay where they are in a word: `word & (15 << 4 j)` is the code of column j times 16 ** j, an exact float32, and
the activation of that column was multiplied by 16 ** -j beforehand (`prepare`), exactly too. What 32 columns share is
applied once: Σ (scale · code + offset) · x = scale · Σ code · x + offset · Σ x.

Everything is named by its address; `x` of a token is a row of float32.
"""

from typing import Any

import numpy as np

from regard.models.fast.compile import inline_kernel, kernel
from regard.models.fast.tables import Q4_0, Q4_1, Q6_K
from regard.models.fast.vectors import (
    add_lanes,
    broadcast,
    broadcast_from,
    fma,
    load,
    load_bytes,
    load_halves,
    load_ints,
    load_signed_bytes,
    nibble_scales,
    select_bits,
    shift_left,
    shift_right,
    store,
    to_floats,
    view,
)

I4, F4 = np.int32, np.float32
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
def read_q4_scales(code: int, tile: int, block: int, scale: Any, offset: Any) -> Any:
    """Scale and offset of a block of 4-bit codes, where the codes begin, and what the next block shares with it.

    Q4_0 counts its codes from -8 on. Of Q4_K, eight blocks share a factor of their scales and one of their offsets,
    which stand before the first.
    """
    if code == Q4_1:
        return load_halves(tile), load_halves(tile + 32), tile + 64, scale, offset
    if code == Q4_0:
        own = load_halves(tile)
        return own, own * broadcast(F4(-8)), tile + 32, scale, offset
    if block % 8 == 0:
        scale, offset = load_halves(tile), broadcast(F4(0)) - load_halves(tile + 32)
        tile += 64
    return scale * load_bytes(tile), offset * load_bytes(tile + 16), tile + 32, scale, offset


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
def multiply_q4(code: int, tile: int, columns: int, x: int, sums: int, out: int) -> None:
    """A tile of 4-bit codes times one token; `x` and `sums` as `prepare` gives them."""
    zero = broadcast(F4(0))
    total, shared, shared_offset = zero, zero, zero
    for block in range(columns // 32):
        scale, offset, tile, shared, shared_offset = read_q4_scales(code, tile, block, shared, shared_offset)
        total, at = fma(offset, broadcast_from(sums + 4 * block), total), x + 128 * block
        a, b = add_nibbles(load_ints(tile), at, zero, zero)
        c, d = add_nibbles(load_ints(tile + 64), at + 32, zero, zero)
        a, b = add_nibbles(load_ints(tile + 128), at + 64, a, b)
        c, d = add_nibbles(load_ints(tile + 192), at + 96, c, d)
        total = fma(scale, (a + b) + (c + d), total)
        tile += 256
    store(out, total)


@inline_kernel
def add_few(number: Any, x: int, stride: int, a: Any, b: Any, c: Any, d: Any) -> Any:
    """One column times four tokens."""
    a = fma(number, broadcast_from(x), a)
    b = fma(number, broadcast_from(x + stride), b)
    c = fma(number, broadcast_from(x + 2 * stride), c)
    d = fma(number, broadcast_from(x + 3 * stride), d)
    return a, b, c, d


@inline_kernel
def store_few(out: int, step: int, a: Any, b: Any, c: Any, d: Any) -> None:
    """What four tokens give."""
    store(out, a)
    store(out + step, b)
    store(out + 2 * step, c)
    store(out + 3 * step, d)


@kernel
def multiply_q4_few(code: int, tile: int, columns: int, x: int, sums: int, stride: int, out: int, step: int) -> None:
    """A tile of 4-bit codes times four tokens, `stride` bytes apart."""
    zero = broadcast(F4(0))
    total_a, total_b, total_c, total_d, shared, shared_offset = zero, zero, zero, zero, zero, zero
    for block in range(columns // 32):
        scale, offset, tile, shared, shared_offset = read_q4_scales(code, tile, block, shared, shared_offset)
        at = sums + 4 * block
        total_a, total_b, total_c, total_d = add_few(offset, at, stride, total_a, total_b, total_c, total_d)
        a, b, c, d = zero, zero, zero, zero
        for i in range(4):
            word, at = load_ints(tile + 64 * i), x + 128 * block + 32 * i
            for j in range(7):
                a, b, c, d = add_few(select_bits(word, I4(15) << I4(4 * j)), at + 4 * j, stride, a, b, c, d)
            a, b, c, d = add_few(to_floats(shift_right(word, I4(28))), at + 28, stride, a, b, c, d)
        total_a, total_b = fma(scale, a, total_a), fma(scale, b, total_b)
        total_c, total_d = fma(scale, c, total_c), fma(scale, d, total_d)
        tile += 256
    store_few(out, step, total_a, total_b, total_c, total_d)


@inline_kernel
def read_q8_scales(code: int, tile: int, block: int, shared: Any) -> Any:
    """Scales of either half of a block of 8-bit codes, where the codes begin, and what the next block shares with it.

    Codes are taken as the highest byte of a word, so scales are smaller by 2 ** 24. Q6_K, whose codes were widened to 8
    bits, has a scale for 16 columns, and a factor of eight blocks before the first.
    """
    unit = broadcast(F4(2.0**-24))
    if code != Q6_K:
        own = load_halves(tile) * unit
        return own, own, tile + 32, shared
    if block % 8 == 0:
        shared = load_halves(tile) * unit
        tile += 32
    return shared * load_signed_bytes(tile), shared * load_signed_bytes(tile + 16), tile + 32, shared


@inline_kernel
def add_bytes(word: Any, x: int, even: Any, odd: Any) -> Any:
    """Four columns of 8-bit codes, times x."""
    even = fma(to_floats(shift_left(word, I4(24))), broadcast_from(x), even)
    odd = fma(select_bits(shift_left(word, I4(16)), TOP), broadcast_from(x + 4), odd)
    even = fma(select_bits(shift_left(word, I4(8)), TOP), broadcast_from(x + 8), even)
    odd = fma(select_bits(word, TOP), broadcast_from(x + 12), odd)
    return even, odd


@kernel
def multiply_q8(code: int, tile: int, columns: int, x: int, out: int) -> None:
    """A tile of 8-bit codes times one token."""
    zero = broadcast(F4(0))
    total, shared = zero, zero
    for block in range(columns // 32):
        low, high, tile, shared = read_q8_scales(code, tile, block, shared)
        a, b, c, d = zero, zero, zero, zero
        for _ in range(4):
            a, b = add_bytes(load_ints(tile), x, a, b)
            c, d = add_bytes(load_ints(tile + 256), x + 64, c, d)
            x, tile = x + 16, tile + 64
        total = fma(high, c + d, fma(low, a + b, total))
        x, tile = x + 64, tile + 256
    store(out, total)


@kernel
def multiply_q8_few(code: int, tile: int, columns: int, x: int, stride: int, out: int, step: int) -> None:
    """A tile of 8-bit codes times four tokens."""
    zero = broadcast(F4(0))
    total_a, total_b, total_c, total_d, shared = zero, zero, zero, zero, zero
    for block in range(columns // 32):
        low, high, tile, shared = read_q8_scales(code, tile, block, shared)
        for scale in (low, high):
            a, b, c, d = zero, zero, zero, zero
            for _ in range(4):
                word = load_ints(tile)
                a, b, c, d = add_few(to_floats(shift_left(word, I4(24))), x, stride, a, b, c, d)
                for j in range(1, 4):
                    number = select_bits(shift_left(word, I4(24 - 8 * j)), TOP)
                    a, b, c, d = add_few(number, x + 4 * j, stride, a, b, c, d)
                x, tile = x + 16, tile + 64
            total_a, total_b = fma(scale, a, total_a), fma(scale, b, total_b)
            total_c, total_d = fma(scale, c, total_c), fma(scale, d, total_d)
    store_few(out, step, total_a, total_b, total_c, total_d)


@inline_kernel
def unpack_row(code: int, tile: int, columns: int, lane: int, is_byte: bool, scratch: int, out: int) -> None:
    """One row of a tile as float32: all sixteen are unpacked, a column at a time, and one is taken."""
    zero = broadcast(F4(0))
    shared, shared_offset, lanes, result = zero, zero, view(scratch, 16), view(out, columns)
    for block in range(columns // 32):
        low, high, offset = zero, zero, zero
        if is_byte:
            low, high, tile, shared = read_q8_scales(code, tile, block, shared)
        else:
            low, offset, tile, shared, shared_offset = read_q4_scales(code, tile, block, shared, shared_offset)
            high = low
        for place in range(32):
            if is_byte:
                word = load_ints(tile + 64 * (place // 4))
                number = select_bits(shift_left(word, I4(24 - 8 * (place % 4))), TOP)
            else:
                word = load_ints(tile + 64 * (place // 8))
                number = select_bits(shift_right(word, I4(4 * (place % 8))), I4(15))
            store(scratch, fma(number, low if place < 16 else high, offset))
            result[32 * block + place] = lanes[lane]
        tile += 512 if is_byte else 256
