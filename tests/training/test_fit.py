"""The engine on a toy: stopped anywhere and resumed it is the run that was never stopped."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from regard.errors import RunError
from regard.training import checkpoint
from regard.training.fit import Event, fit
from regard.training.run import HISTORY, RunFolder
from tests.training.toy import Toy, ToySettings

TOY = Toy()


def outcome(folder: Path) -> tuple[dict[str, torch.Tensor], str, str]:
    """All that must be the same: the tensors of the last checkpoint, the history, the exported model."""
    last = checkpoint.newest(folder / "checkpoints")
    assert last is not None
    return last.tensors, (folder / HISTORY).read_text(), (folder / "model" / "model.json").read_text()


def assert_same(one: Path, two: Path) -> None:
    (tensors, history, model), (others, other_history, other_model) = outcome(one), outcome(two)
    assert tensors.keys() == others.keys()
    for name, tensor in tensors.items():
        assert torch.equal(tensor, others[name]), name
    assert history == other_history
    assert model == other_model
    shown = sorted(path.relative_to(one) for path in (one / "shown").rglob("*.json"))
    assert shown == sorted(path.relative_to(two) for path in (two / "shown").rglob("*.json"))
    assert all((one / path).read_bytes() == (two / path).read_bytes() for path in shown)


class Crash(BaseException):
    """As sudden as it gets inside one process."""


def crash_at(step: int, kind: str):
    def tell(event: Event) -> None:
        if event.kind == kind and event.step == step:
            raise Crash

    return tell


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    fit(TOY, ToySettings(), folder)
    return folder


@pytest.mark.parametrize("kind", ["step", "log", "validation", "checkpoint"])
def test_a_run_that_crashed_at_any_moment_resumes_to_the_same_bits(kind, whole, tmp_path):
    moments = {"step": range(1, 23, 4), "log": (3, 9, 21), "validation": (5, 10, 20), "checkpoint": (4, 8, 20)}[kind]
    for step in moments:
        folder = tmp_path / f"{kind}-{step}"
        with pytest.raises(Crash):
            fit(TOY, ToySettings(), folder, tell=crash_at(step, kind))
        fit(TOY, ToySettings(), folder, resume=True)
        assert_same(whole, folder)


def test_a_run_may_crash_again_and_again(whole, tmp_path):
    folder, done = tmp_path / "run", False
    for step in (1, 6, 7, 13, 18, 22):
        with pytest.raises(Crash):
            fit(TOY, ToySettings(), folder, resume=done, tell=crash_at(step, "step"))
        done = True
    fit(TOY, ToySettings(), folder, resume=True)
    assert_same(whole, folder)


def test_workers_change_nothing(whole, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(Crash):
        fit(TOY, ToySettings(num_workers=2), folder, tell=crash_at(10, "step"))
    fit(TOY, ToySettings(num_workers=2), folder, resume=True)
    ours, theirs = outcome(folder)[0], outcome(whole)[0]
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_a_signal_finishes_the_step_saves_and_says_so(whole, tmp_path):
    folder = tmp_path / "run"

    def tell(event: Event) -> None:
        if event.kind == "step" and event.step == 7:
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    result = fit(TOY, ToySettings(), folder, tell=tell)
    assert (result.code, signal.getsignal(signal.SIGTERM)) == (143, before)
    assert result.step in (7, 8)
    assert not (folder / "model").exists()
    assert fit(TOY, ToySettings(), folder, resume=True).code == 0
    assert_same(whole, folder)


KILLED = """
import sys; sys.path.insert(0, {root!r})
from pathlib import Path
from regard.training.fit import fit
from tests.training.toy import Toy, ToySettings
folder = Path({folder!r})
fit(Toy(), ToySettings(pause=0.004), folder, resume=(folder / "run.json").exists())
"""


def killed_again_and_again(folder: Path, times: int, seed: int) -> int:
    """How often a process that trains there was killed before it came to its end."""
    import random

    code = KILLED.format(root=str(Path(__file__).parents[2]), folder=str(folder))
    draw, kills = random.Random(seed), 0
    while kills < times:
        process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
        marks = (folder / HISTORY, folder / "run.json")
        deadline = time.monotonic() + 60
        while not any(mark.exists() for mark in marks) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(draw.uniform(0.0, 0.25))
        if process.poll() is None:
            process.kill()
            kills += 1
            process.wait()
            continue
        assert process.wait() == 0, process.stderr.read().decode()
        break
    return kills


def finish_killed(folder: Path) -> None:
    code = KILLED.format(root=str(Path(__file__).parents[2]), folder=str(folder))
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_five_kills_leave_the_same_bits(tmp_path):
    fit(TOY, ToySettings(pause=0.004), tmp_path / "whole")
    kills = killed_again_and_again(tmp_path / "run", 5, seed=0)
    finish_killed(tmp_path / "run") if kills == 5 else None
    assert kills >= 1
    assert_same(tmp_path / "whole", tmp_path / "run")


@pytest.mark.slow
def test_a_hundred_kills_leave_the_same_bits(tmp_path):
    fit(TOY, ToySettings(pause=0.004), tmp_path / "whole")
    total, number = 0, 0
    while total < 100:
        folder = tmp_path / f"run-{number}"
        kills = killed_again_and_again(folder, 100 - total, seed=number)
        if total + kills >= 100:
            finish_killed(folder)
        assert_same(tmp_path / "whole", folder)
        total, number = total + kills, number + 1
    assert total >= 100


@pytest.mark.parametrize("accumulate", [2, 3, 5])
def test_accumulated_parts_equal_the_big_batch(accumulate, tmp_path):
    plain = ToySettings(dropout=0.0, steps=6)
    fit(TOY, plain, tmp_path / "one")
    fit(TOY, plain.model_copy(update={"accumulate": accumulate}), tmp_path / "parts")
    ours, theirs = outcome(tmp_path / "parts")[0], outcome(tmp_path / "one")[0]
    for name in (name for name in theirs if name.startswith("model.")):
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-5, atol=1e-6)


OPTIMIZERS = {
    "adamw": lambda weights, lr: torch.optim.AdamW(weights, lr=lr, betas=(0.9, 0.98), weight_decay=0.01),
    "sgd": lambda weights, lr: torch.optim.SGD(weights, lr=lr, momentum=0.7, weight_decay=0.01),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_update_is_that_of_plain_torch(optimizer, tmp_path):
    how = {"optimizer": optimizer, "momentum": 0.7, "lr_schedule": "constant", "warmup_steps": 0, "grad_clip": 0.5}
    settings = ToySettings(dropout=0.0, steps=5, **how)
    torch.manual_seed(settings.seed)
    work = TOY.prepare(settings, tmp_path)
    theirs = OPTIMIZERS[optimizer](work.model.parameters(), settings.lr)
    for indices in work.batches(0)[:5]:
        x, y = work.collate(indices)
        theirs.zero_grad()
        (work.model(x) - y).square().mean().backward()
        nn.utils.clip_grad_norm_(work.model.parameters(), 0.5)
        theirs.step()
    fit(TOY, settings, tmp_path / "run")
    ours = outcome(tmp_path / "run")[0]
    for name, value in work.model.state_dict().items():
        torch.testing.assert_close(ours[f"model.{name}"], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("momentum", [0.9, 0.0])
def test_a_run_by_sgd_resumes_to_the_same_bits(momentum, tmp_path):
    settings = ToySettings(optimizer="sgd", momentum=momentum, lr=0.05)
    fit(TOY, settings, tmp_path / "whole")
    with pytest.raises(Crash):
        fit(TOY, settings, tmp_path / "run", tell=crash_at(11, "step"))
    fit(TOY, settings, tmp_path / "run", resume=True)
    assert_same(tmp_path / "whole", tmp_path / "run")


def test_a_loss_that_is_no_number_names_step_batch_and_checkpoint(tmp_path):
    with pytest.raises(RunError, match=r"no number at step \d+, batch \d+ of epoch 0 \(examples .*checkpoint is"):
        fit(TOY, ToySettings(poison=17), tmp_path / "run")


def test_a_second_process_on_the_same_folder_is_refused(tmp_path):
    def tell(event: Event) -> None:
        if event.kind == "step" and event.step == 2:
            with pytest.raises(RunError, match=f"another process .id {os.getpid()}. is training"):
                fit(TOY, ToySettings(), tmp_path / "run", resume=True)

    fit(TOY, ToySettings(steps=4), tmp_path / "run", tell=tell)
    with pytest.raises(RunError, match="already holds a run; go on with --resume"):
        fit(TOY, ToySettings(), tmp_path / "run")


def test_it_stops_when_nothing_gets_better(tmp_path):
    settings = ToySettings(lr=1e-12, steps=1000, eval_every=2, patience=3, dropout=0.0)
    result = fit(TOY, settings, tmp_path / "run")
    assert result.step <= 40
    assert (tmp_path / "run" / "model" / "model.json").exists()


def test_the_last_checkpoints_are_averaged(tmp_path):
    fit(TOY, ToySettings(steps=16, average_checkpoints=3, lr=0.2, lr_schedule="constant"), tmp_path / "run")
    kept = [checkpoint.read(place) for place in checkpoint.list_checkpoints(tmp_path / "run" / "checkpoints")]
    last = [one for one in kept if one.step in (8, 12, 16)]
    assert len(last) == 3
    want = [
        sum(one.tensors[f"model.{name}"].double() for one in last).div(3).sum().item()
        for name in ("0.weight", "0.bias", "3.weight", "3.bias")
    ]
    made = json.loads((tmp_path / "run" / "model" / "model.json").read_text())
    assert made["sum"] == pytest.approx(want, rel=1e-4)
    assert "average of the last 3" in made["weights_of"]


def test_early_weights_do_not_spoil_the_result(tmp_path):
    """Where the best checkpoint is better than the average, it is the result, and the model says so."""
    settings = ToySettings(
        steps=12, average_checkpoints=3, lr=0.1, dropout=0.0, eval_every=1, save_every=1, keep_checkpoints=12
    )
    result = fit(TOY, settings, tmp_path / "run")
    kept = [checkpoint.read(place) for place in checkpoint.list_checkpoints(tmp_path / "run" / "checkpoints")]
    losses = {
        line["step"]: line["validation"] for line in RunFolder(tmp_path / "run").history() if "validation" in line
    }
    best = min(kept, key=lambda one: losses[one.step]["loss"])
    made = json.loads((tmp_path / "run" / "model" / "model.json").read_text())
    assert made["weights_of"] == f"step {best.step}, which is better than the average of the last 3 checkpoints"
    assert result.scores == made["scores"] == losses[best.step]
    names = ("0.weight", "0.bias", "3.weight", "3.bias")
    assert made["sum"] == pytest.approx([best.tensors[f"model.{name}"].sum().item() for name in names], rel=1e-4)


def test_the_best_weights_are_saved_also_between_two_planned_checkpoints(tmp_path):
    settings = ToySettings(steps=16, lr=5.0, lr_schedule="constant", warmup_steps=12, eval_every=3, save_every=4)
    fit(TOY, settings, tmp_path / "run")
    losses = {
        line["step"]: line["validation"] for line in RunFolder(tmp_path / "run").history() if "validation" in line
    }
    best = min(losses, key=lambda step: losses[step]["loss"])
    assert best % 4, "a step at which nothing was planned to be saved"
    made = json.loads((tmp_path / "run" / "model" / "model.json").read_text())
    assert (made["weights_of"], made["scores"]) == (f"step {best}", losses[best])


@pytest.mark.parametrize("average", [0, 2])
def test_best_weights_that_were_damaged_are_told_and_not_used(average, tmp_path):
    settings = ToySettings(
        steps=16,
        average_checkpoints=average,
        lr=5.0,
        lr_schedule="constant",
        warmup_steps=12,
        eval_every=3,
        save_every=4,
    )
    told: list[str] = []

    def tell(event: Event) -> None:
        if event.kind == "validation" and event.step == 16:
            last = checkpoint.read(checkpoint.list_checkpoints(tmp_path / "run" / "checkpoints")[-1])
            best = tmp_path / "run" / "checkpoints" / checkpoint.name_of(last.facts["place"]["best_step"])
            flip(best / "state.safetensors", -3)
        if event.kind == "notice":
            told.append(event.facts["text"])

    fit(TOY, settings, tmp_path / "run", tell=tell)
    wanted = "the average of the last 2 checkpoints" if average else "step 16"
    assert json.loads((tmp_path / "run" / "model" / "model.json").read_text())["weights_of"] == wanted
    assert len(told) == 1
    assert "cannot be used (state.safetensors is not what was written)" in told[0]
    assert told[0].endswith(f"the result is {wanted}")


def flip(path: Path, place: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(bytes(data))


OPERATIONS = ["open", "write", "fsync", "replace"]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("when", range(4))
def test_a_save_that_fails_anywhere_leaves_the_older_checkpoint(operation, when, tmp_path, monkeypatch):
    """Every write, flush and rename of one save fails in turn, as on a full disk."""
    folder = tmp_path / "checkpoints"
    older = checkpoint.Checkpoint(4, {"scheduled": True}, {"x": torch.arange(7.0)})
    checkpoint.write(folder, older)
    calls = {"count": 0}

    def failing(real):
        def call(*args, **named):
            calls["count"] += 1
            if calls["count"] == when + 1:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*args, **named)

        return call

    if operation == "fsync":
        monkeypatch.setattr(os, "fsync", failing(os.fsync))
    elif operation == "replace":
        monkeypatch.setattr(os, "replace", failing(os.replace))
    elif operation == "open":
        monkeypatch.setattr(Path, "open", failing(Path.open))
    else:
        monkeypatch.setattr(checkpoint, "write_synced", failing(checkpoint.write_synced))
    newer = checkpoint.Checkpoint(8, {"scheduled": True}, {"x": torch.arange(9.0)})
    try:
        checkpoint.write(folder, newer)
        failed = False
    except OSError:
        failed = True
    monkeypatch.undo()
    found = checkpoint.newest(folder)
    assert found is not None
    assert found.step in ((4, 8) if failed else (8,))
    assert torch.equal(found.tensors["x"], torch.arange(7.0 if found.step == 4 else 9.0))
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        path.name for path in checkpoint.list_checkpoints(folder)
    )


def test_a_full_disk_is_told_in_one_sentence_and_the_run_goes_on_later(whole, tmp_path, monkeypatch):
    real, calls = os.fsync, {"count": 0}

    def full(handle: int) -> None:
        calls["count"] += 1
        if calls["count"] > 14:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left on device"):
        fit(TOY, ToySettings(), tmp_path / "run")
    monkeypatch.undo()
    fit(TOY, ToySettings(), tmp_path / "run", resume=True)
    assert_same(whole, tmp_path / "run")


def test_a_damaged_checkpoint_is_not_used(whole, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(Crash):
        fit(TOY, ToySettings(), folder, tell=crash_at(14, "step"))
    flip(checkpoint.list_checkpoints(folder / "checkpoints")[-1] / "state.safetensors", -3)
    fit(TOY, ToySettings(), folder, resume=True)
    assert_same(whole, folder)


def test_a_run_of_a_newer_version_and_no_run_at_all_are_refused(tmp_path):
    with pytest.raises(RunError, match="holds no run that can be read"):
        RunFolder.open(tmp_path)
    (tmp_path / "run.json").write_text('{"format": "regard-run/9"}')
    with pytest.raises(RunError, match="has format 'regard-run/9', but 'regard-run/2' is read here"):
        RunFolder.open(tmp_path)


def test_what_cannot_begin_leaves_the_folder_free(tmp_path):
    class Wrong(Toy):
        def prepare(self, settings, folder):
            raise RunError("the data is not there")

    with pytest.raises(RunError, match="the data is not there"):
        fit(Wrong(), ToySettings(), tmp_path / "run")
    assert fit(TOY, ToySettings(steps=2), tmp_path / "run").step == 2


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written to"):
        fit(TOY, ToySettings(), tmp_path / "file" / "run")


def test_memory_that_was_freed_goes_back_with_every_line_of_the_log(tmp_path, monkeypatch):
    happened: list[str] = []
    monkeypatch.setattr("regard.training.fit.give_back", lambda: happened.append("given back"))
    fit(TOY, ToySettings(log_every=3, steps=10), tmp_path / "run", tell=lambda event: happened.append(event.kind))
    logs = [at for at, kind in enumerate(happened) if kind == "log"]
    assert len(logs) >= 4
    assert [happened[at - 1] for at in logs] == ["given back"] * len(logs)
    assert happened.count("given back") == len(logs)
