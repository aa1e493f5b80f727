"""Several processes train what one would have trained, and end together."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

from regard.errors import RunError
from regard.training import checkpoint
from regard.training.distributed import PATIENCE, ProcessGroup, distributed
from regard.training.fit import fit
from regard.training.loss import Loss
from tests.training.crew import Crew, alive, assert_near, assert_same_bits, children, tensors, train, wait_for
from tests.training.toy import Toy, ToySettings, ToyWork

SHORT = {"steps": 14}
STILL = SHORT | {"dropout": 0.0}
WAYS = {
    "ddp": {},
    "in three parts": {"gradient_accumulation": 3},
    "one example for all": {"batch_tokens": 1},  # so that all processes but one have nothing to do
    "fsdp": {"parallel": "fsdp"},
    "fsdp in two parts": {"parallel": "fsdp", "gradient_accumulation": 2},
    "fsdp, one example for all": {"parallel": "fsdp", "batch_tokens": 1},
}
PARTLY = {"ddp": True, "fsdp": False}  # fsdp wants all processes to use the same weights


class Stopped(Toy):
    """One process gets a signal in the middle of the update with this number, counted from where the run stands."""

    def __init__(self, update: int, who: int, number: int = signal.SIGTERM) -> None:
        self.update, self.who, self.number = update, who, number

    def prepare(self, settings: ToySettings, folder: Path) -> ToyWork:
        outer, count = self, 0

        class Work(ToyWork):
            def loss(self, model: nn.Module, batch: Any) -> Loss:
                nonlocal count
                count += 1
                if count == outer.update and int(os.environ.get("RANK", "0")) == outer.who:
                    os.kill(os.getpid(), outer.number)
                return super().loss(model, batch)

        return Work(settings, folder)


class Partly(Toy):
    """A model with weights that are never used, tied ones, and perhaps some that not every process uses each time."""

    def __init__(self, *, seldom: bool) -> None:
        self.seldom = seldom

    def prepare(self, settings: ToySettings, folder: Path) -> ToyWork:
        work, seldom = ToyWork(settings, folder), self.seldom

        class Model(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner, self.never, self.seldom = work.model, nn.Linear(5, 3), nn.Linear(6, 1)
                self.again = self.inner[0]

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                found = self.inner(x) + self.again(x).mean(1, keepdim=True)
                rows = (x[:, 0] > 0.7).nonzero().flatten() if seldom else torch.arange(len(x))
                return found.index_add(0, rows, self.seldom(x[rows])) if len(rows) or not seldom else found

        work.model = Model()
        return work


class Slow(Toy):
    """The first process validates for a long time."""

    def __init__(self, seconds: float, sign: Path | None = None) -> None:
        self.seconds, self.sign = seconds, sign

    def prepare(self, settings: ToySettings, folder: Path) -> ToyWork:
        outer = self

        class Work(ToyWork):
            def validate(self, model: nn.Module) -> dict[str, float]:
                if outer.sign is not None:
                    outer.sign.touch()
                time.sleep(outer.seconds)
                return super().validate(model)

        return Work(settings, folder)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with every run that one process and two processes make of the ways above, and some to compare with."""
    place = tmp_path_factory.mktemp("group")
    torch.set_num_threads(1)

    def alone(name: str, **settings: Any) -> None:
        fit(Toy(), ToySettings(**STILL | settings), place / "one" / name)

    for name, settings in WAYS.items():
        if settings.get("parallel") != "fsdp":
            alone(name, **settings)
    for how, seldom in PARTLY.items():
        fit(Partly(seldom=seldom), ToySettings(**STILL), place / "one" / f"partly {how}")

    def two(rank: int) -> None:
        with distributed():
            for name, settings in WAYS.items():
                fit(Toy(), ToySettings(**STILL | settings), place / "two" / name)
            fit(Toy(), ToySettings(**SHORT), place / "two" / "dropout")
            for how, seldom in PARTLY.items():
                fit(Partly(seldom=seldom), ToySettings(**STILL, parallel=how), place / "two" / f"partly {how}")

    train(2, two, place / "said")
    return place


