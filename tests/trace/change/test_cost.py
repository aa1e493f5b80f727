"""Seconds and bytes of a computation."""

import torch

from regard.trace.change.cost import measure_cost, peak, seconds


def test_the_peak_is_what_was_held_at_once_beyond_what_came_out():
    x = torch.zeros(1000, dtype=torch.float64)

    def run():
        first = x + 1
        second = first * 2
        del first
        return second - 3

    assert 8000 <= peak(run) < 8100  # second beside the outcome: first had gone when that was made; and scalars


def test_a_matrix_of_weights_is_seen():
    q = torch.randn(1, 3, 70, 5)
    held = peak(lambda: (q @ q.mT).softmax(-1) @ q)
    assert held >= 2 * 3 * 70 * 70 * 4 - 3 * 70 * 5 * 4


def test_under_somebody_elses_profiler_bytes_are_unknown():
    with torch.autograd.profiler_legacy.profile():
        found = measure_cost(lambda: torch.ones(3) + 1)
    assert found.bytes is None
    assert found.seconds >= 0


def test_more_work_takes_longer():
    x = torch.randn(300, 300)

    def often(n):
        def run():
            for _ in range(n):
                x @ x
            return x

        return run

    assert min(seconds(often(40)) for _ in range(3)) > min(seconds(often(1)) for _ in range(3))
