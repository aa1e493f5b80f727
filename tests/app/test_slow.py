"""What takes long for one trace holds up nobody who looks at another."""

import threading

import pytest
import torch

from regard.app.protocol.limits import CELLS
from regard.errors import MapError
from regard.views.explorer.answer.questions import MeasuresQuestion
from tests.app.served import opened, said, trace_of

WHOLE = {"layer": 0, "batch": 0}


def ask(client, trace, what="measures", about=WHOLE):
    return client.post(f"/api/traces/{trace}/ask/{what}", json=about)


def test_measures_of_one_trace_do_not_hold_up_those_of_another(tmp_path, monkeypatch):
    with opened(tmp_path) as (client, studio):
        huge, other = trace_of(client), trace_of(client, text="A B C A")
        begun, go_on, real = threading.Event(), threading.Event(), studio.traces.ask

        def held(question, wanted, *more):
            if wanted == huge and isinstance(question, MeasuresQuestion):
                begun.set()
                assert go_on.wait(60)
            return real(question, wanted, *more)

        monkeypatch.setattr(studio.traces, "ask", held)
        waiting = [threading.Thread(target=ask, args=(client, huge)) for _ in range(5)]  # somebody is impatient
        answers = []
        try:
            for one in waiting:
                one.start()
            assert begun.wait(60)
            for what in ("measures", "proof"):
                asking = threading.Thread(target=lambda what=what: answers.append(ask_of(client, other, what)))
                asking.start()
                asking.join(30)
            assert answers == [200, 200]
        finally:
            go_on.set()
            for one in waiting:
                one.join(60)


def ask_of(client, trace, what):
    return ask(client, trace, what, WHOLE if what == "measures" else {"layer": 0}).status_code


def test_a_walk_that_takes_too_long_is_stopped_and_told(tmp_path, monkeypatch):
    with opened(tmp_path) as (client, _):
        name = trace_of(client)
        with monkeypatch.context() as patch:
            patch.setattr("regard.app.studio.traces.ANSWER", -1.0)
            told = ask(client, name)
            assert (told.status_code, told.json()["code"]) == (400, "trace.slow")
            assert "was stopped" in said(told)
        assert ask(client, name).status_code == 200


def test_more_weights_than_anybody_could_measure_are_refused_before_it_begins(tmp_path, monkeypatch):
    n = 1 << 19
    assert n * n > CELLS
    with opened(tmp_path) as (client, studio):
        name = trace_of(client)
        layer = studio.traces.answers(name).run.layers[0]
        wide = torch.zeros(1, 1, 1).expand(1, n, n)  # of which nothing is in memory
        monkeypatch.setattr(type(layer.weights), "shape", property(lambda _: (1, *wide.shape)))
        told = ask(client, name)
        assert (told.status_code, told.json()["code"]) == (413, "trace.large")
        assert "2.75e+11 weights, too many to measure here" in said(told)


def test_time_is_up_between_two_blocks_and_only_inside_its_limit():
    import regard
    from regard.attention.map.deadline import check_time, time_limit

    q, k = torch.randn(2, 7, 3), torch.randn(2, 11, 3)
    weights = regard.attend(q, k, k).weights
    right = weights.entropy()
    with time_limit(60.0):
        torch.testing.assert_close(weights.entropy(), right)
        with time_limit(-1.0), pytest.raises(MapError, match="took more than -1 seconds and was stopped"):
            weights.entropy()
        check_time()
    torch.testing.assert_close(weights.entropy(), right)
