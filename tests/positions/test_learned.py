import copy
import pickle

import pytest
import torch
from matplotlib.figure import Figure
from torch import nn
from torch.autograd import gradcheck
from torch.testing import assert_close

from regard.errors import PositionError, ShapeError
from regard.positions import Learned


def test_learned_equals_an_embedding_of_the_positions():
    where, table = Learned(11, 6), nn.Embedding(11, 6)
    with torch.no_grad():
        table.weight.copy_(where.weight)
    x = torch.randn(2, 4, 6)
    rows = torch.tensor([[3, 1, 0, 9], [10, 10, 2, 7]])
    assert_close(where(x), x + table(torch.arange(4)))
    assert_close(where(x, 5), x + table(torch.arange(5, 9)))
    assert_close(where(x, rows[0]), x + table(rows[0]))
    assert_close(where(x, rows), x + table(rows))
    assert_close(where(x, rows.int()), x + table(rows))
    assert_close(where(x[0]), x[0] + table(torch.arange(4)))
    assert where(x[:, :0]).shape == (2, 0, 6)


def test_the_table_starts_small_and_is_the_whole_state():
    where = Learned(400, 100)
    assert where.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert {name: tuple(each.shape) for name, each in where.state_dict().items()} == {"weight": (400, 100)}
    other = Learned(400, 100)
    other.load_state_dict(where.state_dict())
    for again in (other, copy.deepcopy(where), pickle.loads(pickle.dumps(where))):
        assert torch.equal(again.weight, where.weight)


def test_what_comes_out_has_the_dtype_of_x():
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        x = torch.randn(4, 6).to(dtype)
        where = Learned(11, 6)
        assert where(x).dtype == dtype
        assert_close(where(x), (x.double() + where.weight[:4].double()).to(dtype))


@pytest.mark.parametrize("positions", [None, 3, torch.tensor([[0, 4, 4], [1, 6, 2]])], ids=["none", "int", "rows"])
def test_gradients_are_those_of_finite_differences(positions):
    where = Learned(7, 2).double()
    x = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x, _: where(x, positions), (x, where.weight))


def test_positions_beyond_the_table_are_refused_with_advice():
    where, x = Learned(11, 6), torch.zeros(2, 4, 6)
    far = (
        r"positions 8 to 11 came, this table knows 0 to 10; "
        r"shorten the input or build Learned\(length=12, width=6\)"
    )
    with pytest.raises(PositionError, match=far):
        where(x, 8)
    with pytest.raises(PositionError, match=far):
        where(x, torch.arange(8, 12))
    with pytest.raises(PositionError, match="positions 0 to 11 came"):
        where(torch.zeros(12, 6))
    with pytest.raises(PositionError, match=r"positions -1 to 2 came.*count positions from 0"):
        where(x, -1)
    with pytest.raises(PositionError, match="positions -1 to 3 came"):
        where(x, torch.tensor([[0, 1, 2, 3], [-1, 0, 1, 2]]))


def test_transforms_fake_and_meta_tensors_are_not_looked_into():
    from torch._subclasses.fake_tensor import FakeTensorMode

    where, x = Learned(11, 6), torch.randn(2, 4, 6)
    rows = torch.tensor([[3, 1, 0, 9], [10, 10, 2, 7]])
    assert_close(torch.vmap(where)(x, rows), where(x, rows))
    with FakeTensorMode() as mode:
        assert Learned(11, 6)(mode.from_tensor(x), mode.from_tensor(rows)).shape == (2, 4, 6)
    assert where.to("meta")(x.to("meta"), rows.to("meta")).shape == (2, 4, 6)


def test_other_sizes_are_refused_with_advice():
    with pytest.raises(ShapeError, match=r"ends in 5 channels, this table has 6; build Learned\(length=11, width=5\)"):
        Learned(11, 6)(torch.zeros(4, 5))
    with pytest.raises(ValueError, match="a table of 0 positions by 6 channels came"):
        Learned(0, 6)


def test_drawing_shows_positions_by_channels(monkeypatch, tmp_path):
    import regard.views.static.figure as figure

    shown, real = {}, figure.heatmap
    monkeypatch.setattr(
        figure, "heatmap", lambda values, **kw: (shown.update(kw, values=values), real(values, **kw))[1]
    )
    where = Learned(11, 6)
    assert isinstance(where.draw(to=tmp_path / "table.svg"), Figure)
    assert (shown["rows"], shown["columns"]) == ("positions", "channels")
    assert_close(shown["values"], where.weight.detach())
    where.draw(length=3)
    assert shown["values"].shape == (3, 6)
