"""Full disks, two starts at once, damaged descriptions: one sentence each, and a run that can go on."""

import errno
import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from regard.errors import RunError
from regard.training import lock
from regard.training.fit import Event, fit
from regard.training.run import RunFolder
from tests.training.crew import FORK, member
from tests.training.runs import assert_same, at, forked
from tests.training.toy import Toy, ToySettings, ToyWork

SETTINGS = ToySettings(steps=9)
NUMBERS = (errno.ENOSPC, errno.EIO, errno.EDQUOT)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone") / "run"
    fit(Toy(), SETTINGS, folder)
    return folder


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_whatever_write_fails_is_one_sentence_and_the_run_goes_on_later(every, alone, tmp_path, monkeypatch):
    """Each write to the disk of a run in turn, and all after it, as on a full disk that stays full."""
    real, failures = os.fsync, 0
    for number in [*range(1, 9), *range(9, 400, every)]:
        folder, count = tmp_path / str(number), [0]

        def full(handle: int, last=number, count=count) -> None:
            count[0] += 1
            if count[0] >= last:
                code = NUMBERS[last % len(NUMBERS)]
                raise OSError(code, os.strerror(code))
            real(handle)

        monkeypatch.setattr(os, "fsync", full)
        try:
            fit(Toy(), SETTINGS, folder)
            broken = ""
        except RunError as error:
            broken = str(error)
        finally:
            monkeypatch.undo()
        if count[0] < number:
            break
        failures += 1
        assert os.strerror(NUMBERS[number % len(NUMBERS)]) in broken
        assert "\n" not in broken
        assert ("--resume" in broken) == (folder / "run.json").exists()
        assert folder.exists() == (folder / "run.json").exists(), "what did not begin leaves nothing"
        fit(Toy(), SETTINGS, folder, resume=folder.exists())
        assert_same(alone, folder)
        shutil.rmtree(folder)
    assert failures > 40 // every


@pytest.mark.parametrize("name", ["history.jsonl", "timing.jsonl"])
def test_a_history_that_cannot_be_written_names_its_file(name, alone, tmp_path):
    folder = tmp_path / "run"

    def block() -> None:
        (folder / name).rename(tmp_path / name)
        (folder / name).mkdir()

    with pytest.raises(RunError, match=rf"{name} could not be written \(Is a directory\); the last good checkpoint is"):
        fit(Toy(), SETTINGS, folder, tell=at("step", 6, block))
    (folder / name).rmdir()
    (tmp_path / name).rename(folder / name)
    fit(Toy(), SETTINGS, folder, resume=True)
    assert_same(alone, folder)


@pytest.mark.parametrize("what", ["show", "export"])
def test_a_map_or_a_model_that_cannot_be_written_names_its_folder(what, alone, tmp_path, monkeypatch):
    def full(self, model, folder: Path, *given) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(folder))

    monkeypatch.setattr(ToyWork, what, full)
    where = "model" if what == "export" else "shown/step-000000000"
    with pytest.raises(RunError, match=rf"{where} could not be written \(No space left on device\); the last good"):
        fit(Toy(), SETTINGS, tmp_path / "run")
    monkeypatch.undo()
    fit(Toy(), SETTINGS, tmp_path / "run", resume=True)
    assert_same(alone, tmp_path / "run")


def test_of_starts_at_once_one_wins_and_the_others_leave_nothing(tmp_path):
    together = FORK.Barrier(4)

    def start(seed: int) -> int:
        together.wait()
        fit(Toy(), ToySettings(seed=seed, steps=6, pause=0.02), tmp_path / "run")
        return 0

    processes = [FORK.Process(target=member, args=(start, {"RANK": str(n)}, tmp_path / f"said-{n}")) for n in range(4)]
    for one in processes:
        one.start()
    for one in processes:
        one.join()
    said = [(tmp_path / f"said-{n}").read_text() for n in range(4)]
    (winner,) = [n for n, one in enumerate(processes) if one.exitcode == 0]
    assert [one.exitcode for n, one in enumerate(processes) if n != winner] == [2, 2, 2]
    assert all("is training in" in told or "already holds a run" in told for told in said if told != said[winner])
    assert RunFolder(tmp_path / "run").describe()["settings"]["seed"] == winner
    fit(Toy(), ToySettings(seed=winner, steps=6, pause=0.02), tmp_path / "alone")
    assert_same(tmp_path / "alone", tmp_path / "run")


