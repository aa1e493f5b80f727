"""How fast a run trains: by a clock of our own that only moves when something is done."""

import json
import math
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from regard.errors import RunError
from regard.training import fit as engine
from regard.training.clock import RECENT, TrainingClock
from regard.training.fit import fit
from regard.training.loss import Loss
from tests.training.runs import assert_same, stop_by
from tests.training.toy import Toy, ToySettings, ToyWork

UPDATE, VALIDATION, SHOW = 3.0, 100.0, 0.0


class Hand:
    """A clock that stands still until somebody moves it."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


class Timed(Toy):
    """Every update, validation and map takes exactly so long."""

    def __init__(self, hand: Hand, show: float = SHOW) -> None:
        self.hand, self.cost = hand, show

    def prepare(self, settings: ToySettings, folder: Path) -> ToyWork:
        hand, cost = self.hand, self.cost

        class Work(ToyWork):
            def loss(self, model: nn.Module, batch: Any) -> Loss:
                hand.time += UPDATE
                return super().loss(model, batch)

            def validate(self, model: nn.Module) -> dict[str, float]:
                hand.time += VALIDATION
                return super().validate(model)

            def show(self, model: nn.Module, folder: Path) -> None:
                hand.time += cost
                super().show(model, folder)

        return Work(settings, folder)


def timing(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "timing.jsonl").read_text().splitlines()]


def train(folder: Path, monkeypatch, show: float = SHOW, **plan: Any) -> tuple[list[dict[str, Any]], list, Hand]:
    """The timing of a run of fixed costs, what it told, and the clock as it stands in the end."""
    hand, told = Hand(), []
    monkeypatch.setattr(engine, "TrainingClock", partial(TrainingClock, now=hand))
    fit(Timed(hand, show), ToySettings(**plan), folder, tell=lambda event: told.append((hand.time, event)))
    return timing(folder), told, hand


def tokens_until(step: int, settings: ToySettings) -> int:
    """How many examples were seen after so many steps, counted from the batches themselves."""
    work, sizes = ToyWork(settings, Path()), []
    while len(sizes) < step:
        sizes += [len(one) for one in work.batches(len(sizes) // len(work.batches(0)))]
    return sum(sizes[:step])


def test_tokens_and_seconds_are_those_of_training_alone(monkeypatch, tmp_path):
    lines, _, _ = train(tmp_path / "run", monkeypatch, show=17.0)
    lines = [line for line in lines if "updates" in line]
    assert len(lines) > 10
    for line in lines:
        assert line["updates"] == line["step"]
        assert line["training_seconds"] == UPDATE * line["step"]
        assert line["tokens"] == tokens_until(line["step"], ToySettings())
        assert line["tokens_per_second"] == pytest.approx(line["tokens"] / line["training_seconds"])
        assert line["updates_per_second"] == pytest.approx(1 / UPDATE)
    assert lines[-1]["validation_seconds"] == VALIDATION * 6  # five, and the best weights once more


def test_speed_is_measured_over_the_last_updates():
    hand = Hand()
    clock = TrainingClock(now=hand)
    sizes, times = np.arange(1, 2 * RECENT), np.linspace(1, 7, 2 * RECENT - 1)
    for size, taken in zip(sizes.tolist(), times.tolist()):
        clock.resume()
        hand.time += taken
        clock.count_update(size)
        hand.time += 1000.0  # something else
    speed = clock.read(steps_left=0, validations_left=0)
    assert speed.tokens_per_second == pytest.approx(sizes[-RECENT:].sum() / times[-RECENT:].sum())
    assert speed.updates_per_second == pytest.approx(RECENT / times[-RECENT:].sum())
    assert (speed.tokens, speed.updates) == (sizes.sum(), len(sizes))


@pytest.mark.parametrize("plan", [{}, {"average_checkpoints": 2}, {"steps": 20}])
def test_the_time_that_is_left_is_the_time_that_it_takes(plan, monkeypatch, tmp_path):
    """Where every step takes as long, what is told after the first validation is exactly what follows."""
    _, told, hand = train(tmp_path / "run", monkeypatch, **plan)
    first = next(when for when, event in told if event.kind == "validation")
    left = [(when, event.facts["speed"].seconds_left) for when, event in told if event.kind in ("step", "log")]
    later = [(when, seconds) for when, seconds in left if when > first]
    assert len(later) > 10
    for when, seconds in later:
        assert seconds == pytest.approx(hand.time - when)


def test_nothing_is_said_of_speed_before_the_first_update():
    speed = TrainingClock().read(steps_left=7, validations_left=1)
    assert (speed.tokens_per_second, speed.updates_per_second, speed.seconds_left) == (None, None, None)


def test_a_run_that_stops_and_goes_on_says_when_each_process_began_and_how_it_ended(tmp_path):
    folder, settings = tmp_path / "run", ToySettings()
    stop_by(signal.SIGTERM, "step", 6, settings, folder)
    fit(Toy(), settings.model_copy(update={"steps": 9}), folder, resume=True)
    lines = timing(folder)
    starts, ends = ([line for line in lines if key in line] for key in ("start", "end"))
    assert [(line["step"], line["settings"]) for line in starts] == [(0, {}), (6, {"steps": 9})]
    assert {(line["score"], line["more"], line["examples"]) for line in starts} == {("loss", False, 53)}
    assert [(line["step"], line["end"]) for line in ends] == [(6, "stopped"), (9, "finished")]
    assert [line["updates"] for line in ends] == [6, 3]


def test_a_failure_is_written_with_its_reason(tmp_path):
    folder, settings = tmp_path / "run", ToySettings(poison=5)
    with pytest.raises(RunError) as failed:
        fit(Toy(), settings, folder)
    last = timing(folder)[-1]
    assert (last["end"], last["why"]) == ("failed", str(failed.value))
    assert math.isfinite(last["seconds"])


def test_what_is_timed_changes_neither_history_nor_checkpoints(monkeypatch, tmp_path):
    fit(Toy(), ToySettings(), tmp_path / "plain")
    train(tmp_path / "timed", monkeypatch, show=5.0)
    assert_same(tmp_path / "plain", tmp_path / "timed")
