"""Changes of pictures against loops over their pixels, and what each is a function of."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regard.data.augment import Augmentation, draw_shares

B, C, Y, X = 3, 2, 6, 9
ALL = Augmentation(shift=2, rotate=30, scale=0.3, flip=True, brightness=0.5)


def drawn():
    return torch.randn(B, C, Y, X, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def by_loops(pictures, examples, change, *, seed, epoch):
    """Where each pixel comes from, counted from the middle; between pixels by their distances, outside the border."""
    out = torch.zeros_like(pictures)
    for i, share in enumerate(draw_shares(examples, seed=seed, epoch=epoch).tolist()):
        down, right, angle, size, mirrored, light = (2 * one - 1 for one in share)
        turn, zoom = math.radians(angle * change.rotate), 1 + size * change.scale
        for y in range(Y):
            for x in range(X):
                v, u = y - (Y - 1) / 2, x - (X - 1) / 2
                across = (math.cos(turn) * u + math.sin(turn) * v) / zoom
                across = (-across if change.flip and mirrored < 0 else across) + right * change.shift
                along = (math.cos(turn) * v - math.sin(turn) * u) / zoom + down * change.shift
                at_y = min(max(along + (Y - 1) / 2, 0), Y - 1)
                at_x = min(max(across + (X - 1) / 2, 0), X - 1)
                top, left = min(int(at_y), Y - 2), min(int(at_x), X - 2)
                p, q = at_y - top, at_x - left
                one = pictures[i]
                value = (1 - p) * ((1 - q) * one[:, top, left] + q * one[:, top, left + 1])
                value += p * ((1 - q) * one[:, top + 1, left] + q * one[:, top + 1, left + 1])
                out[i, :, y, x] = value + light * change.brightness
    return out


@pytest.mark.parametrize(
    "change", [ALL, Augmentation(shift=2), Augmentation(rotate=40), Augmentation(scale=0.4), Augmentation(flip=True)]
)
def test_it_is_what_loops_over_pixels_give(change):
    examples = np.array([5, 0, 11])
    want = by_loops(drawn(), examples, change, seed=3, epoch=2)
    assert_close(change.apply(drawn(), examples, seed=3, epoch=2), want)


def test_a_change_follows_from_seed_epoch_and_example_alone():
    examples = np.array([5, 0, 11])
    whole = ALL.apply(drawn(), examples, seed=3, epoch=2)
    assert_close(ALL.apply(drawn()[1:2], examples[1:2], seed=3, epoch=2), whole[1:2], rtol=0, atol=0)
    for more in ({"seed": 4, "epoch": 2}, {"seed": 3, "epoch": 1}):
        assert not torch.allclose(ALL.apply(drawn(), examples, **more), whole)
    same = drawn()[:1].expand(3, -1, -1, -1)
    assert not torch.allclose(*ALL.apply(same, examples, seed=3, epoch=2)[:2])


def test_nothing_is_done_where_nothing_is_asked_for():
    pictures = drawn()
    assert Augmentation().apply(pictures, np.arange(3), seed=0, epoch=0) is pictures
    shares = draw_shares(np.arange(4000), seed=0, epoch=0)
    assert np.abs(shares.mean(0) - 0.5).max() < 0.02
    assert np.abs(np.corrcoef(shares.T) - np.eye(6)).max() < 0.06
