"""Data workers work through signals, and never outlive the run."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from regard.errors import RunError
from regard.training import checkpoint
from regard.training.fit import Event, fit
from tests.training.crew import Crew, alive, children, wait_for
from tests.training.toy import Toy, ToySettings, ToyWork


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_a_whole_group_leaves_the_workers_at_work_until_all_is_saved(number, tmp_path):
    """As Ctrl-C in a terminal, torchrun and job schedulers do it."""
    folder = tmp_path / "run"

    def work(rank: int) -> int:
        os.setsid()
        return fit(Toy(), ToySettings(num_workers=2, pause=0.02, steps=500), folder).code

    crew = Crew(1, work, tmp_path / "said")
    wait_for(lambda: (folder / "checkpoints" / checkpoint.name_of(4)).exists())
    main = crew.processes[0].pid
    workers = children(main)
    assert len(workers) == 2
    os.killpg(main, number)
    assert crew.codes(20) == [128 + number]
    assert crew.told() == [""]
    wait_for(lambda: not any(map(alive, workers)), 10)


def test_workers_end_when_the_process_they_work_for_is_killed(tmp_path):
    folder = tmp_path / "run"

    def work(rank: int) -> int:
        from torch.utils.data._utils import worker

        worker.MP_STATUS_CHECK_INTERVAL = 0.1  # how often they look after it, in seconds
        return fit(Toy(), ToySettings(num_workers=2, pause=0.02, steps=500), folder).code

    crew = Crew(1, work, tmp_path / "said")
    wait_for(lambda: (folder / "checkpoints" / checkpoint.name_of(4)).exists())
    workers = children(crew.processes[0].pid)
    assert len(workers) == 2
    os.kill(crew.processes[0].pid, signal.SIGKILL)
    wait_for(lambda: not any(map(alive, workers)), 10)
    assert crew.codes() == [-9]


class Broken(Toy):
    """An example that a worker cannot put together."""

    def prepare(self, settings: ToySettings, folder: Path) -> ToyWork:
        class Work(ToyWork):
            def collate(self, indices: Any) -> Any:
                if 17 in indices:
                    raise RunError("as if")
                return super().collate(indices)

        return Work(settings, folder)


@pytest.mark.parametrize("ended", ["finished", "crashed", "broken"])
def test_workers_are_gone_when_the_run_is(ended, tmp_path):
    seen: set[int] = set()
    task = Broken() if ended == "broken" else Toy()

    def tell(event: Event) -> None:
        seen.update(children(os.getpid()) - before)
        if event.kind == "step" and event.step == 9 and ended == "crashed":
            raise RunError("as if")

    before = children(os.getpid())
    if ended == "finished":
        fit(task, ToySettings(num_workers=2), tmp_path / "run", tell=tell)
    else:
        with pytest.raises(RunError, match="as if") as held:  # and with it all that its traceback holds
            fit(task, ToySettings(num_workers=2), tmp_path / "run", tell=tell)
        assert held.value.__traceback__ is not None
    assert len(seen) >= 2
    assert not any(map(alive, seen))