def test_starts_in_threads_write_one_description(tmp_path):
    """The moment between looking and writing, many times over."""
    for turn in range(20):
        folder, won, begin = tmp_path / str(turn), [], threading.Barrier(3)

        def start(seed: int, folder=folder, won=won, begin=begin) -> None:
            run = RunFolder(folder)
            begin.wait()
            try:
                with run.lock_folder(new=True):
                    run.begin("toy", {"seed": seed})
                    won.append(seed)
            except RunError:
                pass

        threads = [threading.Thread(target=start, args=(seed,)) for seed in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert len(won) == 1
        assert RunFolder(folder).describe()["settings"] == {"seed": won[0]}


def test_where_locks_are_given_to_everyone_who_came_first_stops_before_it_writes(tmp_path, monkeypatch):
    """As on some network disks. The one that came later goes on; nothing of it is overwritten."""
    folder = tmp_path / "run"
    monkeypatch.setattr(lock.FileLock, "acquire", lambda self, *given, **named: None)

    def later() -> None:
        fit(Toy(), SETTINGS, folder, resume=True)

    with pytest.raises(RunError, match=f"another process .id {os.getpid()}. has begun to train in"):
        fit(Toy(), SETTINGS, folder, tell=at("step", 6, lambda: taken_over(folder)))
    monkeypatch.undo()
    later()


def taken_over(folder: Path) -> None:
    lock.Claim(folder)


def test_a_lock_goes_with_the_process_that_was_killed(alone, tmp_path):
    folder = tmp_path / "run"

    def work() -> None:
        fit(Toy(), SETTINGS, folder, tell=at("step", 6, lambda: os.kill(os.getpid(), 9)))

    assert forked(work) == -9
    assert (folder / lock.OWNER).exists()
    fit(Toy(), SETTINGS, folder, resume=True)
    assert not (folder / lock.OWNER).exists()
    assert_same(alone, folder)


def test_one_flipped_bit_in_the_description_of_a_run_is_refused(tmp_path):
    fit(Toy(), ToySettings(steps=1), tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    right, told = path.read_bytes(), RunFolder(tmp_path / "run").describe()
    refused = 0
    for place in range(len(right)):
        wrong = bytearray(right)
        wrong[place] ^= 1 << place % 8
        path.write_bytes(bytes(wrong))
        try:
            assert RunFolder(tmp_path / "run").describe() == told, place  # one blank for another
        except RunError:
            refused += 1
    assert refused > 0.8 * len(right)
    changed = json.loads(right)
    changed["settings"]["lr"] = 0.5
    path.write_text(json.dumps(changed))
    with pytest.raises(RunError, match=r"run.json is damaged \(it does not say what was written there\)"):
        fit(Toy(), ToySettings(steps=2), tmp_path / "run", resume=True)


def test_what_could_not_begin_leaves_no_vocabulary_for_the_next_try(tmp_path):
    class Learning(Toy):
        def prepare(self, settings, folder):
            (folder / "source.json").write_text("of this try")
            raise RunError("the data is not there")

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("stay")
    for name in ("new", "mine"):
        with pytest.raises(RunError, match="the data is not there"):
            fit(Learning(), SETTINGS, tmp_path / name)
    assert not (tmp_path / "new").exists()
    assert {path.name for path in (tmp_path / "mine").iterdir()} <= {"notes.txt", ".lock"}
    assert fit(Toy(), SETTINGS, tmp_path / "mine").code == 0


def test_needs_are_checked_before_anything_is_written(tmp_path):
    class Needing(Toy):
        def check_requirements(self, settings):
            raise RunError("install it")

    for resume in (False, True):
        with pytest.raises(RunError, match="install it"):
            fit(Needing(), SETTINGS, tmp_path / "run", resume=resume)
    assert not (tmp_path / "run").exists()


def test_a_validation_that_fails_loses_no_step(alone, tmp_path, monkeypatch):
    """What was learnt before it is on the disk when it begins."""

    def broken(self, model):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(ToyWork, "validate", broken)
    with pytest.raises(RuntimeError, match="out of memory"):
        fit(Toy(), SETTINGS, tmp_path / "run")
    monkeypatch.undo()
    begun: list[int] = []

    def tell(event: Event) -> None:
        begun.extend([event.step] if event.kind == "begin" else [])

    fit(Toy(), SETTINGS, tmp_path / "run", resume=True, tell=tell)
    assert begun == [5]
    assert_same(alone, tmp_path / "run")
