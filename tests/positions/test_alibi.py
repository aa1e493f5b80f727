import copy
import math
import pickle

import pytest
import torch
from matplotlib.figure import Figure
from torch.autograd import gradcheck
from torch.testing import assert_close
from transformers.models.bloom.modeling_bloom import build_alibi_tensor

from regard.attention.score.bias import Bias
from regard.positions import ALiBi
from regard.positions.alibi import slopes_of


def slopes_of_the_authors(n):
    """`get_slopes` of ofirpress/attention_with_linear_biases, in its own words."""

    def of_power_of_two(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return of_power_of_two(n)
    closest = 2 ** math.floor(math.log2(n))
    return of_power_of_two(closest) + slopes_of_the_authors(2 * closest)[0::2][: n - closest]


def test_slopes_of_eight_and_sixteen_heads_are_those_in_the_paper():
    assert slopes_of(8) == tuple(1 / 2**h for h in range(1, 9))
    assert slopes_of(16)[::2] == pytest.approx([1 / 2 ** (h + 0.5) for h in range(8)], rel=1e-15)
    assert slopes_of(16)[1::2] == tuple(1 / 2**h for h in range(1, 9))


def test_slopes_of_twelve_heads_are_those_of_eight_and_every_other_of_sixteen():
    assert slopes_of(12) == (*slopes_of(8), *slopes_of(16)[0:8:2])
    between = [0.7071067811865476, 0.35355339059327379, 0.17677669529663689, 0.08838834764831845]
    assert slopes_of(12)[8:] == pytest.approx(between, rel=1e-15)


@pytest.mark.parametrize("heads", [*range(1, 41), 63, 64, 65, 112, 128])
def test_slopes_of_any_number_of_heads_equal_the_authors(heads):
    assert len(slopes_of(heads)) == heads
    assert slopes_of(heads) == pytest.approx(slopes_of_the_authors(heads), rel=1e-13)


@pytest.mark.parametrize("heads", [1, 2, 3, 8, 12, 13])
def test_block_equals_bloom_up_to_a_constant_per_row(heads):
    at = torch.arange(7)
    ours = ALiBi(heads).block(at, at)
    theirs = build_alibi_tensor(torch.ones(1, 7), heads, torch.float32)  # h 1 k, slope · j
    constant = ALiBi(heads).slopes[:, None, None] * at[:, None]
    looked_at = torch.ones(7, 7, dtype=torch.bool).tril()
    assert_close((ours + constant)[:, looked_at], theirs.expand(-1, 7, -1)[:, looked_at])


def test_block_is_the_formula_in_loops_for_any_positions_and_heads():
    queries, keys, of = (
        torch.tensor([9, 4, 100_000]),
        torch.tensor([0, 9, 3, 99_991, 12]),
        torch.tensor([4, 0]),
    )
    found = ALiBi(6).block(queries, keys, of)
    wanted = torch.empty(2, 3, 5, dtype=torch.float64)
    for g, h in enumerate((4, 0)):
        for r, i in enumerate(queries.tolist()):
            for c, j in enumerate(keys.tolist()):
                wanted[g, r, c] = -slopes_of(6)[h] * abs(i - j)
    assert found.dtype == torch.float32
    assert_close(found, wanted.float())
    assert_close(ALiBi(6).block(queries, keys)[of], found)
    assert ALiBi(6).block(queries[:0], keys).shape == (6, 0, 5)


def test_block_looks_the_same_in_both_directions():
    at = torch.arange(9)
    whole = ALiBi(5).block(at, at)
    assert torch.equal(whole, whole.mT)
    assert torch.equal(ALiBi(5).block(at[6:], at), whole[:, 6:])  # queries that continue a cache


def test_casting_the_module_does_not_round_fixed_slopes():
    at = torch.arange(5)
    alibi = ALiBi(12)
    assert alibi.state_dict() == {}
    assert torch.equal(ALiBi(12).half().block(at, at), alibi.block(at, at))
    assert torch.equal(alibi.slopes, torch.tensor(slopes_of(12), dtype=torch.float64).float())


def test_learned_slopes_start_where_the_fixed_ones_stand():
    at = torch.arange(5)
    learned = ALiBi(12, learned=True)
    assert [name for name, _ in learned.named_parameters()] == ["weight"]
    assert torch.equal(learned.block(at, at), ALiBi(12).block(at, at))
    far = ALiBi(12, learned=True).bfloat16().block(torch.tensor([4099]), torch.tensor([0]))
    assert far.dtype == torch.float32  # 4099 itself is not a bfloat16
    assert_close(far[:, 0, 0], -4099 * torch.tensor(slopes_of(12)).bfloat16().float())


def test_gradients_of_learned_slopes_are_those_of_finite_differences():
    alibi = ALiBi(3, learned=True).double()
    queries, keys = torch.arange(2, 4), torch.arange(5)
    for of in (None, torch.tensor([2, 0])):
        assert gradcheck(lambda _, of=of: alibi.block(queries, keys, of), (alibi.weight,))
    alibi.block(queries, keys).sum().backward()
    distances = sum(abs(i - j) for i in range(2, 4) for j in range(5))
    assert_close(alibi.weight.grad, torch.full((3,), -float(distances), dtype=torch.float64))


def test_alibi_is_a_bias_and_copies_work():
    at = torch.arange(4)
    for alibi in (ALiBi(5), ALiBi(5, learned=True)):
        assert isinstance(alibi, Bias)
        assert alibi.heads == 5
        for again in (copy.deepcopy(alibi), pickle.loads(pickle.dumps(alibi))):
            assert torch.equal(again.block(at, at), alibi.block(at, at))


def test_default_dtype_does_not_matter():
    at = torch.arange(4)
    wanted = ALiBi(5).block(at, at)
    try:
        torch.set_default_dtype(torch.float64)
        found = ALiBi(5).block(at, at)
        assert ALiBi(5, learned=True).block(at, at).dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(found, wanted)


def test_zero_heads_are_refused():
    with pytest.raises(ValueError, match="heads 0 came; wanted at least 1"):
        ALiBi(0)


def test_drawing_shows_one_head_queries_by_keys(monkeypatch, tmp_path):
    import regard.views.static.figure as figure

    shown, real = {}, figure.heatmap
    monkeypatch.setattr(
        figure, "heatmap", lambda values, **kw: (shown.update(kw, values=values), real(values, **kw))[1]
    )
    assert isinstance(ALiBi(8, learned=True).draw(length=6, to=tmp_path / "bias.svg", head=1), Figure)
    assert (tmp_path / "bias.svg").stat().st_size > 0
    assert shown["values"].shape == (6, 6)
    assert float(shown["values"][5, 2]) == -0.75