@pytest.mark.parametrize("name", WAYS)
def test_two_processes_make_what_one_makes(name, place):
    one = place / "one" / name.replace("fsdp, ", "").replace("fsdp in two parts", "ddp").replace("fsdp", "ddp")
    assert_near(place / "two" / name, one)


@pytest.mark.parametrize("how", ["ddp", "fsdp"])
def test_weights_that_are_not_used_keep_nobody_waiting(how, place):
    assert_near(place / "two" / f"partly {how}", place / "one" / f"partly {how}")
    found = tensors(place / "two" / f"partly {how}")
    assert not [name for name in found if "again" in name or ("optimizer" in name and "never" in name)]
    torch.manual_seed(0)
    fresh = Partly(seldom=True).prepare(ToySettings(**SHORT), place).model.state_dict()
    assert torch.equal(found["model.never.weight"], fresh["never.weight"])


@pytest.mark.parametrize("name", ["ddp", "fsdp"])
def test_only_the_first_process_writes(name, place):
    def files(folder: Path) -> list[str]:
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))

    assert files(place / "two" / name) == files(place / "one" / "ddp")
    lines = (place / "two" / name / "timing.jsonl").read_text().splitlines()
    assert len(lines) == len((place / "one" / "ddp" / "timing.jsonl").read_text().splitlines())


def test_nobody_says_anything_when_all_goes_well(place):
    assert [path.read_text() for path in sorted((place / "said").iterdir())] == ["", ""]


@pytest.mark.parametrize("who", [0, 1])
def test_a_signal_to_one_process_stops_all_and_the_same_number_goes_on_to_the_same_bits(who, place, tmp_path):
    folder = tmp_path / "run"

    def first(rank: int) -> int:
        result = fit(Stopped(7, who), ToySettings(**SHORT), folder)
        assert result.step == 7
        return result.code

    train(2, first, tmp_path / "said", wanted=143)
    assert [at.name for at in checkpoint.list_checkpoints(folder / "checkpoints")][-1] == checkpoint.name_of(7)
    assert not (folder / "model").exists()
    train(2, lambda rank: fit(Toy(), ToySettings(**SHORT), folder, resume=True).code, tmp_path / "said")
    assert_same_bits(folder, place / "two" / "dropout")


@pytest.mark.parametrize(
    ("crews", "hows"),
    [
        ((2, 1, 2), ("ddp", "ddp", "ddp")),
        ((2, 2, 2), ("ddp", "fsdp", "ddp")),
        pytest.param((1, 3, 2), ("ddp", "fsdp", "fsdp"), marks=pytest.mark.slow),
    ],
    ids=lambda x: "-".join(map(str, x)),
)
def test_a_run_goes_on_with_more_or_fewer_processes(crews, hows, place, tmp_path):
    for number, (world, how) in enumerate(zip(crews, hows)):
        last, resume = number == len(crews) - 1, number > 0
        task = Toy() if last else Stopped(5, world - 1, signal.SIGINT)

        def go(rank: int, task: Toy = task, how: str = how, resume: bool = resume) -> int:
            return fit(task, ToySettings(**STILL, parallel=how), tmp_path / "run", resume=resume).code

        train(world, go, tmp_path / "said", wanted=0 if last else 130)
    assert_near(tmp_path / "run", place / "one" / "ddp")


@pytest.mark.parametrize(("world", "how"), [(3, "ddp"), pytest.param(4, "fsdp", marks=pytest.mark.slow)])
def test_a_larger_crew_goes_on_to_the_same_bits(world, how, tmp_path):
    settings = ToySettings(parallel=how, steps=13)
    train(world, lambda rank: fit(Toy(), settings, tmp_path / "whole").code, tmp_path / "said")
    train(world, lambda rank: fit(Stopped(6, 1), settings, tmp_path / "run").code, tmp_path / "said", wanted=143)
    train(world, lambda rank: fit(Toy(), settings, tmp_path / "run", resume=True).code, tmp_path / "said")
    assert_same_bits(tmp_path / "run", tmp_path / "whole")


