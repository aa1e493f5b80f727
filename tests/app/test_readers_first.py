"""Who looks goes first, and who runs gets on all the same."""

import threading
import time

import pytest

from regard.app.protocol.refusal import RunStopped
from regard.app.runners.monitor import RunMonitor
from regard.app.studio.readers_first import ReadersFirst
from regard.views.explorer.answer.questions import MeasuresQuestion, Question, RowQuestion, TileQuestion
from tests.app.served import ASK, opened, row, run, trace_of


def test_nobody_waits_for_nobody():
    start = time.perf_counter()
    assert ReadersFirst().give(20.0)
    assert time.perf_counter() - start < 5


def test_who_runs_waits_until_the_last_question_is_answered():
    way, order = ReadersFirst(), []

    def model():
        assert way.give(30.0)
        order.append("step")

    with way:
        with way:
            running = threading.Thread(target=model)
            running.start()
            order.append("first answer")
        running.join(0.05)
        order.append("second answer")
    running.join(30)
    assert order == ["first answer", "second answer", "step"]


def test_who_runs_gets_on_though_somebody_always_asks():
    way = ReadersFirst()
    with way:
        start = time.perf_counter()
        assert not way.give(0.02)
        assert 0.015 < time.perf_counter() - start < 10


def test_a_question_that_fails_is_over_too():
    way = ReadersFirst()
    with pytest.raises(ValueError, match="no such tile"), way:
        raise ValueError("no such tile")
    assert way.give(0.0)


def test_a_run_gives_way_before_every_step_and_is_stopped_before_that():
    given = []
    monitor = RunMonitor()
    monitor.must_go_on()
    monitor.give_way = lambda: given.append(len(given))
    for _ in range(3):
        monitor.must_go_on()
    assert given == [0, 1, 2]
    stopped = RunMonitor(stopped=lambda: True)
    stopped.give_way = lambda: given.append("late")
    with pytest.raises(RunStopped):
        stopped.must_go_on()
    assert given == [0, 1, 2]


def test_a_run_lets_a_question_by_and_ends_with_the_same_words(tmp_path, monkeypatch):
    """One question is in the air all the time; the run waits at each of its steps, and writes what it always writes."""
    with opened(tmp_path) as (client, studio):
        alone = run(client)[-1]
        waited, real = [], studio.way.give

        def counted():
            waited.append(real())

        monkeypatch.setattr(studio.way, "give", counted)
        with studio.way:
            beside = run(client)[-1]
        assert beside["kind"] == "done"
        assert beside["text"] == alone["text"]
        assert len(waited) >= ASK["steps"]
        assert not any(waited)


def test_questions_are_counted_while_they_are_asked_and_slow_ones_are_not(tmp_path, monkeypatch):
    with opened(tmp_path) as (client, studio):
        name = trace_of(client)
        asking, real = {}, studio.traces.ask

        def seen(question, *more):
            asking[type(question)] = studio.way.asking
            return real(question, *more)

        monkeypatch.setattr(studio.traces, "ask", seen)
        row(client, name)
        assert client.post(f"/api/traces/{name}/ask/measures", json={"layer": 0, "batch": 0}).status_code == 200
        assert client.post(f"/api/traces/{name}/ask/row", json={"layer": 99}).status_code == 400
        assert asking == {RowQuestion: 1, MeasuresQuestion: 0}
        assert studio.way.asking == 0


def test_a_question_is_validated_once_on_its_way(tmp_path, monkeypatch):
    with opened(tmp_path) as (client, _):
        name, validated, real = trace_of(client), [], Question.model_validate

        def count(kind, given):
            validated.append(kind)
            return real.__func__(kind, given)

        monkeypatch.setattr(Question, "model_validate", classmethod(count))
        row(client, name)
        about = {"layer": 0, "batch": 0, "head": 0, "level": 0, "row": 0, "column": 0, "coarse": False}
        assert client.post(f"/api/traces/{name}/ask/tile", json=about).status_code == 200
        assert validated == [RowQuestion, TileQuestion]
