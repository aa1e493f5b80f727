"""What Windows lacks is taken away in a process of its own, and training works there all the same."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Nothing of POSIX that Windows has not: no fcntl, no folder that can be opened, no fork, fewer signals. Other libraries
# were built for this system, so those that need it are loaded before.
LACKING = """
import os, shutil, sys, signal, warnings
import torch, torch.distributed, torch.utils.data, tokenizers, matplotlib.figure, fastapi, uvicorn, anywidget
sys.path.insert(0, {root!r})
for name in ("fcntl", "pwd", "grp", "resource", "termios"):
    sys.modules[name] = None
opened = os.open
def open_file(path, *given, **named):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", str(path))
    return opened(path, *given, **named)
os.open = open_file
shutil._use_fd_functions = False
for name in ("fork", "forkpty", "killpg", "setsid", "sched_getaffinity", "register_at_fork"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGUSR1", "SIGUSR2", "SIGHUP", "SIGKILL", "SIGALRM", "SIGTERM" if {no_term} else "SIGPIPE"):
    if hasattr(signal, name):
        delattr(signal, name)
warnings.simplefilter("ignore")
"""


def outcome(code: str, *, no_term: bool = False) -> dict:
    """What this code leaves in `told`, on a system that lacks all that."""
    lacking = LACKING.format(root=str(ROOT), no_term=no_term)
    whole = f"{lacking}\nimport json\ntold = {{}}\n{textwrap.dedent(code)}\nprint(json.dumps(told))\n"
    done = subprocess.run(
        [sys.executable, "-c", whole],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


TRAIN = """
from pathlib import Path
from regard.training.fit import fit
from regard.errors import RunError
from tests.training.toy import Toy, ToySettings
class Crash(BaseException): pass
def crash(event):
    if (event.kind, event.step) == ("step", 9):
        raise Crash
def second(event):
    if (event.kind, event.step) == ("step", 3):
        try:
            fit(Toy(), ToySettings(), folder, resume=True)
        except RunError as error:
            told["refused"] = str(error)
folder = Path({folder!r})
try:
    fit(Toy(), ToySettings(), folder, tell=crash)
except Crash:
    pass
fit(Toy(), ToySettings(), folder, resume=True)
folder = folder.with_name("two")
fit(Toy(), ToySettings(steps=5), folder, tell=second)
"""


@pytest.mark.parametrize("no_term", [False, True])
def test_a_run_crashes_goes_on_and_is_locked_without_what_windows_lacks(no_term, tmp_path):
    from regard.training.fit import fit
    from tests.training.runs import assert_same
    from tests.training.toy import Toy, ToySettings

    told = outcome(TRAIN.format(folder=str(tmp_path / "run")), no_term=no_term)
    assert "is training in" in told["refused"]
    fit(Toy(), ToySettings(), tmp_path / "alone")
    assert_same(tmp_path / "alone", tmp_path / "run")


SPAWN = """
if __name__ == "__main__":
    import multiprocessing
    import torch
    from pathlib import Path
    from regard.tasks import task_named
    from regard.training.fit import fit
    multiprocessing.set_start_method("spawn", force=True)
    torch.set_num_threads(1)
    task = task_named("copy")
    sizes = dict(width=8, heads=2, layers=1, hidden=9, examples=60, validation_size=6, most=5)
    sizes |= dict(batch_tokens=70, steps=4, warmup_steps=1)
    for workers in (0, 1):
        fit(task, task.settings(**sizes, num_workers=workers), Path({folder!r}) / str(workers))
"""


def test_workers_that_are_not_forked_prepare_the_same_batches(tmp_path):
    """As on Windows and macOS, and on Linux from Python 3.14 on."""
    script = tmp_path / "spawned.py"
    script.write_text(SPAWN.format(folder=str(tmp_path)))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "0" / "history.jsonl").read_bytes() == (tmp_path / "1" / "history.jsonl").read_bytes()


def test_every_module_is_imported_without_what_windows_lacks():
    found = outcome(
        """
        import importlib, pkgutil
        import regard
        told["wrong"], told["count"] = [], 0
        for one in pkgutil.walk_packages(regard.__path__, "regard."):
            if one.name.endswith("__main__"):
                continue
            told["count"] += 1
            try:
                importlib.import_module(one.name)
            except ImportError as error:
                told["wrong"].append(f"{one.name}: {error}")
        """
    )
    assert found["wrong"] == []
    assert found["count"] > 200


def test_lines_of_the_history_end_alike_on_every_system(tmp_path):
    """A text file of Windows would get another end of line, and a run that goes on there another history."""
    from regard.training.run import RunFolder

    run = RunFolder(tmp_path)
    run.write({"step": 1, "text": "é 猫\r\n"})
    assert (tmp_path / "history.jsonl").read_bytes() == '{"step": 1, "text": "é 猫\\r\\n"}\n'.encode()
