"""One map from several, against the pieces laid out by hand."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.attention.map import AttentionMap, Computed
from regard.attention.map.source import MapPiece
from regard.attention.map.stitched import StitchedSource
from regard.attention.mask import Sizes
from regard.errors import MapError, ShapeError
from regard.trace.record.even import even_softmax

B, H, D = 2, 3, 5
ROWS, KEYS, COLUMNS = (4, 1, 2), (4, 6, 3), (0, 1, 5)


def pieces():
    masks = (regard.causal(), None, regard.padding([3, 1]))
    return [
        Computed(torch.randn(B, H, q, D), torch.randn(B, H, k, D), Sizes((B, H), q, k), mask=mask)
        for q, k, mask in zip(ROWS, KEYS, masks, strict=True)
    ]


def test_a_stitched_map_is_its_pieces_one_below_the_other():
    parts = pieces()
    expected = torch.zeros(B, H, 7, 8)
    allowed = torch.zeros(B, H, 7, 8, dtype=torch.bool)
    at = 0
    for part, q, k, column in zip(parts, ROWS, KEYS, COLUMNS, strict=True):
        expected[..., at : at + q, column : column + k] = AttentionMap(part).dense()
        allowed[..., at : at + q, column : column + k] = AttentionMap(part).allowed[...]
        at += q
    ours = AttentionMap(StitchedSource([MapPiece(part, column) for part, column in zip(parts, COLUMNS, strict=True)]))
    assert (ours.kind, ours.shape) == ("computed", (B, H, 7, 8))
    assert ours.dense().equal(expected)
    assert ours.allowed[...].equal(allowed)
    assert_close(ours[1, 2].dense(), expected[1, 2])
    assert_close(ours[0, [2, 0]].dense(), expected[0, [2, 0]])
    assert_close(ours[1, 2, 3:6, [0, 7]], expected[1, 2, 3:6][:, [0, 7]])
    assert_close(ours[1][2].entropy(), torch.special.entr(expected[1, 2]).sum(-1))
    assert_close(ours.received(), expected.sum(-2) / allowed.sum(-2).clamp_min(1))
    with pytest.raises(MapError):
        ours.log_normaliser()


def test_pieces_of_different_batches_are_refused():
    one, other = Computed(torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 2, 3), Sizes((1, 1), 2, 2)), pieces()[0]
    with pytest.raises(ShapeError, match="one batch"):
        StitchedSource([MapPiece(one, 0), MapPiece(other, 0)])


def test_even_softmax_is_softmax_with_finite_numbers_for_hidden_cells():
    scores, allowed = torch.randn(B, H, 7, 5), torch.rand(B, 1, 7, 5) > 0.6
    allowed[0, 0, 3] = False
    theirs = torch.softmax(
        scores + torch.zeros(allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min), -1
    )
    assert_close(even_softmax(scores, allowed), theirs)
    assert even_softmax(scores).equal(torch.softmax(scores, -1))
