"""What lies among the checkpoints of a run and is none does not keep it from going on."""

import errno
import os
import shutil
import signal
from pathlib import Path

import pytest

from regard.errors import RunError
from regard.training import checkpoint
from regard.training.fit import Event, fit
from tests.training.runs import assert_same, at, forked
from tests.training.toy import Toy, ToySettings

SETTINGS = ToySettings(steps=17)
OPERATIONS = ("unlink", "rmdir", "rename", "replace", "mkdir", "remove")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone") / "run"
    fit(Toy(), SETTINGS, folder)
    return folder


def killed_at(number: int, folder: Path) -> int:
    """Train, and die at the n-th operation on files from the 14th step on, in which old checkpoints go."""

    def work() -> None:
        count = [0]

        def dying(real):
            def call(*given, **named):
                count[0] += 1
                if count[0] == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*given, **named)

            return call

        def arm() -> None:
            for name in OPERATIONS:
                setattr(os, name, dying(getattr(os, name)))

        fit(Toy(), SETTINGS, folder, tell=at("step", 14, arm))

    return forked(work)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_a_kill_at_any_operation_on_files_leaves_a_run_that_goes_on_to_the_same_bits(every, alone, tmp_path):
    killed = 0
    for number in range(1, 200, every):
        folder = tmp_path / str(number)
        if killed_at(number, folder) == 0:
            break
        killed += 1
        fit(Toy(), SETTINGS, folder, resume=True)
        assert_same(alone, folder)
        shutil.rmtree(folder)
    assert killed > 20 // every, "old checkpoints are removed between step 14 and the end"


def half_gone(folder: Path) -> None:
    """As a kill amid of its removal left it."""
    shutil.copytree(checkpoint.list_checkpoints(folder)[0], folder / checkpoint.name_of(2))
    (folder / checkpoint.name_of(2) / checkpoint.MANIFEST).unlink()


def cut(folder: Path) -> None:
    path = checkpoint.list_checkpoints(folder)[-1] / checkpoint.MANIFEST
    path.write_bytes(path.read_bytes()[:-20])


def moved_away(folder: Path) -> None:
    """The newest under a step that it is not of."""
    os.rename(checkpoint.list_checkpoints(folder)[-1], folder / checkpoint.name_of(99))


STRAYS = {
    "a copy by hand": (
        lambda folder: shutil.copytree(checkpoint.list_checkpoints(folder)[-1], folder / "step-backup"),
        "left",
    ),
    "a name without a number": (lambda folder: (folder / "step-").mkdir(), "left"),
    "a file": (lambda folder: (folder / "step-5").write_text("5"), "left"),
    "a file with the name of a checkpoint": (lambda folder: (folder / checkpoint.name_of(16)).touch(), "left"),
    "an empty folder": (lambda folder: (folder / checkpoint.name_of(15)).mkdir(), "used"),
    "an empty folder of an old step": (lambda folder: (folder / checkpoint.name_of(1)).mkdir(), ""),
    "half of an old one": (half_gone, ""),
    "a manifest that was cut": (cut, "used"),
    "the state cut": (
        lambda folder: os.truncate(checkpoint.list_checkpoints(folder)[-1] / checkpoint.TENSORS, 99),
        "used",
    ),
    "another step's name": (moved_away, "used"),
    "another language's digits": (lambda folder: (folder / "step-٠٠٠٠٠٠٠٠٩").mkdir(), "left"),
    "what was being written": (lambda folder: (folder / ".step-000000014.0a.part").mkdir(), ""),
    "notes": (lambda folder: (folder / "notes.txt").write_text("mine"), "left"),
}


@pytest.mark.parametrize("what", STRAYS)
def test_a_stray_among_the_checkpoints_is_told_once_and_the_run_comes_out_the_same(what, alone, tmp_path):
    folder, (put, said) = tmp_path / "run", STRAYS[what]
    with pytest.raises(KeyboardInterrupt):
        fit(Toy(), SETTINGS, folder, tell=at("step", 14, interrupt))
    put(folder / "checkpoints")
    told: list[str] = []

    def tell(event: Event) -> None:
        told.extend([event.facts["text"]] if event.kind == "notice" else [])

    fit(Toy(), SETTINGS, folder, resume=True, tell=tell)
    assert [("left" if "is left alone" in one else "used" if "is not used" in one else one) for one in told] == (
        [said] if said else []
    )
    assert_same(alone, folder)


def interrupt() -> None:
    raise KeyboardInterrupt


def test_one_flipped_bit_in_a_manifest_goes_on_from_the_checkpoint_before(alone, tmp_path):
    """Each byte of the newest manifest in turn, a bit of it: none is believed."""
    with pytest.raises(KeyboardInterrupt):
        fit(Toy(), SETTINGS, tmp_path / "run", tell=at("step", 14, interrupt))
    folder = tmp_path / "run" / "checkpoints"
    *_, before, newest = checkpoint.list_checkpoints(folder)
    path, right = newest / checkpoint.MANIFEST, (newest / checkpoint.MANIFEST).read_bytes()
    told = checkpoint.describe(newest)
    for place in range(len(right)):
        wrong = bytearray(right)
        wrong[place] ^= 1 << place % 8
        path.write_bytes(bytes(wrong))
        found = checkpoint.newest(folder)
        assert found.step == checkpoint.step_of(before) or checkpoint.describe(newest) == told, place  # a blank moved
    fit(Toy(), SETTINGS, tmp_path / "run", resume=True)
    assert_same(alone, tmp_path / "run")


def test_where_no_checkpoint_is_whole_the_run_does_not_begin_anew_in_silence(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fit(Toy(), SETTINGS, tmp_path / "run", tell=at("step", 7, interrupt))
    for place in checkpoint.list_checkpoints(tmp_path / "run" / "checkpoints"):
        (place / checkpoint.MANIFEST).write_bytes(b"{")
    with pytest.raises(RunError, match=r"is no whole checkpoint .*; remove it to go on from the one before"):
        fit(Toy(), SETTINGS, tmp_path / "run", resume=True)


def test_a_checkpoint_that_cannot_be_removed_is_left_and_the_run_goes_on(alone, tmp_path, monkeypatch):
    real = os.rmdir

    def stuck(path, *given, **named):
        if str(path).endswith(".part"):
            raise OSError(errno.EBUSY, "Device or resource busy")
        return real(path, *given, **named)

    monkeypatch.setattr(os, "rmdir", stuck)
    fit(Toy(), SETTINGS, tmp_path / "run")
    monkeypatch.undo()
    assert list((tmp_path / "run" / "checkpoints").glob(".*.part"))
    fit(Toy(), SETTINGS, tmp_path / "run", resume=True)  # which clears it
    assert_same(alone, tmp_path / "run")