@pytest.mark.parametrize("who", [0, 1])
def test_when_one_process_is_killed_the_others_end_and_the_run_goes_on(who, place, tmp_path):
    folder = tmp_path / "run"
    crew = Crew(2, lambda rank: fit(Toy(), ToySettings(**STILL, pause=0.02), folder).code, tmp_path / "said")
    wait_for(lambda: (folder / "checkpoints" / checkpoint.name_of(8)).exists())
    began = time.monotonic()
    os.kill(crew.processes[who].pid, signal.SIGKILL)
    codes = crew.codes(20)
    assert (codes[who], codes[1 - who]) == (-9, 2)
    assert time.monotonic() - began < 10
    said = crew.told()[1 - who]
    assert said.startswith(f"process {1 - who} of 2 lost another one (")
    assert said.endswith("; start again with --resume\n")
    assert checkpoint.newest(folder / "checkpoints").step in (8, 10, 12)
    train(2, lambda rank: fit(Toy(), ToySettings(**STILL), folder, resume=True).code, tmp_path / "said")
    assert_same_bits(folder, place / "two" / "ddp")


def test_a_process_that_dies_while_the_first_validates_is_noticed_afterwards(tmp_path):
    sign = tmp_path / "validating"
    crew = Crew(2, lambda rank: fit(Slow(1.0, sign), ToySettings(**STILL), tmp_path / "run").code, tmp_path / "said")
    wait_for(sign.exists)
    os.kill(crew.processes[1].pid, signal.SIGKILL)
    assert crew.codes(20) == [2, -9]
    assert checkpoint.newest(tmp_path / "run" / "checkpoints").step == 5  # saved before it was validated


def test_the_others_wait_for_a_long_validation_as_long_as_the_timeout_says(tmp_path):
    def hurried(rank: int) -> int:
        with distributed(timeout=timedelta(seconds=0.6)):
            return fit(Slow(1.5), ToySettings(**STILL | {"steps": 5}), tmp_path / "run").code

    crew = Crew(2, hurried, tmp_path / "said")
    assert crew.codes(20) == [2, 2]
    assert "imed out" in crew.told()[1]
    assert timedelta(hours=3) <= PATIENCE

    def patient(rank: int) -> bool:
        with distributed() as group:
            group.wait()  # the first one keeps what they all meet through, and must not leave before they did
            return dist.group.WORLD._get_backend(torch.device("cpu")).options._timeout != PATIENCE

    train(2, patient, tmp_path / "said")


def test_all_processes_write_where_the_first_one_says(tmp_path):
    train(2, lambda rank: fit(Toy(), ToySettings(steps=3), tmp_path / f"run-{rank}").code, tmp_path / "said")
    assert (tmp_path / "run-0" / "model").is_dir()
    assert not (tmp_path / "run-1").exists()


def test_processes_that_do_not_see_the_same_folder_are_refused(tmp_path):
    def elsewhere(rank: int) -> int:
        os.chdir(made(tmp_path / f"machine-{rank}"))
        return fit(Toy(), ToySettings(steps=3), Path("run")).code

    crew = Crew(2, elsewhere, tmp_path / "said")
    assert crew.codes(20) == [2, 2]
    assert "run holds no run that can be read" in crew.told()[1]


def test_processes_that_see_other_checkpoints_are_refused(tmp_path):
    for rank in range(2):
        fit(Toy(), ToySettings(steps=3 + rank), made(tmp_path / f"machine-{rank}") / "run")

    def elsewhere(rank: int) -> int:
        os.chdir(tmp_path / f"machine-{rank}")
        return fit(Toy(), ToySettings(steps=5), Path("run"), resume=True).code

    crew = Crew(2, elsewhere, tmp_path / "said")
    assert crew.codes(20) == [2, 2]
    assert "process 1 sees other checkpoints in run than the first one; give all processes the same" in crew.told()[1]


