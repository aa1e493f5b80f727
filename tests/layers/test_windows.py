"""Attention within windows: who sees whom is asked of the picture, cell by cell, and never of the shifted one."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.errors import PositionError, ShapeError
from regard.layers.windows import EMPTY, WindowAttention, fit_window, number_cells, window_mask
from regard.positions.window_bias import WindowBias

GRIDS = [(8, 12, 4, 0), (8, 12, 4, 2), (9, 6, 3, 1), (7, 10, 4, 2), (5, 7, 4, 0), (6, 6, 5, 2), (4, 11, 2, 1)]


def window_of(at, size, window, shift):
    """The window along one side that a cell is in, in the picture itself: what hangs over is a window of its own."""
    padded = size + -size % window
    return (at - shift) // window if at >= shift else (at - shift + padded) // window + 1000


def by_loops(layer, x):
    """Each cell looks at the cells of its window, one at a time."""
    b, rows, columns, m = x.shape
    window, shift = fit_window(layer.window, layer.shift, rows, columns)
    d, out = m // layer.heads, torch.zeros_like(x)
    place = {
        (y, z): (window_of(y, rows, window, shift), window_of(z, columns, window, shift))
        for y in range(rows)
        for z in range(columns)
    }
    for i in range(b):
        for y, z in place:
            near = [at for at in place if place[at] == place[(y, z)]]
            source = torch.stack([x[i, u, w] for u, w in near])
            q, k, v = layer.to_q(x[i, y, z]), layer.to_k(source), layer.to_v(source)
            mixed = []
            for h in range(layer.heads):
                part = slice(h * d, (h + 1) * d)
                at = [(y - u + layer.window - 1) * (2 * layer.window - 1) + (z - w + layer.window - 1) for u, w in near]
                scores = k[:, part] @ q[part] / d**0.5 + layer.positions.weight[at, h]
                mixed.append(scores.softmax(0) @ v[:, part])
            out[i, y, z] = layer.to_out(torch.cat(mixed))
    return out


@pytest.mark.parametrize(("rows", "columns", "window", "shift"), GRIDS)
def test_it_is_what_loops_over_the_cells_of_the_picture_give(rows, columns, window, shift):
    torch.manual_seed(0)
    layer = WindowAttention(6, 3, window, shift=shift).double()
    nn.init.normal_(layer.positions.weight)
    x = torch.randn(2, rows, columns, 6, dtype=torch.float64)
    with torch.no_grad():
        want = by_loops(layer, x)
        assert_close(layer(x), want)
        assert_close(layer(x), want)  # again, with masks that are kept
    assert_close(layer(x), want)  # and where the bias learns


@pytest.mark.parametrize(("rows", "columns", "window", "shift"), GRIDS)
def test_cells_have_numbers_and_each_stands_in_one_window(rows, columns, window, shift):
    cells = number_cells(rows, columns, window, shift)
    assert sorted(cells[cells != EMPTY].tolist()) == list(range(rows * columns))
    mask = window_mask(rows, columns, window, shift)
    for w, numbers in enumerate(cells.tolist()):
        for i, one in enumerate(numbers):
            for j, other in enumerate(numbers):
                if EMPTY in (one, other):
                    continue
                near = all(
                    window_of(a, size, window, shift) == window_of(b, size, window, shift)
                    for a, b, size in zip(divmod(one, columns), divmod(other, columns), (rows, columns))
                )
                assert near == (mask is None or bool(mask[w, i, j]))
    if mask is not None:
        assert not mask[(cells != EMPTY)[:, :, None] & (cells == EMPTY)[:, None]].any()
        assert mask.any(-1).all()


def test_padding_is_seen_where_it_is_asked_for():
    layer = WindowAttention(6, 2, 4, sees_padding=True)
    x = torch.randn(1, 5, 7, 6)
    with torch.no_grad():
        assert not torch.allclose(layer(x), by_loops(layer, x))
    assert window_mask(5, 7, 4, 0, sees_padding=True) is None


def test_a_mask_that_was_kept_in_inference_mode_serves_training():
    layer, x = WindowAttention(6, 2, 2, shift=1), torch.randn(1, 4, 6, 6)
    with torch.inference_mode():
        layer(x)
    layer(x).sum().backward()
    assert layer.positions.weight.grad.abs().sum() > 0


def test_what_cannot_be_is_refused():
    with pytest.raises(ShapeError, match="3 cells came with a shift of 3; give 0 to 2"):
        WindowAttention(6, 2, 3, shift=3)
    with pytest.raises(ShapeError, match="width 7 does not split into 2"):
        WindowAttention(7, 2, 3)
    with pytest.raises(ShapeError, match="cells of 5 channels came, but this layer wants 6"):
        WindowAttention(6, 2, 3)(torch.ones(1, 4, 4, 5))
    with pytest.raises(PositionError, match="window of 4 cells came"):
        WindowBias(2, 3)(4)
