import copy
import io
import math
import pickle

import pytest
import torch
from matplotlib.figure import Figure
from torch.autograd import gradcheck
from torch.testing import assert_close
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as turn_like_gptj
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as turn_like_llama

from regard.errors import ShapeError
from regard.positions import (
    LinearScaling,
    NTKScaling,
    Rotary,
    YarnScaling,
    half_to_interleaved,
    interleaved_to_half,
)

LAYOUTS = ("half", "interleaved")


def some(*shape, dtype=torch.float64):
    """Every size is different, so a swapped axis cannot pass."""
    return torch.randn(shape or (2, 3, 5, 8), dtype=dtype, generator=torch.Generator().manual_seed(1))


def by_loops(x, positions, *, base=10000.0, layout="half", rotated=None):
    """Su et al. 2021, eq. 34, one number at a time; x is (b, h, t, d), positions (b, t)."""
    out, d = x.clone(), rotated or x.shape[-1]
    for b in range(x.shape[0]):
        for h in range(x.shape[1]):
            for t in range(x.shape[2]):
                for i in range(d // 2):
                    first, second = (i, i + d // 2) if layout == "half" else (2 * i, 2 * i + 1)
                    angle = int(positions[b][t]) * base ** (-2 * i / d)
                    one, two = float(x[b, h, t, first]), float(x[b, h, t, second])
                    out[b, h, t, first] = one * math.cos(angle) - two * math.sin(angle)
                    out[b, h, t, second] = one * math.sin(angle) + two * math.cos(angle)
    return out


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rotated", [None, 4, 2])
def test_rotary_is_the_formula_of_the_paper_in_loops(layout, rotated):
    x = some()
    turn = Rotary(8, base=500.0, layout=layout, rotated=rotated)
    theirs = by_loops(x, [range(5)] * 2, base=500.0, layout=layout, rotated=rotated)
    assert_close(turn(x), theirs)


def test_half_layout_equals_llama():
    x = some(2, 3, 5, 8, dtype=torch.float32)
    angles = torch.arange(5.0)[:, None] * 10000.0 ** (-torch.arange(0, 8, 2) / 8)
    both = torch.cat((angles, angles), -1)[None]
    theirs, _ = turn_like_llama(x, x, both.cos(), both.sin())
    assert_close(Rotary(8)(x), theirs)


def test_interleaved_layout_equals_gptj():
    x = some(2, 3, 5, 8, dtype=torch.float32)
    angles = (torch.arange(5.0)[:, None] * 10000.0 ** (-torch.arange(0, 8, 2) / 8))[None]
    theirs = turn_like_gptj(x.transpose(1, 2), angles.sin(), angles.cos()).transpose(1, 2)
    assert_close(Rotary(8, layout="interleaved")(x), theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scaling", [None, YarnScaling(factor=4, original=2048)], ids=["plain", "yarn"])
def test_scores_depend_on_the_difference_of_positions_alone_even_far_away(layout, scaling):
    q, k = (torch.nn.functional.normalize(some(3, 1, 64, dtype=torch.float32), dim=-1) for _ in range(2))
    k = k.roll(7, -1)
    turn = Rotary(64, layout=layout, scaling=scaling)
    near = turn(q, 37) @ turn(k, 0).mT
    for start in (1_000, 100_000):
        far = turn(q, start + 37) @ turn(k, start).mT
        assert_close(far, near, atol=1e-6, rtol=0)


def test_turning_keeps_lengths_and_position_zero_stays():
    x = some()
    turned = Rotary(8)(x)
    assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert_close(turned[..., 0, :], x[..., 0, :])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("offset", [0, 1, 127, 400, 20_000, 100_000])
def test_an_offset_is_a_slice_of_the_whole_and_a_tensor_says_the_same(layout, dtype, offset):
    x = some(3, 9, 8).to(dtype)
    long = torch.cat((torch.zeros(3, offset, 8, dtype=dtype), x), -2)
    turn = Rotary(8, layout=layout)
    whole = turn(long)[:, offset:]
    assert_close(Rotary(8, layout=layout)(x, offset), whole)
    assert_close(turn(x, offset), whole)
    assert_close(turn(x, torch.arange(9) + offset), whole)
    assert_close(torch.cat([turn(x[:, t : t + 1], offset + t) for t in range(9)], -2), whole)
    assert turn(x, offset).dtype == dtype


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("far", [0, 90_000])
def test_every_sequence_can_have_positions_of_its_own(layout, far):
    x = some()
    positions = torch.tensor([[0, 1, 2, 3, 4], [9, 7, 7, 0, 12]]) + far
    turn = Rotary(8, layout=layout)
    assert_close(turn(x, positions), by_loops(x, positions, layout=layout))
    assert_close(turn(x, positions[:, None]), turn(x, positions))
    assert_close(turn(x, positions.int()), turn(x, positions))
    assert_close(turn(x[:, 0], positions), turn(x, positions)[:, 0])
    assert_close(turn(x, positions[:1]), turn(x, positions[0]))
    deeper = x[None].expand(4, -1, -1, -1, -1)
    assert_close(turn(deeper, positions.expand(4, -1, -1)), turn(x, positions).expand(4, -1, -1, -1, -1))


def test_positions_may_be_negative():
    x = some(2, 3, 5, 8)
    positions = torch.tensor([[-3, -2, -1, 0, 1]]).expand(2, -1)
    turn = Rotary(8)
    assert_close(turn(x, positions), by_loops(x, positions))
    assert_close(turn(x, -3), by_loops(x, positions))


def test_unbatched_and_empty_inputs_work():
    x, turn = some(), Rotary(8)
    assert_close(turn(x[0]), turn(x)[0])
    assert_close(turn(x[0, 0]), turn(x)[0, 0])
    assert_close(turn(x[0, 0], torch.arange(5)), turn(x)[0, 0])
    assert turn(x[:, :, :0]).shape == (2, 3, 0, 8)
    assert turn(x[:0]).shape == (0, 3, 5, 8)
    assert turn(x[:, :, :0], torch.zeros(2, 0, dtype=torch.long)).shape == (2, 3, 0, 8)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides_do_not_matter_and_nothing_is_written_into_x(layout):
    turn = Rotary(8, layout=layout, rotated=4)
    x = some()
    kept = x.clone()
    strided = x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    assert_close(turn(strided), turn(x))
    assert_close(turn(x[:, :1].expand(-1, 3, -1, -1)), turn(x)[:, :1].expand(-1, 3, -1, -1))
    assert torch.equal(x, kept)


def test_untouched_channels_pass_bit_for_bit():
    x = some(2, 3, 5, 7).bfloat16()
    assert torch.equal(Rotary(7, rotated=4)(x)[..., 4:], x[..., 4:])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_casting_the_module_does_not_change_its_tables(dtype):
    x = some(3, 5, 8, dtype=torch.float32)
    turn = Rotary(8)
    wanted = turn(x, 700)
    assert torch.equal(turn.to(dtype)(x, 700), wanted)
    assert torch.equal(Rotary(8).half()(x, 700), wanted)
    low = turn(x.to(dtype), 700)  # only the numbers that came and the answer are rounded
    assert_close(low.double(), Rotary(8)(x.to(dtype).double(), 700), rtol=torch.finfo(dtype).eps, atol=1e-7)


def test_cosines_in_float32_are_those_of_float64_rounded_once():
    ones = torch.tensor([[1.0] * 32 + [0.0] * 32])
    exact = [math.cos(99_991 * 10000.0 ** (-i / 32)) for i in range(32)]
    assert_close(Rotary(64)(ones, 99_991)[0, :32], torch.tensor(exact, dtype=torch.float32), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("rotated", [None, 6])
def test_layouts_are_equal_after_reordering_the_channels(rotated):
    x = some(2, 3, 5, 8)
    half, pairs = Rotary(8, rotated=rotated), Rotary(8, layout="interleaved", rotated=rotated)
    moved = half_to_interleaved(x, rotated=rotated)
    assert_close(pairs(moved), half_to_interleaved(half(x), rotated=rotated))
    assert torch.equal(interleaved_to_half(moved, rotated=rotated), x)


def test_reordered_projections_give_the_same_scores():
    h, d, m = 3, 8, 7
    x = some(5, m)
    to_q, to_k = some(h * d, m), some(h * d, m).flip(0)

    def scores(turn, q, k):
        q, k = ((x @ w.T).unflatten(-1, (h, d)).transpose(0, 1) for w in (q, k))
        return turn(q) @ turn(k).mT

    moved = [half_to_interleaved(w.unflatten(0, (h, d)), dim=1).flatten(0, 1) for w in (to_q, to_k)]
    assert_close(scores(Rotary(d, layout="interleaved"), *moved), scores(Rotary(d), to_q, to_k))


def test_magnitude_of_a_scaling_multiplies_what_turns():
    x = some()
    plain = Rotary(8, scaling=YarnScaling(factor=4, original=100, attention_factor=1.0))
    louder = Rotary(8, scaling=YarnScaling(factor=4, original=100, attention_factor=1.25))
    assert_close(louder(x), 1.25 * plain(x))


def test_linear_scaling_puts_positions_closer():
    x = some(3, 2, 8)
    assert_close(Rotary(8, scaling=LinearScaling(4))(x[:, :1], 20), Rotary(8)(x[:, :1], 5))


def test_ntk_scaling_is_a_larger_base():
    x = some()
    assert_close(Rotary(8, scaling=NTKScaling(4))(x, 50), Rotary(8, base=10000.0 * 4 ** (8 / 6))(x, 50))


def test_state_is_empty_and_tables_stay_behind_in_copies():
    turn = Rotary(8, layout="interleaved", rotated=4, scaling=NTKScaling(2))
    x = some()
    wanted = turn(x, 3)
    assert turn._kept
    assert turn.state_dict() == {}
    assert list(turn.buffers()) == list(turn.parameters()) == []
    for again in (copy.deepcopy(turn), pickle.loads(pickle.dumps(turn))):
        assert not again._kept
        assert again.extra_repr() == turn.extra_repr()
        assert_close(again(x, 3), wanted)
    assert turn._kept  # the copy took nothing away
    file = io.BytesIO()
    torch.save(turn, file)
    assert file.tell() < 10_000


def test_tables_double_and_one_far_position_does_not_fill_memory():
    turn = Rotary(8)
    sizes = set()
    for step in range(600):
        turn(some(1, 8, dtype=torch.float32), step)
        sizes |= {len(table[0]) for table in turn._kept.values()}
    assert sizes == {128, 256, 512, 1024}
    turn(some(1, 8, dtype=torch.float32), 1_000_000)
    turn(some(1, 8, dtype=torch.float32), torch.tensor([1_000_000]))
    assert {len(table[0]) for table in turn._kept.values()} == {1024}


def test_a_table_made_in_inference_mode_serves_training():
    turn = Rotary(8)
    with torch.inference_mode():
        turn(some())
    x = some().requires_grad_()
    turn(x).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_are_those_of_finite_differences(layout):
    turn = Rotary(6, layout=layout, rotated=4)
    x = some(2, 3, 6).requires_grad_()
    assert gradcheck(lambda x: turn(x, 3), (x,), check_forward_ad=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_transforms_see_the_same_numbers_and_leave_no_table_behind(layout):
    x, turn = some(), Rotary(8, layout=layout)
    wanted = Rotary(8, layout=layout)(x)
    assert_close(torch.vmap(turn)(x), wanted)
    assert_close(torch.vmap(turn, in_dims=1, out_dims=1)(x), wanted)
    positions = torch.tensor([[0, 1, 2, 3, 4], [9, 7, 7, 0, 12]])
    assert_close(torch.vmap(turn)(x, positions), Rotary(8, layout=layout)(x, positions))
    slope = torch.func.grad(lambda x: turn(x).square().sum())(x)
    assert_close(slope, 2 * x)  # turning keeps lengths
    assert not turn._kept


def test_fake_and_meta_tensors_get_shapes_and_leave_no_table_behind():
    from torch._subclasses.fake_tensor import FakeTensorMode

    turn, real = Rotary(8), some()
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert turn(torch.empty(2, 3, 5, 8)).shape == (2, 3, 5, 8)
        assert turn(real).shape == (2, 3, 5, 8)
        assert turn(torch.empty(2, 3, 5, 8), torch.zeros(2, 5, dtype=torch.long)).shape == (2, 3, 5, 8)
    meta = turn(torch.empty(2, 3, 5, 8, device="meta"), torch.zeros(2, 5, dtype=torch.long, device="meta"))
    assert meta.shape == (2, 3, 5, 8)
    assert meta.is_meta
    assert not turn._kept


def test_default_dtype_does_not_matter():
    x = some(3, 5, 8, dtype=torch.float32)
    wanted = Rotary(8)(x, 11)
    try:
        torch.set_default_dtype(torch.float64)
        found = Rotary(8)(x, 11)
        assert Rotary(8)(x, torch.arange(5)).dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(found, wanted)


def test_autocast_leaves_dtype_and_numbers_alone():
    x, turn = some(3, 5, 8, dtype=torch.float32), Rotary(8)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(turn(x, 9), Rotary(8)(x, 9))
        assert turn(x.bfloat16()).dtype == torch.bfloat16


def test_odd_numbers_of_channels_are_refused_with_advice():
    with pytest.raises(ShapeError, match="7 channels came to be turned, but they turn in pairs; make the width even"):
        Rotary(7)
    with pytest.raises(ShapeError, match=r"5 channels came .* give rotated=4"):
        Rotary(8, rotated=5)
    with pytest.raises(ShapeError, match="rotated=10 came for heads of width 8; give an even number from 2 to 8"):
        Rotary(8, rotated=10)
    with pytest.raises(ShapeError, match="even number from 2"):
        Rotary(8, rotated=0)
    with pytest.raises(ShapeError, match="5 of 5 channels came to be reordered"):
        half_to_interleaved(torch.zeros(5))


def test_other_layouts_are_refused_naming_the_two():
    with pytest.raises(ValueError, match=r'layout \'neox\' came; wanted "half" .* or "interleaved"'):
        Rotary(8, layout="neox")
    with pytest.raises(ValueError, match="base 1 came; wanted more than 1"):
        Rotary(8, base=1)


def test_another_width_is_refused_with_advice():
    with pytest.raises(ShapeError, match=r"heads of width 24, this Rotary turns heads of width 8; split the heads"):
        Rotary(8)(torch.zeros(2, 5, 24))


@pytest.mark.parametrize("shape", [(4,), (2, 4), (3, 5), (2, 2, 5), (1, 1, 1, 5), ()])
def test_positions_that_do_not_fit_are_refused_with_advice(shape):
    with pytest.raises(ShapeError, match=r"do not fit x of shape \(2, 3, 5, 8\); give \(5,\).* or \(2, 5\), one row"):
        Rotary(8)(some(), torch.zeros(shape, dtype=torch.long))


def test_a_row_per_sequence_is_never_taken_for_a_row_per_head():
    x = some(4, 3, 3, 5, 8)  # five axes: (3, 5) could mean the batch or the heads
    with pytest.raises(ShapeError, match=r"positions of shape \(3, 5\) do not fit"):
        Rotary(8)(x, torch.zeros(3, 5, dtype=torch.long))


def test_positions_must_be_whole_numbers():
    with pytest.raises(TypeError):  # ours, or that of the type hook
        Rotary(8)(some(), torch.arange(5.0))
    with pytest.raises(TypeError):
        Rotary(8)(some(), torch.ones(5, dtype=torch.bool))


def test_drawing_shows_cosines_of_positions_by_pairs(monkeypatch, tmp_path):
    import regard.views.static.figure as figure

    shown, real = {}, figure.heatmap
    monkeypatch.setattr(
        figure, "heatmap", lambda values, **kw: (shown.update(kw, values=values), real(values, **kw))[1]
    )
    drawn = Rotary(8, rotated=6).draw(length=11, to=tmp_path / "turn.svg")
    assert isinstance(drawn, Figure)
    assert (tmp_path / "turn.svg").stat().st_size > 0
    assert (shown["rows"], shown["columns"]) == ("positions", "pairs")
    assert shown["values"].shape == (11, 3)
    assert float(shown["values"][7, 1]) == pytest.approx(math.cos(7 * 10000 ** (-1 / 3)))