def made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_what_goes_wrong_in_one_process_is_said_by_all(tmp_path):
    crew = Crew(2, lambda rank: fit(Toy(), ToySettings(poison=17), tmp_path / "run").code, tmp_path / "said")
    assert crew.codes(20) == [2, 2]
    assert all("is no number at step" in said for said in crew.told())


def test_processes_that_nobody_started_together_are_told_so(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    with (
        pytest.raises(RunError, match=r"WORLD_SIZE is 2, but .* did not meet .*start them with torchrun"),
        distributed(),
    ):
        pass


def test_alone_nothing_is_shared_and_nothing_waits():
    group = ProcessGroup()
    module = nn.Linear(3, 2)
    assert (group.first, group.add(1.5, 2.0), group.share({"a": None})) == (True, [1.5, 2.0], {"a": None})
    assert group.wrap(module, "ddp") is group.wrap(module, "fsdp") is module
    group.wait()


def test_the_first_one_is_heard_by_all(tmp_path):
    said = {"bleu": 0.1 + 0.2, "名": [None, True, 3], "none": float("inf")}

    def listen(rank: int) -> int:
        with distributed() as group:
            heard = group.share(said if rank == 0 else "something else")
            added = group.add(0.1, float(rank))
        return 0 if heard == said and added == [0.1 + 0.1 + 0.1, 3.0] else 1

    train(3, listen, tmp_path)


# torchrun itself


def torchrun(world: int, *words: str, **options: Any) -> subprocess.Popen:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world), *words]
    said = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, **said | options)


SCRIPT = str(Path(__file__).with_name("toy_run.py"))


def jobs(folder: Path, **settings: Any) -> str:
    return json.dumps([{"folder": str(folder), "resume": folder.exists(), "settings": STILL | settings}])


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_torchrun_stops_all_after_saving(number, place, tmp_path):
    folder = tmp_path / "run"
    with torchrun(2, SCRIPT, jobs(folder, pause=0.1)) as process:
        wait_for(lambda: (folder / "checkpoints" / checkpoint.name_of(4)).exists(), 60)
        time.sleep(0.15)
        workers = children(process.pid)
        process.send_signal(number)
        said = process.communicate(timeout=60)[0]
    assert len(workers) == 2
    assert not any(map(alive, workers))
    assert "lost another" not in said
    last = checkpoint.newest(folder / "checkpoints").step
    assert 4 < last < 14
    train(2, lambda rank: fit(Toy(), ToySettings(**STILL), folder, resume=True).code, tmp_path / "said")
    assert_same_bits(folder, place / "two" / "ddp")


@pytest.mark.slow
@pytest.mark.parametrize("who", [0, 1])
def test_torchrun_ends_when_a_process_is_killed(who, place, tmp_path):
    folder = tmp_path / "run"
    with torchrun(2, SCRIPT, jobs(folder, pause=0.1)) as process:
        wait_for(lambda: (folder / "checkpoints" / checkpoint.name_of(4)).exists(), 60)
        workers = children(process.pid)
        by_rank = {rank_of(one): one for one in workers}
        os.kill(by_rank[who], signal.SIGKILL)
        process.communicate(timeout=30)
    assert process.returncode == 1
    assert not any(map(alive, workers))
    with torchrun(2, SCRIPT, jobs(folder)) as process:
        said = process.communicate(timeout=60)[0]
    assert (process.returncode, said) == (0, "")
    assert_same_bits(folder, place / "two" / "ddp")


def rank_of(process: int) -> int:
    given = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    return next(int(one.partition(b"=")[2]) for one in given if one.startswith(b"RANK="))
