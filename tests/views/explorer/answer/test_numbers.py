"""Every number of a computation, against the formula in float64."""

import numpy as np
import pytest
import torch

from regard.attention.map.stitched import StitchedSource
from regard.views.explorer.answer import Answers, numbers
from tests.views.explorer.answer.cases import CASES, ask, close
from tests.views.explorer.answer.test_tiles import near


@pytest.fixture(params=["all", "around"])
def small(request, monkeypatch):
    if request.param == "around":
        monkeypatch.setattr(numbers, "SMALL", 0)
        monkeypatch.setattr(numbers, "SHOWN", 4)
    return request.param == "all"


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_are_those_of_the_formula(name, small):
    case = CASES[name]()
    b, h, q, k = case.weights.shape
    query, key = q - 2, 1
    facts, found = ask(Answers(case.trace), "numbers", layer=0, batch=b - 1, head=h - 1, query=query, key=key)
    rows, columns = torch.from_numpy(found["rows"]).long(), torch.from_numpy(found["columns"]).long()
    if small:
        assert (rows.tolist(), columns.tolist()) == (list(range(q)), list(range(k)))
    else:
        strongest = case.layer.weights[b - 1, h - 1].top(4)[1][query]
        assert rows.tolist() == [query]
        assert columns.tolist() == sorted({key, *strongest[strongest >= 0].tolist()})
    whole, allowed = case.weights[-1, -1][rows], case.allowed[-1, -1][rows]
    close(found["weights"], whole[:, columns], near(case))
    assert np.array_equal(found["allowed"], allowed[:, columns].numpy())
    others = [j for j in range(k) if j not in columns.tolist()]
    close(found["rest"], whole[:, others].sum(-1), near(case))
    if case.scores is None:
        assert not {"q", "k", "dot", "scores", "highest", "total", "bias", "sink"} & set(found)
        return
    scores = case.scores[-1, -1][rows]
    close(found["scores"], scores[:, columns], near(case))
    seen = scores.masked_fill(~allowed, -torch.inf)
    highest = seen.amax(-1)
    close(found["highest"], highest, near(case))
    total = (seen - highest[:, None].nan_to_num(neginf=0.0)).exp().sum(-1)
    if case.sink is not None:
        close(found["sink"], case.sink[-1].expand(len(rows)))
        total = total + (case.sink[-1] - highest).exp()
    assert ("sink" in found) == (case.sink is not None)
    close(found["total"], total, near(case))
    close(found["q"], case.layer.q[-1, -1][rows].double())
    keys = case.layer.k[-1, -1].double()
    close(found["k"], keys[columns])
    dot = case.layer.q[-1, -1][rows].double() @ keys[columns].T
    met = ~case.scores[-1, -1][rows][:, columns].isnan()
    close(found["dot"], dot.masked_fill(~met, torch.nan), near(case))
    assert ("bias" in found) == (case.bias is not None)
    if case.bias is not None:
        close(found["bias"], case.bias[-1, -1][rows][:, columns])
    assert facts["d"] == case.layer.q.shape[-1]
    values = case.layer.v[-1, -1].double()
    close(found["v"], values[columns])
    close(found["mix"], whole @ values, near(case))
    assert facts["e"] == values.shape[-1]


@pytest.mark.parametrize(
    "name", ["causal", "padded", "grouped", "sinks and softcap", "alibi", "generated", "translated"]
)
def test_what_the_kernel_gave_stands_beside_the_mix_of_the_rows_that_were_copied(name):
    case = CASES[name]()
    b, h, q, _ = case.weights.shape
    answers, copied = Answers(case.trace), 0
    for query in range(q):
        _, found = ask(answers, "numbers", layer=0, batch=b - 1, head=h - 1, query=query, key=0)
        assert ("kernel" in found) == (query in case.layer.seen.rows)
        if "kernel" in found:
            row = found["rows"].tolist().index(query)
            close(found["kernel"], torch.from_numpy(found["mix"][row]), 1e-5)
            copied += 1
    assert copied >= 1


def test_a_kernel_that_dropped_weights_is_not_shown():
    case = CASES["causal"]()
    case.layer.seen.dropout = 0.1
    assert "kernel" not in ask(Answers(case.trace), "numbers", layer=0, batch=0, head=0, query=0, key=0)[1]


def test_scale_and_softcap_are_told():
    facts, _ = ask(Answers(CASES["sinks and softcap"]().trace), "numbers", layer=0, batch=0, head=0, query=0, key=0)
    assert facts == {"scale": pytest.approx(5**-0.5), "softcap": 2.0, "d": 5, "e": 3}
    facts, _ = ask(Answers(CASES["stored"]().trace), "numbers", layer=0, batch=0, head=0, query=0, key=0)
    assert facts == {"scale": 1.0, "softcap": None, "d": 0, "e": 0}


def test_the_stitched_case_is_stitched_and_has_pairs_that_never_met():
    case = CASES["stitched"]()
    assert isinstance(case.layer.weights.source, StitchedSource)
    _, found = ask(Answers(case.trace), "numbers", layer=0, batch=0, head=0, query=0, key=0)
    assert np.isnan(found["dot"]).any()
    assert not np.isnan(found["k"]).any()


def test_a_score_that_is_no_product_shows_its_scores_alone():
    import regard
    from regard.trace.record.layer import Layer
    from regard.trace.record.trace import Run, Trace

    q, k = torch.randn(1, 1, 5, 4), torch.randn(1, 1, 6, 4)
    map_ = regard.attend(q, k, k, score=regard.Gaussian()).weights
    _, found = ask(Answers(Trace([Run([Layer("kernel", "cross", map_)])])), "numbers", layer=0, batch=0, head=0,
                   query=0, key=0)  # fmt: skip
    assert not {"q", "k", "dot"} & set(found)
    close(found["scores"], map_.scores[0, 0].double())
