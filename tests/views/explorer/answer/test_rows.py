"""Rows, columns, the strongest keys and what is hidden, against all weights in float64."""

import numpy as np
import pytest
import torch

from regard.errors import TraceError
from regard.views.explorer.answer import Answers, head_rows, pyramid
from tests.views.explorer.answer.cases import CASES, ask, close
from tests.views.explorer.answer.test_tiles import near


@pytest.fixture(params=["whole", "cut small"])
def cut(request, monkeypatch):
    if request.param == "cut small":
        monkeypatch.setattr(pyramid, "CELLS", 20)
        monkeypatch.setattr(head_rows, "STRIP", 40)


@pytest.mark.parametrize("name", CASES)
def test_a_row_has_its_weights_scores_and_mask(name, cut):
    case = CASES[name]()
    b, h, q, _ = case.weights.shape
    answers = Answers(case.trace)
    for query in (q - 1, 0, q // 2):
        _, arrays = ask(answers, "row", layer=0, batch=b - 1, head=h - 1, query=query)
        close(arrays["weights"], case.weights[-1, -1, query], near(case))
        assert np.array_equal(arrays["allowed"], case.allowed[-1, -1, query].numpy())
        assert arrays["allowed"].dtype == np.uint8
        assert ("scores" in arrays) == (case.scores is not None)
        if case.scores is not None:
            close(arrays["scores"], case.scores[-1, -1, query], near(case))


@pytest.mark.parametrize("name", CASES)
def test_a_column_is_one_key_seen_from_all_queries(name, cut):
    case = CASES[name]()
    b, _, _, k = case.weights.shape
    answers = Answers(case.trace)
    for key in (k - 1, 0, k // 2):
        _, arrays = ask(answers, "column", layer=0, batch=b - 1, head=0, key=key)
        close(arrays["weights"], case.weights[-1, 0, :, key], near(case))
        assert np.array_equal(arrays["allowed"], case.allowed[-1, 0, :, key].numpy())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("count", [1, 4, 40])
def test_the_strongest_keys_are_those_that_the_map_gives_for_all_queries(name, count, cut):
    case = CASES[name]()
    b, h, q, _ = case.weights.shape
    first = q // 3
    facts, arrays = ask(
        Answers(case.trace), "top", layer=0, batch=b - 1, head=h - 1, first=first, queries=5, count=count
    )
    assert facts == {"first": first, "queries": 5, "count": count}
    weights, keys = case.layer.weights[b - 1, h - 1].top(count)
    stop = min(q, first + 5)
    close(arrays["weights"][: stop - first], weights[first:stop])
    assert np.array_equal(arrays["keys"][: stop - first], keys[first:stop].numpy())
    assert arrays["keys"].dtype == np.int32
    for row, (some, shares) in enumerate(zip(arrays["keys"], arrays["weights"])):
        real = some[some >= 0]
        if first + row < q:
            assert len(real) == min(count, int(case.allowed[-1, -1, first + row].sum()))
            close(shares[: len(real)], case.weights[-1, -1, first + row, real], near(case))
        else:
            assert not len(real)


@pytest.mark.parametrize("name", CASES)
def test_blind_queries_and_unseen_keys_are_told(name, cut):
    case = CASES[name]()
    b, h, _, _ = case.weights.shape
    for head in range(h):
        _, arrays = ask(Answers(case.trace), "hidden", layer=0, batch=b - 1, head=head)
        assert np.array_equal(arrays["blind"], ~case.allowed[-1, head].any(-1).numpy())
        assert np.array_equal(arrays["unseen"], ~case.allowed[-1, head].any(-2).numpy())


def test_some_of_the_cases_have_blind_rows_and_unseen_keys():
    assert not CASES["padded"]().allowed[1].any(-1).all()
    assert not CASES["padded"]().allowed[1].any(-2).all()
    assert not CASES["bits"]().allowed[:, 1].any(-1).all()


@pytest.mark.parametrize(
    ("what", "place", "sentence"),
    [
        ("row", {"query": 13}, "query 13 was asked for, but the map has 13 queries"),
        ("column", {"key": 99}, "key 99 was asked for, but the map has 13 keys"),
        ("top", {"first": 13, "queries": 1, "count": 1}, "query 13 was asked for"),
        ("numbers", {"query": 0, "key": 13}, "key 13 was asked for"),
        ("numbers", {"query": 13, "key": 0}, "query 13 was asked for"),
    ],
)
def test_a_place_outside_of_the_map_is_refused(what, place, sentence):
    with pytest.raises(TraceError, match=sentence):
        Answers(CASES["causal"]().trace).ask(what, {"layer": 0, "batch": 0, "head": 0, **place})


def test_rows_of_float64_are_asked_in_float64_and_sent_in_float32():
    import regard
    from regard.trace.record.layer import Layer
    from regard.trace.record.trace import Run, Trace

    x = torch.randn(1, 2, 7, 5, dtype=torch.float64)
    map_ = regard.attend(x, x, x, mask=regard.causal()).weights
    answers = Answers(Trace([Run([Layer("wide", "self", map_, x, x, x)])]))
    assert answers.info()["precision"] == "float64"
    _, arrays = ask(answers, "row", layer=0, batch=0, head=1, query=5)
    assert np.array_equal(arrays["weights"], map_.dense()[0, 1, 5].float().numpy())
