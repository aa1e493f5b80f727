"""Tiles and thumbnails against all weights in float64."""

import numpy as np
import pytest
import torch

from regard.errors import TraceError
from regard.views.explorer.answer import Answers, head_rows, pyramid, tiles, walk
from tests.views.explorer.answer.cases import CASES, ask, asked, close


@pytest.fixture(params=["whole", "cut small"])
def sizes(request, monkeypatch):
    """Once as it is; once with tiny tiles, strips and bases, so that every edge is met."""
    if request.param == "cut small":
        monkeypatch.setattr(tiles, "TILE", 4)
        monkeypatch.setattr(pyramid, "CELLS", 20)
        monkeypatch.setattr(head_rows, "STRIP", 40)
        monkeypatch.setattr(walk, "QUERIES", 4)
        monkeypatch.setattr(walk, "KEYS", 4)
    return tiles.TILE


def folded(case, b, h, size, *, coarse=False):
    """Max, mean over allowed and share of every cell: rows and columns filled up with nothing, then split evenly."""
    weights, allowed = case.weights[b, h], case.allowed[b, h]
    q, k = weights.shape
    if coarse:
        ends = [(first, min(q, first + size)) for first in range(0, q, size)]
        middle = [first + (stop - first) // 2 for first, stop in ends]
        weights, allowed = weights[middle], allowed[middle]
    tall, wide = 1 if coarse else min(size, q), min(size, k)  # a cell larger than the map is the map
    lower, right = -len(weights) % tall, -k % wide

    def cells(x):
        x = torch.nn.functional.pad(x.double(), (0, right, 0, lower))
        return x.view(x.shape[0] // tall, tall, x.shape[1] // wide, wide)

    seen, there = cells(allowed).sum((1, 3)), cells(torch.ones_like(weights)).sum((1, 3))
    share = (255 * seen / there + 0.5).floor().clamp(1, 254)
    share[seen == 0], share[seen == there] = 0, 255
    mean = cells(weights * allowed).sum((1, 3)) / seen.clamp_min(1)
    astray = cells(weights).sum((1, 3)) / there  # of a cell in which nothing may be looked at
    return cells(weights).amax((1, 3)), torch.where(seen > 0, mean, astray), share.to(torch.uint8)


def near(case):
    """A score of size s is known to s · ε in float32, whoever computes it, and so is the weight, by its own size."""
    size = 0.0 if case.scores is None else float(case.scores.nan_to_num().abs().max())
    return max(1e-6, 2 * size * torch.finfo(torch.float32).eps)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("coarse", [False, True])
def test_every_tile_of_every_level_equals_the_folded_weights(name, coarse, sizes):
    case = CASES[name]()
    answers = Answers(case.trace)
    b, h, _, _ = case.weights.shape
    asked_for = 0
    for level in (3, 0, 1, 2, 5, 30):
        wanted = folded(case, b - 1, h - 1, 1 << level, coarse=coarse and level > 0)
        height, width = wanted[0].shape
        for row in range(-(-height // sizes)):
            for column in range(-(-width // sizes)):
                at = {"layer": 0, "batch": b - 1, "head": h - 1, "level": level, "row": row, "column": column}
                facts, arrays = ask(answers, "tile", **at, coarse=coarse)
                here = (slice(row * sizes, (row + 1) * sizes), slice(column * sizes, (column + 1) * sizes))
                most, mean, share = (some[here] for some in wanted)
                assert (facts["rows"], facts["columns"]) == most.shape
                assert facts["sampled"] == (1 << level if coarse and level else 0)
                close(arrays["max"], most, near(case))
                close(arrays["mean"], mean, near(case))
                assert np.array_equal(arrays["allowed"], share.numpy())
                assert arrays["max"].dtype == np.float32
                asked_for += 1
    assert asked_for >= 6


@pytest.mark.parametrize("name", CASES)
def test_a_fine_tile_is_the_same_before_and_after_the_overview(name, sizes):
    case = CASES[name]()
    at = {"layer": 0, "batch": 0, "head": 1, "row": 0, "column": 0, "coarse": False}
    fresh, late = Answers(case.trace), Answers(case.trace)
    ask(late, "tile", **at, level=4)
    ask(late, "tile", **at, level=1)
    for which in ("max", "mean", "allowed"):
        close(ask(fresh, "tile", **at, level=0)[1][which], torch.tensor(ask(late, "tile", **at, level=0)[1][which]))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", [1, 4, 128])
def test_thumbnails_show_the_largest_weight_of_each_cell_of_every_head(name, size, sizes):
    case = CASES[name]()
    b, h, q, k = case.weights.shape
    facts, arrays = ask(Answers(case.trace), "thumbs", layer=0, batch=b - 1, size=size)
    level = next(level for level in range(9) if max(-(-q // 2**level), -(-k // 2**level)) <= size)
    assert facts == {"heads": h, "rows": -(-q // 2**level), "columns": -(-k // 2**level), "sampled": 0}
    for head in range(h):
        most, _, share = folded(case, b - 1, head, 2**level)
        close(arrays["max"][head], most, near(case))
        assert np.array_equal(arrays["allowed"][head], share.numpy())


def test_thumbnails_of_many_weights_show_single_queries(monkeypatch):
    monkeypatch.setattr(tiles, "WHOLE", 100)
    case = CASES["causal"]()
    facts, arrays = ask(Answers(case.trace), "thumbs", layer=0, batch=1, size=4)
    assert facts["sampled"] == 4
    for head in range(case.weights.shape[1]):
        most, _, share = folded(case, 1, head, 4, coarse=True)
        close(arrays["max"][head], most)
        assert np.array_equal(arrays["allowed"][head], share.numpy())


@pytest.mark.parametrize(("row", "column", "level"), [(1, 0, 0), (0, 1, 0), (0, 2**31 - 1, 30), (5, 5, 3)])
def test_a_tile_outside_of_the_map_is_refused_in_one_sentence(row, column, level):
    at = {"layer": 0, "batch": 0, "head": 0, "coarse": False}
    with pytest.raises(TraceError, match="that level has 1 × 1 tiles"):
        Answers(CASES["causal"]().trace).ask("tile", {**at, "row": row, "column": column, "level": level})


@pytest.mark.parametrize("case", ["open", "causal", "window"])
def test_a_map_of_several_tiles_and_strips_equals_its_own_rows(case):
    """No small numbers here: 700 × 1,100 with the tiles, strips and bases of everyday."""
    import regard

    mask = {"open": None, "causal": regard.causal(), "window": regard.window(90, 20)}[case]
    ahead = torch.arange(1100) - (torch.arange(700)[:, None] + 400)
    seen = {"open": ahead < 9999, "causal": ahead <= 0, "window": (ahead >= -90) & (ahead <= 20)}[case]
    made = asked(mask, seen, b=1, h=1, q=700, k=1100)
    answers = Answers(made.trace)
    for level, row, column in ((0, 2, 3), (0, 0, 1), (1, 1, 2), (2, 0, 1), (0, 0, 0)):
        at = {"layer": 0, "batch": 0, "head": 0, "level": level, "row": row, "column": column, "coarse": False}
        most, mean, share = folded(made, 0, 0, 1 << level)
        here = (slice(row * 256, (row + 1) * 256), slice(column * 256, (column + 1) * 256))
        _, arrays = ask(answers, "tile", **at)
        close(arrays["max"], most[here])
        close(arrays["mean"], mean[here])
        assert np.array_equal(arrays["allowed"], share[here].numpy())
