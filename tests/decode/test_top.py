"""The highest of long rows."""

import pytest
import torch

from regard.decode.top import CHUNK, find_top, find_top_by_chunks


@pytest.mark.parametrize("n", [5, CHUNK, 5 * CHUNK, 23 * CHUNK + 7, 40 * CHUNK - 1])
@pytest.mark.parametrize("k", [1, 4, 11])
def test_the_highest_are_those_of_topk(n, k):
    x = torch.randn(6, n, dtype=torch.float64)
    values, ids, tied = find_top(x, k)
    assert torch.equal(values, x.topk(min(k, n)).values)
    assert torch.equal(ids, x.topk(min(k, n)).indices)
    assert not tied
    if n > (k + 1) * CHUNK:
        assert torch.equal(find_top_by_chunks(x, k)[1], ids)


@pytest.mark.parametrize("n", [31, 30 * CHUNK + 3])
def test_equal_values_are_told_and_exactly_ordered_by_id(n):
    x = torch.randn(4, n).clamp(max=1.0)  # many share the highest
    assert find_top(x, 3).tied
    wanted = [sorted(range(n), key=lambda i, row=row: (-float(row[i]), i))[:3] for row in x]
    assert find_top(x, 3, exact=True).ids.tolist() == wanted


def test_a_tie_with_the_first_that_is_left_out_is_told_and_one_of_minus_infinity_is_not():
    x = torch.full((1, 50 * CHUNK), -torch.inf)
    x[0, [3, 900, 2000]] = torch.tensor([5.0, 4.0, 4.0])
    assert find_top(x, 2).tied
    assert not find_top(x, 1).tied
    x[0, 900] = 4.5
    assert not find_top(x, 8).tied


@pytest.mark.parametrize(("columns", "k"), [(37, 5), (640, 7), (1003, 4), (2000, 3), (6, 6)])
def test_exact_is_a_stable_sort_whichever_rows_tie(columns, k):
    draw = torch.Generator().manual_seed(columns)
    x = torch.randn(11, columns, generator=draw)
    x[::3] = (x[::3] * 4).round()  # full of ties
    x[4] = -torch.inf
    x[5, 2:] = -torch.inf
    x[7, columns // 2] = torch.nan
    values, ids = x.sort(dim=-1, descending=True, stable=True)
    found = find_top(x, k, exact=True)
    assert torch.equal(found.ids, ids[:, :k])
    assert torch.equal(found.values.nan_to_num(9e9), values[:, :k].nan_to_num(9e9))
    assert not found.tied
