"""Weight where nobody may look, against plain loops in float64 over the formula."""

import math

import numpy as np
import pytest
import torch

from regard.attention.map.map import AttentionMap
from regard.attention.mask.bits import Bits, pack
from regard.trace.record.even import WholeRows, even_softmax
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace
from regard.views.explorer.answer import Answers, pyramid
from tests.views.explorer.answer.cases import ask
from tests.views.explorer.held_traces import asked

Q, K, D = 11, 13, 5


def allowed_cells():
    found = np.random.default_rng(4).random((Q, K)) < 0.5
    found[[2, 3, 7]] = False  # rows that see nothing: even
    found[4:8, 4:8] = False  # a cell of four in which nothing may be looked at, and one row of it goes astray
    return found


def drawn():
    generator = np.random.default_rng(5)
    return generator.standard_normal((Q, D)), generator.standard_normal((K, D))


def looped():
    """The weights of even_softmax, number by number."""
    q, k = drawn()
    allowed, found = allowed_cells(), np.zeros((Q, K))
    for i in range(Q):
        scores = [sum(q[i, n] * k[j, n] for n in range(D)) / math.sqrt(D) for j in range(K)]
        seen = [j for j in range(K) if allowed[i, j]]
        for j in range(K):
            if not seen:
                found[i, j] = 1 / K
            elif allowed[i, j]:
                found[i, j] = math.exp(scores[j]) / sum(math.exp(scores[n]) for n in seen)
    return found


def cell(weights, allowed, rows, columns):
    """(largest, mean over what may be looked at; over all where that is nothing)."""
    places = [(i, j) for i in rows for j in columns]
    seen = [weights[at] for at in places if allowed[at]]
    every = [weights[at] for at in places]
    return max(every), sum(seen) / len(seen) if seen else sum(every) / len(every)


def trace_of(kind):
    q, k = (torch.from_numpy(one).float()[None, None] for one in drawn())
    allowed = torch.from_numpy(allowed_cells())[None, None]
    if kind == "even":
        weights = asked(q, k, mask=WholeRows(Bits(pack(allowed))), weigh=even_softmax)
    else:
        weights = AttentionMap.stored(torch.from_numpy(looped()).float()[None, None], mask=Bits(pack(allowed)))
    return Trace([Run([Layer(kind, "self", weights)])])


@pytest.mark.parametrize("kind", ["even", "stored"])
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("coarse", [False, True])
def test_the_mean_of_a_cell_is_over_what_may_be_looked_at(monkeypatch, kind, small, coarse):
    if small:
        monkeypatch.setattr(pyramid, "CELLS", 20)
    weights, allowed, compared = looped(), allowed_cells(), 0
    for level in range(5):
        size = 1 << level
        at = {"layer": 0, "batch": 0, "head": 0, "level": level, "row": 0, "column": 0, "coarse": coarse}
        facts, arrays = ask(Answers(trace_of(kind)), "tile", **at)  # a fresh one: of what it has walked it is exact
        assert bool(facts["sampled"]) == (coarse and level > 0)
        most, mean = (arrays[name].reshape(facts["rows"], facts["columns"]) for name in ("max", "mean"))
        for r in range(facts["rows"]):
            rows = list(range(r * size, min(Q, (r + 1) * size)))
            rows = [rows[len(rows) // 2]] if facts["sampled"] else rows
            for c in range(facts["columns"]):
                wanted = cell(weights, allowed, rows, range(c * size, min(K, (c + 1) * size)))
                assert (most[r, c], mean[r, c]) == pytest.approx(wanted, abs=1e-6)
                assert mean[r, c] <= most[r, c] + 1e-6
                compared += 1
    assert compared > 200
