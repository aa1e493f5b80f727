"""A run that was stopped, at any step and by any signal, comes out as the one that was left alone."""

import json
import signal

import pytest

from regard.training.fit import fit
from regard.training.run import RunFolder
from tests.training.runs import assert_same, outcome, stop_by
from tests.training.toy import Toy, ToySettings

SIGNALS = {"SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT, "SIGKILL": signal.SIGKILL}
# Validations fall between checkpoints and on them; the best is one that nobody planned to save.
PLANS = {
    "best": {"steps": 13, "lr": 5.0, "lr_schedule": "constant", "warmup_steps": 9, "eval_every": 3, "save_every": 4},
    "average": {
        "steps": 11,
        "lr": 0.07,
        "lr_schedule": "constant",
        "eval_every": 3,
        "save_every": 4,
        "average_checkpoints": 2,
    },
    "patience": {"steps": 40, "lr": 1e-12, "dropout": 0.0, "eval_every": 4, "save_every": 3, "patience": 2},
    "often": {"steps": 7, "lr": 0.1, "eval_every": 2, "save_every": 1, "keep_checkpoints": 2, "average_checkpoints": 3},
}
EVENTS = ("step", "checkpoint", "log", "shown", "validation")
# plan, event, step, signal: a save, a validation, both, the last step, one in between; the whole table is a slow test
SAMPLE = [
    ("best", "step", 6, "SIGTERM"),
    ("best", "validation", 6, "SIGTERM"),
    ("best", "checkpoint", 12, "SIGINT"),
    ("best", "begin", 0, "SIGINT"),
    ("best", "shown", 0, "SIGTERM"),
    ("best", "step", 13, "SIGTERM"),
    ("best", "validation", 9, "SIGKILL"),
    ("average", "step", 11, "SIGTERM"),
    ("average", "validation", 11, "SIGINT"),
    ("average", "step", 10, "SIGTERM"),
    ("average", "checkpoint", 8, "SIGKILL"),
    ("average", "log", 11, "SIGKILL"),
    ("patience", "validation", 8, "SIGTERM"),
    ("patience", "step", 12, "SIGINT"),
    ("patience", "checkpoint", 12, "SIGKILL"),
    ("often", "step", 5, "SIGTERM"),
    ("often", "validation", 7, "SIGKILL"),
]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Each plan, left alone: its folder, and every moment that was told of."""
    found = {}
    for name, plan in PLANS.items():
        folder, moments = tmp_path_factory.mktemp(name) / "run", []
        fit(Toy(), ToySettings(**plan), folder, tell=lambda event, to=moments: to.append((event.kind, event.step)))
        found[name] = folder, list(dict.fromkeys(one for one in moments if one[0] in EVENTS))
    return found


def stopped_and_gone_on(plan, kind, step, number, alone, folder) -> None:
    settings = ToySettings(**PLANS[plan])
    stop_by(number, kind, step, settings, folder)
    assert not (folder / "model").exists()
    fit(Toy(), settings, folder, resume=True)
    assert_same(alone[plan][0], folder)


def test_the_plans_put_what_is_best_where_nobody_planned_to_save(alone):
    assert {kind for _, moments in alone.values() for kind, _ in moments} == set(EVENTS)
    made = {name: json.loads((folder / "model" / "model.json").read_text()) for name, (folder, _) in alone.items()}
    best = int(made["best"]["weights_of"].removeprefix("step "))
    assert best % 3 == 0
    assert best % 4 != 0
    assert made["average"]["weights_of"] == "the average of the last 2 checkpoints"
    assert RunFolder(alone["patience"][0]).history()[-1]["step"] < 40


@pytest.mark.parametrize(("plan", "kind", "step", "number"), SAMPLE)
def test_a_run_that_was_stopped_comes_out_as_one_that_was_left_alone(plan, kind, step, number, alone, tmp_path):
    stopped_and_gone_on(plan, kind, step, SIGNALS[number], alone, tmp_path / "run")


def test_a_run_that_was_stopped_at_every_step_comes_out_the_same(alone, tmp_path):
    settings = ToySettings(**PLANS["best"])
    for step in range(1, 14):
        number = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)[step % 3]
        stop_by(number, "step", step, settings, tmp_path / "run", resume=step > 1)
    fit(Toy(), settings, tmp_path / "run", resume=True)
    assert_same(alone["best"][0], tmp_path / "run")


def test_a_run_that_is_done_may_be_gone_on_with_and_stays_what_it_is(alone, tmp_path):
    folder, settings = tmp_path / "run", ToySettings(**PLANS["average"])
    fit(Toy(), settings, folder)
    assert fit(Toy(), settings, folder, resume=True).code == 0
    assert_same(alone["average"][0], folder)
    assert {4, 8, 11} <= outcome(folder)["checkpoints"].keys()


def test_a_run_that_is_told_to_go_on_for_longer_averages_what_it_would_have(tmp_path):
    longer = ToySettings(**PLANS["average"])
    fit(Toy(), longer, tmp_path / "alone")
    fit(Toy(), longer.model_copy(update={"steps": 7}), tmp_path / "run")
    fit(Toy(), longer, tmp_path / "run", resume=True)
    ours, theirs = (outcome(tmp_path / name) for name in ("run", "alone"))
    assert ours["history"] == theirs["history"]
    assert json.loads(ours["model"])["sum"] == json.loads(theirs["model"])["sum"]


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("plan", PLANS)
def test_every_moment_of_a_run_may_be_its_last(plan, number, alone, tmp_path):
    moments = alone[plan][1]
    assert len(moments) > 20
    for kind, step in moments:
        stopped_and_gone_on(plan, kind, step, SIGNALS[number], alone, tmp_path / f"{kind}-{step}")
