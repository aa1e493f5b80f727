"""Tensors of other ranks as (b, h, ., .), against plain reshapes; key heads against repeat_interleave."""

import pytest
import torch

from regard.attention.axes.as_4d import as_4d, broadcast_4d, expand_4d
from regard.attention.axes.heads import choose_key_heads, multiply_grouped
from regard.attention.axes.select import pick
from regard.attention.mask import Sizes

B, H, N, D = 2, 3, 5, 7


@pytest.mark.parametrize(
    ("shape", "heads", "wanted"),
    [
        ((B, H, N, D), None, (B, H, N, D)),
        ((B * H, N, D), H, (B, H, N, D)),
        ((B * H, N, D), None, (B * H, 1, N, D)),
        ((B * H, N, D), 4, (B * H, 1, N, D)),
        ((N, D), H, (1, 1, N, D)),
        ((11, B, H, N, D), H, (11 * B, H, N, D)),
    ],
)
def test_tensors_of_any_rank_become_four_axes_in_the_same_order(shape, heads, wanted):
    x = torch.arange(torch.Size(shape).numel()).reshape(shape)
    assert as_4d(x, heads).equal(x.reshape(wanted))


def test_nested_tensors_stay_as_they_are():
    x = torch.nested.nested_tensor([torch.zeros(2, 3, 4), torch.zeros(2, 5, 4)])
    assert as_4d(x) is x


@pytest.mark.parametrize(
    ("lead", "rank"), [(lead, rank) for lead in ((), (H,), (B, H), (11, B, H)) for rank in range(2, len(lead) + 3)]
)
def test_what_broadcasts_against_a_map_does_so_in_four_axes(lead, rank):
    sizes = Sizes(lead, N, D)
    shape = (*lead, N, D)[len(lead) + 2 - rank :]
    x = torch.arange(torch.Size(shape).numel()).reshape(shape)
    heads = lead[-1] if lead else 1
    wanted = x.expand(*lead, N, D).reshape(-1, heads, N, D)
    assert broadcast_4d(x, sizes).expand(wanted.shape).equal(wanted)
    assert expand_4d(x, sizes).expand(-1, heads, -1, -1).equal(wanted)
    assert broadcast_4d(x[..., :1, :], sizes).shape[-2:] == (1, D)


@pytest.mark.parametrize("chosen", [(1, 4), (0, slice(1, 5)), (slice(None), torch.tensor([5, 0])), (1,)])
def test_a_choice_of_query_heads_is_one_of_the_key_heads_that_they_share(chosen):
    q, k = torch.randn(B, 6, N, D, dtype=torch.float64), torch.randn(B, 2, 11, D, dtype=torch.float64)
    whole = q @ k.repeat_interleave(3, 1).mT
    some = pick(k, choose_key_heads(chosen, (B, 6), 2))
    queries = pick(q, chosen)
    found = multiply_grouped(queries, some.mT) if len(chosen) == 1 else queries @ some.mT
    torch.testing.assert_close(found, pick(whole, chosen))
