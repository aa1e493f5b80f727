"""The walk over a map in small blocks, against softmax in float64."""

import threading

import pytest
import torch

import regard
from regard.attention.map.blocks import Scratch
from regard.attention.map.computed import Computed
from regard.views.explorer.answer import walk
from regard.views.explorer.answer.head_rows import HeadRows
from regard.views.explorer.answer.pyramid import cells_of
from tests.views.explorer.answer.cases import CASES, asked, close, draw, triangle

SOFT = [name for name in CASES if name not in ("stored", "implied", "stitched")]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Blocks of a few cells, so that every row goes over several."""
    monkeypatch.setattr(walk, "QUERIES", 4)
    monkeypatch.setattr(walk, "KEYS", 4)


def source_of(case, head=0):
    return case.layer.weights.source.pick((0, head))


@pytest.mark.parametrize("name", SOFT)
def test_the_sums_of_rows_are_known_after_the_walk(name):
    case = CASES[name]()
    lines = HeadRows(source_of(case))
    assert lines.soft
    cells_of(lines, slice(0, lines.q), slice(0, lines.k), 2)
    scores = case.scores[0, 0].masked_fill(~case.allowed[0, 0], -torch.inf)
    log = scores.logsumexp(-1)
    if case.sink is not None:
        log = torch.logaddexp(log, case.sink[0])
    sees = case.allowed[0, 0].any(-1)
    found = lines.top.double() + lines.total.double().log()
    assert torch.allclose(found[sees], log[sees], atol=1e-4)
    assert found[~sees].isposinf().all()  # by which everything that such a row might see becomes 0
    assert lines.known.all()


def test_half_of_the_cases_walk():
    assert len(SOFT) > len(CASES) / 2


@pytest.mark.parametrize("size", [2, 4, 8])
def test_on_all_cores_the_cells_are_the_same(size):
    case = asked(regard.causal(), triangle(61, 83), b=1, h=1, q=61, k=83)
    whole = (slice(0, 61), slice(0, 83), size)
    alone, together = (cells_of(HeadRows(source_of(case)), *whole, cores=cores) for cores in (False, True))
    for name in ("max", "sum", "open"):
        assert torch.equal(getattr(alone, name), getattr(together, name))
    assert float(alone.sum.sum()) == pytest.approx(61, abs=1e-4)


def test_what_a_helper_raises_is_raised():
    def broken(_):
        raise ValueError("no such strip")

    with pytest.raises(ValueError, match="no such strip"):
        walk.run_on_cores(broken, [slice(0, 1)])


def test_helpers_take_one_core_each_and_no_gradient():
    found = []
    walk.run_on_cores(lambda _: found.append((torch.get_num_threads(), torch.is_grad_enabled())), [slice(0, 1)] * 5)
    assert found == [(1, False)] * 5


def test_a_row_whose_largest_score_comes_last_leaves_nothing_of_the_others():
    q, k = torch.ones(3, 1), torch.tensor([[0.0], [1.0], [-900.0], [2.0], [3.0], [700.0], [701.0]])
    lines = HeadRows(Computed(q, k, regard.attention.mask.Sizes((), 3, 7)))
    found = cells_of(lines, slice(0, 3), slice(0, 7), 2)
    wanted = torch.softmax(k.double().T, -1).expand(3, -1)
    close(found.max[0].numpy(), torch.stack([wanted[0, :2].amax(), wanted[0, 2:4].amax(), *wanted[0, 5:7]]))
    assert torch.equal(lines.top, torch.full((3,), 701.0))


def test_a_row_that_is_pushed_down_everywhere_is_still_a_row():
    """Some models hide by adding the smallest number there is; where they hide all, softmax is even."""
    low = torch.finfo(torch.float32).min
    bias = torch.tensor([[0.0] * 6, [low] * 6])
    lines = HeadRows(Computed(torch.zeros(2, 3), draw(6, 3), regard.attention.mask.Sizes((), 2, 6), bias=bias))
    found = cells_of(lines, slice(0, 2), slice(0, 6), 2)
    close(found.sum.numpy(), torch.full((1, 3), 2 / 3))


def test_a_part_of_rows_that_nobody_walked_needs_all_that_they_see():
    case = asked(regard.causal(), triangle(23, 23), b=1, h=1, q=23, k=23)
    lines, rows = HeadRows(source_of(case)), slice(12, 16)
    most, total = walk.walk_cells(lines, rows, slice(4, 8), 2, Scratch())
    here = case.weights[0, 0, 12:16, 4:8].view(2, 2, 2, 2)
    close(most.numpy(), here.amax((1, 3)))
    close(total.numpy(), here.sum((1, 3)))
    assert lines.known[rows].all()
    assert int(lines.known.sum()) == 4


def test_another_kind_of_map_or_single_weights_do_not_walk():
    assert not walk.can_walk(HeadRows(source_of(CASES["stored"]())), 8)
    assert not walk.can_walk(HeadRows(source_of(CASES["causal"]())), 1)
    assert walk.can_walk(HeadRows(source_of(CASES["causal"]())), 2)


def test_two_may_walk_at_once():
    case = asked(regard.causal(), triangle(40, 40), b=1, h=3, q=40, k=40)
    found = {}

    def work(head):
        found[head] = cells_of(HeadRows(source_of(case, head)), slice(0, 40), slice(0, 40), 4, cores=True)

    threads = [threading.Thread(target=work, args=(head,)) for head in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for head in range(3):
        close(found[head].max.numpy(), case.weights[0, head].view(10, 4, 10, 4).amax((1, 3)))
