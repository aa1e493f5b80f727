import copy
import math
import pickle

import pytest
import torch
from matplotlib.figure import Figure
from torch.testing import assert_close

from regard.errors import ShapeError
from regard.positions import Sinusoid


def by_loops(length, width, base=10000.0, first=0):
    """Vaswani et al. 2017, §3.5, one number at a time."""
    table = torch.empty(length, width, dtype=torch.float64)
    for p in range(length):
        for c in range(width):
            angle = (p + first) / base ** (2 * (c // 2) / width)
            table[p, c] = math.cos(angle) if c % 2 else math.sin(angle)
    return table


@pytest.mark.parametrize("width", [1, 2, 3, 8, 13])
@pytest.mark.parametrize("base", [10000.0, 50.0])
def test_table_is_the_formula_of_the_paper_in_loops_for_any_width(width, base):
    where = Sinusoid(width, base=base)
    assert_close(where.table(7, torch.float64), by_loops(7, width, base))
    x = torch.randn(2, 7, width, dtype=torch.float64)
    assert_close(where(x), x + by_loops(7, width, base))


def test_table_equals_that_of_pytorchs_own_tutorial():
    position, pe = torch.arange(40).unsqueeze(1), torch.zeros(40, 12)
    div_term = torch.exp(torch.arange(0, 12, 2) * (-math.log(10000.0) / 12))
    pe[:, 0::2], pe[:, 1::2] = torch.sin(position * div_term), torch.cos(position * div_term)
    assert_close(Sinusoid(12).table(40), pe)


def test_a_shift_is_the_same_linear_map_everywhere():
    """What the paper chose it for: PE(p + k) is a turned PE(p), whatever p."""
    table = Sinusoid(6).table(200, torch.float64).unflatten(-1, (3, 2))
    for i in range(3):
        angle = 11 / 10000.0 ** (2 * i / 6)
        turn = torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
        assert_close(table[:-11, i] @ turn.double().T, table[11:, i])


@pytest.mark.parametrize("first", [0, 3, 126, 1000, 100_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_an_offset_is_a_slice_of_the_whole_and_a_tensor_says_the_same(first, dtype):
    where, x = Sinusoid(5), torch.randn(2, 4, 5).to(dtype)
    wanted = (x.double() + by_loops(4, 5, first=first)).to(dtype)
    for found in (
        where(x, first),
        where(x, torch.arange(4) + first),
        where(x, torch.arange(4)[None] + first),
    ):
        assert found.dtype == dtype
        assert_close(found, wanted)


def test_every_sequence_can_have_positions_of_its_own():
    where, x = Sinusoid(5), torch.randn(2, 4, 5, dtype=torch.float64)
    positions = torch.tensor([[3, 1, 0, 9], [-2, 70_000, 5, 5]])
    found = where(x, positions)
    for b in range(2):
        for t in range(4):
            assert_close(found[b, t], x[b, t] + by_loops(1, 5, first=int(positions[b, t]))[0])


def test_unbatched_and_empty_inputs_work():
    where, x = Sinusoid(5), torch.randn(4, 5)
    assert_close(where(x), where(x[None])[0])
    assert where(x[:0]).shape == (0, 5)


def test_casting_the_module_does_not_change_its_table():
    x = torch.randn(4, 6)
    assert torch.equal(Sinusoid(6).bfloat16()(x, 900), Sinusoid(6)(x, 900))
    assert Sinusoid(6).table(3, torch.bfloat16).dtype == torch.bfloat16


def test_state_is_empty_and_copies_work():
    where, x = Sinusoid(6), torch.randn(4, 6)
    wanted = where(x, 2)
    assert where.state_dict() == {}
    for again in (copy.deepcopy(where), pickle.loads(pickle.dumps(where))):
        assert not again._kept
        assert torch.equal(again(x, 2), wanted)


def test_gradients_pass_through_unchanged_and_x_is_not_written():
    x = torch.randn(4, 6, requires_grad=True)
    kept = x.detach().clone()
    Sinusoid(6)(x).sum().backward()
    assert torch.equal(x.grad, torch.ones(4, 6))
    assert torch.equal(x, kept)


def test_transforms_and_fake_tensors_leave_no_table_behind():
    from torch._subclasses.fake_tensor import FakeTensorMode

    where, x = Sinusoid(6), torch.randn(3, 4, 6)
    assert_close(torch.vmap(where)(x), Sinusoid(6)(x))
    with FakeTensorMode():
        assert where(torch.empty(3, 4, 6)).shape == (3, 4, 6)
    assert not where._kept


def test_default_dtype_does_not_matter():
    x = torch.randn(4, 6)
    wanted = Sinusoid(6)(x, 5)
    try:
        torch.set_default_dtype(torch.float64)
        found = Sinusoid(6)(x, 5)
        assert Sinusoid(6).table(3).dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(found, wanted)


def test_what_does_not_fit_is_refused_with_advice():
    with pytest.raises(ShapeError, match=r"ends in 7 channels, this Sinusoid adds 6; build it with Sinusoid\(7\)"):
        Sinusoid(6)(torch.zeros(4, 7))
    with pytest.raises(ShapeError, match=r"shape \(3,\) do not fit x of shape \(2, 4, 6\); give \(4,\).* or \(2, 4\)"):
        Sinusoid(6)(torch.zeros(2, 4, 6), torch.arange(3))
    with pytest.raises(ShapeError, match=r"shape \(3, 4\) do not fit"):
        Sinusoid(6)(torch.zeros(2, 4, 6), torch.zeros(3, 4, dtype=torch.long))
    with pytest.raises(ValueError, match="wanted a width of at least 1"):
        Sinusoid(0)


def test_drawing_shows_positions_by_channels(monkeypatch, tmp_path):
    import regard.views.static.figure as figure

    shown, real = {}, figure.heatmap
    monkeypatch.setattr(
        figure, "heatmap", lambda values, **kw: (shown.update(kw, values=values), real(values, **kw))[1]
    )
    assert isinstance(Sinusoid(5).draw(length=9, to=tmp_path / "waves.png"), Figure)
    assert (tmp_path / "waves.png").stat().st_size > 0
    assert (shown["rows"], shown["columns"]) == ("positions", "channels")
    assert_close(shown["values"].double(), by_loops(9, 5), rtol=1e-6, atol=1e-7)
