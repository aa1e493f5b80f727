"""Several processes that train together, forked from this one: nothing is loaded twice, so they start at once."""

import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # loaded here once rather than by every process that optimises
import torch.distributed.fsdp

from regard.errors import RegardError
from regard.training import checkpoint
from regard.training.run import RunFolder

FORK = multiprocessing.get_context("fork")


class Crew:
    """Processes that each call `work(rank)`. What they say on the standard error lies in `said`."""

    def __init__(self, world: int, work: Callable[[int], Any], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.said = [folder / f"said-{rank}" for rank in range(world)]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        given = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(world)}
        self.processes = [
            FORK.Process(target=member, args=(work, given | {"RANK": str(rank)}, said), daemon=False)
            for rank, said in enumerate(self.said)
        ]
        for process in self.processes:
            process.start()

    def codes(self, seconds: float = 60) -> list[int | None]:
        """How each ended; None where one did not within so many seconds, and is killed."""
        deadline = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
        found = [process.exitcode for process in self.processes]
        for process in self.processes:
            process.kill()
            process.join()
        return found

    def told(self) -> list[str]:
        return [path.read_text() for path in self.said]


def member(work: Callable[[int], Any], given: dict[str, str], said: Path) -> None:
    os.environ.update(given)
    with said.open("w") as file:
        os.dup2(file.fileno(), 2)
        sys.stderr = os.fdopen(2, "w", buffering=1)
        torch.set_num_threads(1)
        try:
            code = work(int(given["RANK"]))
        except RegardError as error:
            print(error, file=sys.stderr)
            code = 2
        sys.stderr.flush()
        sys.exit(code or 0)


def train(world: int, work: Callable[[int], Any], folder: Path, wanted: int = 0) -> None:
    """Let a crew work to its end, each process with this exit code."""
    crew = Crew(world, work, folder)
    codes = crew.codes()
    assert codes == [wanted] * world, (codes, crew.told())


def wait_for(there: Callable[[], Any], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def children(process: int) -> set[int]:
    """The processes that this one started and that were not waited for."""
    try:
        return {int(x) for x in Path(f"/proc/{process}/task/{process}/children").read_text().split()}
    except OSError:
        return set()


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    last = checkpoint.newest(folder / "checkpoints")
    assert last is not None
    return last.tensors


def assert_near(one: Path, two: Path, but: str = "nothing") -> None:
    """The same history to 1e-5, the same tensors by name, and the same weights to 1e-5."""
    ours, theirs = RunFolder(one).history(), RunFolder(two).history()
    assert [line.keys() for line in ours] == [line.keys() for line in theirs]
    assert len(ours) > 1
    for line, other in zip(ours, theirs):
        for name in line:
            near(line[name], other[name], f"{name} at {line['step']}")
    ours, theirs = tensors(one), tensors(two)
    assert ours.keys() == theirs.keys()
    for name in ours:
        if name.startswith("model.") and not name.endswith(but):
            far = (ours[name] - theirs[name]).abs().max()
            assert far <= 1e-5, (name, far)


def near(one: Any, two: Any, what: str) -> None:
    if isinstance(one, dict):
        assert one.keys() == two.keys()
        for name in one:
            near(one[name], two[name], f"{what}, {name}")
    else:
        assert abs(one - two) <= 1e-5 * max(1, abs(one)), (what, one, two)


def assert_same_bits(one: Path, two: Path) -> None:
    ours, theirs = tensors(one), tensors(two)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert (one / "history.jsonl").read_bytes() == (two / "history.jsonl").read_bytes()
