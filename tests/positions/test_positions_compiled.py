"""Positions under torch.compile and torch.export; run without the type hook."""

import pytest
import torch
from torch.testing import assert_close

from regard.positions import ALiBi, Buckets, Learned, Rotary, Sinusoid, YarnScaling

pytestmark = pytest.mark.compiled


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_rotary_compiles_whole_for_any_length(layout):
    turn = Rotary(8, layout=layout, rotated=6, scaling=YarnScaling(factor=4, original=100))
    compiled = torch.compile(turn, fullgraph=True, dynamic=True)
    for t in (5, 7, 300):
        x = torch.randn(2, 3, t, 8)
        rows = torch.randint(0, 5000, (2, t))
        assert_close(compiled(x), turn(x))
        assert_close(compiled(x, 11), turn(x, 11))
        assert_close(compiled(x, rows), turn(x, rows))


def test_rotary_compiles_in_bfloat16_and_gives_gradients():
    turn = Rotary(8).bfloat16()
    compiled = torch.compile(turn, fullgraph=True)
    x = torch.randn(2, 3, 5, 8, dtype=torch.bfloat16, requires_grad=True)
    assert_close(compiled(x, 100_000), turn(x, 100_000))
    (ours,) = torch.autograd.grad(compiled(x).float().square().sum(), x)
    (theirs,) = torch.autograd.grad(turn(x).float().square().sum(), x)
    assert_close(ours, theirs)


def test_decoding_does_not_compile_again_at_every_step(count):
    turn, where, table = Rotary(8), Sinusoid(8), Learned(64, 8)
    step = torch.compile(lambda x, at: turn(where(table(x, at), at), at), fullgraph=True, backend=count)
    x = torch.randn(3, 1, 8)
    for at in range(40):
        assert_close(step(x, at), turn(where(table(x, at), at), at))
    assert count.graphs <= 4  # 0, 1 and any other number


def test_positions_in_a_tensor_never_compile_again(count):
    turn, where, table = Rotary(8), Sinusoid(8), Learned(64, 8)
    step = torch.compile(lambda x, at: turn(where(table(x, at), at), at), fullgraph=True, backend=count)
    x = torch.randn(2, 1, 8)
    for at in range(40):
        rows = torch.tensor([[at], [at + 3]])
        assert_close(step(x, rows), turn(where(table(x, rows), rows), rows))
    assert count.graphs == 1


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_transforms_compile_whole(layout):
    turn = Rotary(8, layout=layout)
    x, rows = torch.randn(2, 3, 5, 8), torch.randint(0, 5000, (2, 5))
    step = torch.compile(torch.vmap(turn), fullgraph=True, backend="aot_eager")
    assert_close(step(x), turn(x))
    assert_close(step(x, rows), turn(x, rows))
    slope = torch.compile(torch.func.grad(lambda x: turn(x).square().sum()), fullgraph=True, backend="aot_eager")
    assert_close(slope(x), 2 * x)  # turning keeps lengths


def test_compiled_sines_are_made_once_and_not_for_every_head():
    from torch._inductor.utils import run_and_get_code

    turn, x = Rotary(64), torch.randn(4, 16, 256, 64)
    found, (code,) = run_and_get_code(torch.compile(turn, fullgraph=True), x)
    assert_close(found, turn(x))
    making = ["cos(" in loop for loop in code.split("for(int64_t x0=")[1:]]
    assert any(making)
    assert not making[-1]  # the loop that turns x reads the table


def test_compiling_keeps_no_table():
    turn, where = Rotary(8), Sinusoid(8)
    torch.compile(lambda x: turn(where(x)), fullgraph=True, backend="eager")(torch.randn(5, 8))
    assert not turn._kept
    assert not where._kept


def test_sinusoid_and_learned_compile_whole_for_any_length():
    for where in (Sinusoid(7), Learned(400, 7)):
        compiled = torch.compile(where, fullgraph=True, dynamic=True, backend="aot_eager")
        for t in (4, 9):
            x = torch.randn(2, t, 7)
            rows = torch.randint(0, 400, (2, t))
            assert_close(compiled(x), where(x))
            assert_close(compiled(x, 13), where(x, 13))
            assert_close(compiled(x, rows), where(x, rows))


def test_biases_compile_whole_for_any_length():
    for bias in (ALiBi(3), ALiBi(3, learned=True), Buckets(3), Buckets(3, both_ways=False)):
        compiled = torch.compile(bias.block, fullgraph=True, dynamic=True, backend="aot_eager")
        for r, c in ((4, 9), (70, 200)):
            queries, keys = torch.arange(c - r, c), torch.arange(c)
            assert_close(compiled(queries, keys), bias.block(queries, keys))
            of = torch.tensor([2, 0])
            assert_close(compiled(queries, keys, of), bias.block(queries, keys, of))


def test_positions_export_with_a_length_that_may_change():
    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.turn, self.where, self.bias = Rotary(8), Sinusoid(8), Buckets(3)

        def forward(self, x):
            at = torch.arange(x.shape[-2])
            return self.turn(self.where(x)), self.bias.block(at, at)

    both = Both()
    length = torch.export.Dim("length", min=2, max=4096)
    program = torch.export.export(both, (torch.randn(2, 5, 8),), dynamic_shapes=({1: length},))
    x = torch.randn(2, 33, 8)
    assert_close(program.module()(x), both(x))
