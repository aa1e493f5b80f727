"""Products with a matrix of float32 where it lies: row after row, as torch has it."""

from typing import Any

import numpy as np

from regard.models.fast.compile import kernel
from regard.models.fast.vectors import add_lanes, broadcast, fma, load, view

TILE = 16  # rows that are computed together
FEW = 4  # tokens that are computed together


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


@kernel
def multiply_rows_few(row: int, columns: int, x: int, stride: int, out: int, step: int) -> None:
    """Two rows of float32 times four tokens, to two numbers of each."""
    other, a = row + 4 * columns, broadcast(np.float32(0))
    b, c, d, e, f, g, h = a, a, a, a, a, a, a
    last = columns // 16 * 16
    for at in range(0, 4 * last, 64):
        first, second, of = load(row + at), load(other + at), load(x + at)
        a, e = fma(first, of, a), fma(second, of, e)
        of = load(x + at + stride)
        b, f = fma(first, of, b), fma(second, of, f)
        of = load(x + at + 2 * stride)
        c, g = fma(first, of, c), fma(second, of, g)
        of = load(x + at + 3 * stride)
        d, h = fma(first, of, d), fma(second, of, h)
    sums = (add_lanes(a), add_lanes(b), add_lanes(c), add_lanes(d))
    others = (add_lanes(e), add_lanes(f), add_lanes(g), add_lanes(h))
    for token in range(FEW):
        to, activations = view(out + token * step, 2), view(x + token * stride, columns)
        to[0], to[1] = sums[token], others[token]
        for column in range(last, columns):
            to[0] += view(row, columns)[column] * activations[column]
            to[1] += view(other, columns)[column] * activations[column]


@kernel
def multiply_tile_f32(matrix: Any, tile: int, count: int, x: int, stride: int, out: int, step: int) -> None:
    """Up to sixteen rows of float32 times so many tokens: two rows and four tokens at a time, then the rest."""
    columns, rows = matrix.columns, min(matrix.rows - TILE * tile, TILE)
    first, few, pairs = matrix.address + 4 * columns * TILE * tile, count // FEW * FEW, rows // 2 * 2
    if few:
        for row in range(0, pairs, 2):
            for token in range(0, few, FEW):
                to = out + token * step + 4 * row
                multiply_rows_few(first + 4 * columns * row, columns, x + token * stride, stride, to, step)
    for row in range(rows):
        for token in range(few if row < pairs else 0, count):
            to = view(out + token * step, TILE)
            to[row] = multiply_row(first + 4 * columns * row, columns, x + token * stride)
