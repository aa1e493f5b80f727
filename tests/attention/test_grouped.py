"""A grouped map against plain loops over the whole matrix."""

import gc
import weakref

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.attention.map import AttentionMap
from regard.attention.map.grouped import group
from regard.errors import Stale, TraceError

ROWS = [[0, 1], [3], [6, 4, 5]]
COLUMNS = [[2], [0, 1], [7, 8, 3], [4]]


def looped(whole, rows, columns):
    """Rows averaged, columns added, cell by cell."""
    out = torch.zeros(*whole.shape[:-2], len(rows), len(columns), dtype=whole.dtype)
    for i, some in enumerate(rows):
        for j, keys in enumerate(columns):
            for row in some:
                for key in keys:
                    out[..., i, j] += whole[..., row, key] / len(some)
    return out


def made(mask=None, kv_heads=2):
    q, k = torch.randn(3, 4, 7, 5, dtype=torch.float64), torch.randn(3, kv_heads, 9, 5, dtype=torch.float64)
    return regard.attend(q, k, k, mask=mask).weights


MASKS = {"open": None, "causal": regard.causal(), "padded": regard.padding([9, 4, 6])}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_a_grouped_map_equals_loops_over_the_whole(mask):
    whole = made(mask)
    merged = group(whole, ROWS, COLUMNS, "merged from")
    assert merged.shape == (3, 4, 3, 4)
    assert_close(merged.dense(), looped(whole.dense(), ROWS, COLUMNS))
    assert_close(merged[1, 2].dense(), looped(whole.dense(), ROWS, COLUMNS)[1, 2])
    assert_close(merged[2, [1, 3], 2, 1:3], looped(whole.dense(), ROWS, COLUMNS)[2, [1, 3], 2, 1:3])


def test_blocks_of_any_size_give_the_same(monkeypatch):
    whole = made(regard.causal())
    wanted = looped(whole.dense(), ROWS, COLUMNS)
    monkeypatch.setattr("regard.attention.map.grouped.BUDGET", 1)  # one row at a time
    assert_close(group(whole, ROWS, COLUMNS, "merged from").dense(), wanted)


def test_a_cell_is_hidden_where_all_of_it_is_hidden():
    merged = group(made(regard.causal()), ROWS, COLUMNS, "merged from")
    seen = made(regard.causal()).allowed[...][0, 0]
    wanted = [[bool(seen[rows][:, keys].any()) for keys in COLUMNS] for rows in ROWS]
    assert merged.allowed[0, 0, :, :].tolist() == wanted
    assert not all(map(all, wanted))


def test_statistics_walk_it_like_any_map():
    merged = group(made(), ROWS, COLUMNS, "merged from")
    dense = merged.dense()
    assert_close(merged.entropy(), -(dense * dense.log()).sum(-1))
    assert_close(merged.top(2)[0], dense.topk(2).values)
    assert_close(merged.pool(2, 2).max[..., 0, 0], dense[..., :2, :2].amax((-1, -2)))


def test_the_kind_says_what_was_done_to_what():
    once = group(made(), ROWS, COLUMNS, "merged from")
    assert (once.kind, group(once, [[0]], [[1]], "part of").kind) == (
        "merged from computed",
        "part of merged from computed",
    )
    assert "merged from computed" in repr(once)


def test_gradients_flow_through():
    q = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    groups = [[0, 1], [2, 3, 4]]
    whole = regard.attend(q, q, q).weights
    (ours,) = torch.autograd.grad(group(whole, groups, groups, "").dense().square().sum(), q)
    (theirs,) = torch.autograd.grad(looped(whole.dense(), groups, groups).square().sum(), q)
    assert_close(ours, theirs)


def test_nothing_is_copied_so_a_change_is_told():
    stored = torch.full((2, 4, 4), 0.25)
    merged = group(AttentionMap.stored(stored), [[0, 1], [2, 3]], [[0], [1]], "")
    stored[0, 0, 0] = 0.5
    with pytest.raises(Stale):
        merged.dense()


def test_it_goes_when_nobody_holds_it():
    gc.disable()
    try:
        merged = group(made(), ROWS, COLUMNS, "merged from")
        source = weakref.ref(merged.source.source.q)
        merged.dense()
        del merged
        assert source() is None
    finally:
        gc.enable()


def test_places_beyond_the_map_and_empty_groups_are_refused():
    with pytest.raises(TraceError, match="there is no row 7: the map has 7, counted from 0"):
        group(made(), [[7]], [[0]], "")
    with pytest.raises(TraceError, match="there is no column -1"):
        group(made(), [[0]], [[-1]], "")
    with pytest.raises(TraceError, match="a group of columns is empty; leave it out"):
        group(made(), [[0]], [[0], []], "")
