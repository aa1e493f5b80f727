"""Runs of the toy that end in all kinds of ways, and what must be the same of them."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from regard.training import checkpoint
from regard.training.fit import Event, fit
from regard.training.run import HISTORY
from tests.training.toy import Toy, ToySettings


def outcome(folder: Path) -> dict[str, Any]:
    """All that must be the same: every checkpoint that is left, the history, what was shown, the exported model."""
    kept = [checkpoint.read(place) for place in checkpoint.list_checkpoints(folder / "checkpoints")]
    return {
        "checkpoints": {one.step: one.facts["place"] for one in kept},
        "tensors": {f"{one.step} {name}": tensor for one in kept for name, tensor in one.tensors.items()},
        "history": (folder / HISTORY).read_text(),
        "shown": {str(path.relative_to(folder)): path.read_bytes() for path in (folder / "shown").rglob("*.json")},
        "model": (folder / "model" / "model.json").read_text(),
        "litter": sorted(path.name for path in folder.rglob("*.part")),
    }


def assert_same(one: Path, two: Path) -> None:
    ours, theirs = outcome(one), outcome(two)
    weights, others = ours.pop("tensors"), theirs.pop("tensors")
    assert ours == theirs
    assert weights.keys() == others.keys()
    assert [name for name in weights if not torch.equal(weights[name], others[name])] == []


def at(kind: str, step: int, act: Callable[[], None]) -> Callable[[Event], None]:
    """Somebody who does something when this is told, once."""
    done: list[Event] = []

    def tell(event: Event) -> None:
        if event.kind == kind and event.step == step and not done:
            done.append(event)
            act()

    return tell


def forked(work: Callable[[], Any]) -> int:
    """Do this in a process of its own, forked from this one: how it ended, minus the signal where one killed it."""
    process = os.fork()
    if process == 0:
        code = 99
        try:
            torch.set_num_threads(1)
            work()
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def stop_by(number: int, kind: str, step: int, settings: ToySettings, folder: Path, *, resume: bool = False) -> None:
    """Train until a signal comes at this moment; what cannot be caught ends a process of its own."""
    tell = at(kind, step, lambda: os.kill(os.getpid(), number))
    if number == signal.SIGKILL:
        assert forked(lambda: fit(Toy(), settings, folder, resume=resume, tell=tell)) == -9
    else:
        assert fit(Toy(), settings, folder, resume=resume, tell=tell).code == 128 + number
