"""What can be said of a run by its folder: running, finished, stopped, failed; and what is left out."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.errors import RunError
from regard.training import lock
from regard.training.curves import find_best, read_curves, thin_points
from regard.training.find_runs import find_runs
from regard.training.fit import fit
from regard.training.progress import Progress
from regard.training.run import HISTORY, TIMING, RunFolder
from regard.training.status import GONE, read_status
from regard.training.task import Better
from tests.training.runs import at, stop_by
from tests.training.toy import Toy, ToySettings

SETTINGS = ToySettings()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    fit(Toy(), SETTINGS, folder)
    return folder


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


def test_a_run_that_came_to_its_end_is_finished_and_looking_changes_nothing(finished):
    before = contents(finished)
    run = read_status(finished)
    assert (run.state, run.why, run.task, run.step, run.steps) == ("finished", "", "toy", 23, 23)
    assert (run.parameters, run.examples, run.saved) == (6 * 11 + 11 + 11 + 1, 53, 23)
    assert run.seconds > 0
    assert run.seconds_left is None
    assert run.settings == SETTINGS.model_dump(mode="json")
    assert contents(finished) == before


@pytest.mark.parametrize("plan", [{}, {"lr": 0.07, "lr_schedule": "constant"}, {"lr": 5.0, "warmup_steps": 9}])
def test_the_best_score_is_the_one_the_run_itself_takes(plan, tmp_path):
    """What the reader finds in the history is what the engine has remembered."""
    places: list[Progress] = []
    settings = ToySettings(**plan)
    from regard.training import fit as engine

    class Listening(engine.Fit):
        def validate(self) -> None:
            super().validate()
            places.append(Progress(best=self.place.best, best_step=self.place.best_step))

    before, engine.Fit = engine.Fit, Listening
    try:
        fit(Toy(), settings, tmp_path / "run")
    finally:
        engine.Fit = before
    best = read_status(tmp_path / "run").best
    assert len(places) == 5
    assert best == ("loss", places[-1].best, places[-1].best_step)


def test_a_run_that_goes_on_is_running_with_time_left_and_one_that_was_stopped_is_not(tmp_path):
    folder, seen = tmp_path / "run", []
    fit(Toy(), SETTINGS, folder, tell=at("shown", 10, lambda: seen.append(read_status(folder))))
    (during,) = seen
    assert (during.state, during.step, during.steps) == ("running", 10, 23)
    assert during.seconds_left >= 0
    assert during.tokens_per_second > 0
    assert read_status(folder).state == "finished"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_was_stopped_says_so_and_from_where_it_goes_on(number, tmp_path):
    folder = tmp_path / "run"
    stop_by(number, "step", 7, SETTINGS, folder)
    run = read_status(folder)
    assert (run.state, run.why, run.step, run.saved) == ("stopped", "", 7, 7)


def test_a_run_whose_process_was_killed_has_failed(tmp_path):
    folder = tmp_path / "run"
    stop_by(signal.SIGKILL, "step", 7, SETTINGS, folder)
    run = read_status(folder)
    assert (run.state, run.why, run.saved) == ("failed", GONE, 5)
    fit(Toy(), SETTINGS, folder, resume=True)
    assert read_status(folder).state == "finished"


def test_a_run_that_failed_says_why_until_somebody_goes_on(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(RunError) as failed:
        fit(Toy(), ToySettings(poison=5), folder)
    run = read_status(folder)
    assert (run.state, run.why) == ("failed", str(failed.value))


def test_a_finished_run_that_is_told_to_go_on_for_longer_is_not_finished_until_it_is(tmp_path):
    folder, longer = tmp_path / "run", SETTINGS.model_copy(update={"steps": 30})
    fit(Toy(), SETTINGS, folder)
    stop_by(signal.SIGTERM, "step", 26, longer, folder, resume=True)
    run = read_status(folder)
    assert (run.state, run.step, run.steps, run.told_anew) == ("stopped", 26, 30, {"steps": 30})
    fit(Toy(), longer, folder, resume=True)
    assert (read_status(folder).state, read_status(folder).step) == ("finished", 30)


def test_the_time_of_all_processes_is_added(tmp_path):
    folder = tmp_path / "run"
    stop_by(signal.SIGTERM, "step", 6, SETTINGS, folder)
    first = read_status(folder).seconds
    fit(Toy(), SETTINGS, folder, resume=True)
    ends = [json.loads(line) for line in (folder / TIMING).read_text().splitlines() if '"end"' in line]
    assert read_status(folder).seconds == pytest.approx(first + ends[-1]["seconds"])


def test_time_left_shrinks_while_nothing_is_written(tmp_path):
    folder = tmp_path / "run"
    fit(Toy(), SETTINGS, folder)
    with (folder / TIMING).open("a") as file:
        file.write(json.dumps({"step": 20, "seconds": 9.0, "seconds_left": 100.0}) + "\n")
    when = (folder / TIMING).stat().st_mtime
    with lock.hold_lock(folder):
        left = [read_status(folder, now=when + later).seconds_left for later in (0, 30, 500)]
    assert left == [100.0, 70.0, 0.0]


# Locks


def test_a_lock_is_held_as_long_as_somebody_trains_and_asking_takes_nothing_away(tmp_path):
    assert not lock.is_held(tmp_path)
    with lock.hold_lock(tmp_path):
        assert lock.is_held(tmp_path)
        assert lock.is_held(tmp_path)
    assert not lock.is_held(tmp_path)
    with lock.hold_lock(tmp_path):
        pass


def claim(folder: Path, **changed: object) -> None:
    (folder / lock.OWNER).write_text(json.dumps({"process": os.getpid(), "host": "elsewhere", "token": "x"} | changed))


def test_who_is_gone_holds_nothing(tmp_path):
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    (tmp_path / lock.LOCK).touch()
    claim(tmp_path, process=int(gone.stdout), host=lock.platform.node())
    assert not lock.is_held(tmp_path)
    claim(tmp_path)  # another machine, and nobody has the lock
    assert not lock.is_held(tmp_path)
    claim(tmp_path, host=lock.platform.node())  # an id that somebody else has by now
    assert not lock.is_held(tmp_path)


@pytest.mark.parametrize("written", ["", "[]", "{", '{"process": "many"}', '{"process": -1}'])
def test_an_owner_that_makes_no_sense_is_no_one_or_is_asked_by_the_lock(written, tmp_path):
    (tmp_path / lock.LOCK).touch()
    (tmp_path / lock.OWNER).write_text(written)
    assert not lock.is_held(tmp_path)


def test_where_locks_cannot_be_tried_the_owner_must_do(tmp_path, monkeypatch):
    (tmp_path / lock.LOCK).touch()
    claim(tmp_path)

    class NoLock(lock.FileLock):
        def acquire(self, *given, **more):
            raise NotImplementedError

    monkeypatch.setattr(lock, "FileLock", NoLock)
    assert lock.is_held(tmp_path)


# Damage


def test_half_written_and_foreign_lines_are_passed_over(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    true = read_status(folder)
    odd = ["garbage", "[1]", '"step"', '{"step": "x"}', '{"step": 3, "loss": "much"}', '{"step": 23, "loss": NaN}']
    odd += [
        "null",
        "7",
        f'{{"step": 23, "loss": 1{"0" * 400}}}',
        '{"step": 23, "validation": {"loss": "good", "more": null}}',
        "[" * 5000,
    ]
    for name in (HISTORY, TIMING):
        with (folder / name).open("a") as file:
            file.write("\n".join([*odd, '{"step": 23, "lo']))
    run = read_status(folder)
    assert (run.step, run.best, run.curves, run.seconds) == (true.step, true.best, true.curves, true.seconds)
    for name in (HISTORY, TIMING):
        (folder / name).unlink()
    run = read_status(folder)
    assert (run.step, run.best, run.curves.losses, run.seconds, run.better) == (23, None, [], 0.0, None)


def test_what_cannot_be_read_is_left_out_with_a_reason_and_the_newest_comes_first(finished, tmp_path):
    names = ["b", "c", "a"]
    for number, name in enumerate(names):
        folder = shutil.copytree(finished, tmp_path / name)
        for path in [folder, *folder.rglob("*")]:
            os.utime(path, (1000 + number, 1000 + number))
    for name, text in {"foreign": '{"x": 1}', "damaged": "{", "list": "[]"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(text)
    flipped = shutil.copytree(finished, tmp_path / "flipped") / "run.json"
    flipped.write_text(flipped.read_text().replace('"seed": 0', '"seed": 1'))
    folder = tmp_path / "folder"
    (folder / "run.json").mkdir(parents=True)
    (tmp_path / "half" / "checkpoints").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "notes.txt").touch()
    runs, left_out = find_runs([tmp_path, tmp_path / "a"])
    assert [run.folder.name for run in runs] == ["a", "c", "b"]
    assert [run.written for run in runs] == [1002, 1001, 1000]
    assert [one.folder.name for one in left_out] == ["damaged", "flipped", "folder", "foreign", "half", "list"]
    assert all(one.why and "\n" not in one.why for one in left_out)
    with pytest.raises(RunError, match=r"there is no folder .*nowhere; name a run"):
        find_runs([tmp_path / "nowhere"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_history_that_may_not_be_read_is_one_sentence(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / HISTORY).chmod(0)
    with pytest.raises(RunError, match=r"run cannot be read \(Permission denied\)"):
        read_status(folder)


def test_a_description_without_a_task_is_refused(tmp_path):
    from regard.training.manifest import seal
    from regard.training.run import FORMAT

    (tmp_path / "run.json").write_bytes(seal({"format": FORMAT, "settings": {}}))
    with pytest.raises(RunError, match="names no task"):
        read_status(tmp_path)


# Curves


def test_curves_are_the_lines_of_the_history(finished):
    lines = RunFolder(finished).history()
    curves = read_status(finished).curves
    assert curves.losses == [(line["step"], line["loss"]) for line in lines if "loss" in line]
    assert curves.lrs == [(line["step"], line["lr"]) for line in lines if "lr" in line]
    assert curves.scores == {
        "loss": [(line["step"], line["validation"]["loss"]) for line in lines if "validation" in line]
    }
    assert [step for step, _ in curves.speeds] == [step for step, _ in curves.losses]


def test_no_number_is_no_point_and_no_best():
    lines = [{"step": step, "validation": {"x": value}} for step, value in ((1, math.nan), (2, 3.0), (3, math.inf))]
    assert read_curves(lines).scores == {"x": [(2, 3.0)]}
    assert find_best(lines[:2], Better("x")) == ("x", 3.0, 2)
    assert find_best(lines, Better("y")) is None


def test_many_points_are_thinned_and_end_with_the_last():
    points = [(step, float(step)) for step in range(3001)]
    for most in (1, 7, 400, 5000):
        thin = thin_points(points, most)
        assert len(thin) <= most + 1
        assert (thin[0], thin[-1]) == (points[0], points[-1])
        assert thin == sorted(set(thin))
    assert thin_points([], 5) == []


def test_a_run_that_is_written_to_was_written_lately(finished):
    assert 0 <= time.time() - read_status(finished).written < 600
