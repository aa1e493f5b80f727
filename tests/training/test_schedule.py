"""Learning rates, step by step beside those of transformers and of the paper."""

import math
from itertools import pairwise

import pytest
import torch

from regard.errors import ConfigError
from regard.training.schedule import KINDS, rate_at

transformers = pytest.importorskip("transformers")
SIZES = [(0, 13), (1, 9), (4, 17), (11, 11), (7, 5)]  # warm-up and all steps; the last never gets to its peak


def theirs(make, count, peak=0.37, **settings):
    """The rates that a scheduler of theirs sets in its first `count` steps."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=peak)
    scheduler = make(optimizer, **settings)
    rates = []
    for _ in range(count):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def ours(count, **settings):
    return [rate_at(step, peak=0.37, **settings) for step in range(count)]


@pytest.mark.parametrize(("warmup", "steps"), SIZES)
def test_linear_is_that_of_transformers_also_after_its_end(warmup, steps):
    settings = {"num_warmup_steps": warmup, "num_training_steps": steps}
    want = theirs(transformers.get_linear_schedule_with_warmup, steps + 6, **settings)
    assert ours(steps + 6, kind="linear", warmup=warmup, steps=steps) == pytest.approx(want, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("warmup", "steps"), SIZES)
def test_cosine_is_that_of_transformers_up_to_its_end_and_stays_there(warmup, steps):
    settings = {"num_warmup_steps": warmup, "num_training_steps": steps}
    want = theirs(transformers.get_cosine_schedule_with_warmup, steps, **settings)
    assert ours(steps, kind="cosine", warmup=warmup, steps=steps) == pytest.approx(want, rel=1e-12, abs=1e-15)
    if warmup < steps:  # theirs would rise again
        assert ours(steps + 5, kind="cosine", warmup=warmup, steps=steps)[steps:] == [0.0] * 5


@pytest.mark.parametrize("warmup", [0, 1, 6])
def test_inverse_square_root_is_that_of_transformers(warmup):
    want = theirs(transformers.get_inverse_sqrt_schedule, 40, num_warmup_steps=warmup)
    assert ours(40, kind="inverse_sqrt", warmup=warmup) == pytest.approx(want, rel=1e-12)


def test_inverse_square_root_is_that_of_the_paper():
    width, warmup = 512, 4000  # Vaswani et al. 2017, §5.3, equation 3
    peak = width**-0.5 * warmup**-0.5
    for step in (1, 17, 3999, 4000, 4001, 25_000, 300_000):
        want = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
        found = rate_at(step, kind="inverse_sqrt", peak=peak, warmup=warmup, steps=100_000)
        assert math.isclose(found, want, rel_tol=1e-12)


@pytest.mark.parametrize("warmup", [0, 5])
def test_constant_is_that_of_transformers(warmup):
    want = theirs(transformers.get_constant_schedule_with_warmup, 14, num_warmup_steps=warmup)
    assert ours(14, kind="constant", warmup=warmup) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rate_begins_at_nothing_reaches_its_peak_and_never_falls_below_its_floor(kind):
    rates = [rate_at(step, kind=kind, peak=3.0, warmup=5, steps=31, floor=0.25) for step in range(60)]
    assert rates[0] == 0.0
    assert max(rates) == rates[5] == 3.0
    assert all(low < high for low, high in pairwise(rates[:6]))
    assert all(high >= low for high, low in pairwise(rates[5:]))
    assert min(rates[5:]) >= 0.25
    if kind in ("linear", "cosine"):
        assert rates[31:] == [0.25] * 29


def test_a_floor_is_mixed_in_as_a_line_between_it_and_the_peak():
    low = [rate_at(step, kind="linear", peak=1.0, warmup=2, steps=12, floor=0.0) for step in range(2, 14)]
    high = [rate_at(step, kind="linear", peak=1.0, warmup=2, steps=12, floor=0.4) for step in range(2, 14)]
    assert high == pytest.approx([0.4 + 0.6 * rate for rate in low])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": "linaer"}, "did you mean 'linear'"),
        ({"kind": "inverse_square_rot"}, "did you mean 'inverse_sqrt'"),
        ({"kind": "xyz"}, "choose one of 'linear', 'cosine'"),
        ({"step": -1}, "give 0 or more"),
        ({"warmup": -3}, "give 0 or more"),
        ({"steps": None}, "say in how many steps"),
        ({"steps": 0, "kind": "cosine"}, "a cosine schedule ends, but steps=0 came"),
        ({"peak": 0.0}, "a number above 0"),
        ({"peak": math.inf}, "a number above 0"),
        ({"floor": -0.1}, "a number from 0 to its peak"),
        ({"floor": 2}, "a number from 0 to its peak, 1"),
    ],
)
def test_what_is_no_schedule_is_refused(changed, words):
    settings = {"step": 3, "kind": "linear", "peak": 1.0, "warmup": 2, "steps": 10} | changed
    with pytest.raises(ConfigError, match=words):
        rate_at(settings.pop("step"), **settings)
