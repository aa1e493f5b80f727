"""`regard runs`: the list, one run in full, curves as a picture, and what is left out."""

import json
import re
import shlex
import shutil
import signal
from itertools import pairwise
from pathlib import Path

import pytest

from regard.tasks import task_named
from regard.tokens.visible import columns
from regard.training import lock
from regard.training.fit import fit
from tests.cli.run import run
from tests.cli.test_train import SIZES
from tests.training.runs import at


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run that is finished and one that was stopped, in a folder with others."""
    import os

    runs = tmp_path_factory.mktemp("home") / "runs"
    task = task_named("copy")
    assert fit(task, task.settings(**SIZES), runs / "copy-1").code == 0
    stop = at("step", 6, lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert fit(task, task.settings(**SIZES | {"lr": 0.005, "width": 9}), runs / "copy-2", tell=stop).code == 143
    (runs / "notes").mkdir()
    return runs


@pytest.fixture
def home(trained, tmp_path, monkeypatch):
    shutil.copytree(trained.parent, tmp_path / "home")
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def show(monkeypatch, capsys, *words: str) -> str:
    code, printed, said = run(monkeypatch, capsys, "runs", *words)
    assert (code, said) == (0, ""), said
    return printed


def test_runs_are_listed_with_state_steps_best_and_the_command_to_type_next(home, monkeypatch, capsys):
    lines = show(monkeypatch, capsys).splitlines()
    assert lines[0].split() == ["run", "task", "state", "step", "best", "time", "written"]
    told = {line.split()[0]: (line.split(), after) for line, after in pairwise(lines[1:]) if line[:1] not in " "}
    assert told["copy-1"][0][1:4] == ["copy", "finished", "11/11"]
    assert told["copy-1"][1] == "  next: regard evaluate runs/copy-1"
    assert told["copy-2"][0][1:4] == ["copy", "stopped", "6/11"]
    assert told["copy-2"][1] == "  next: regard train copy --resume runs/copy-2"
    history = [json.loads(line) for line in Path("runs/copy-1/history.jsonl").read_text().splitlines()]
    scores = [(line["validation"]["exact"], -line["step"]) for line in history if "validation" in line]
    value, step = max(scores)
    assert told["copy-1"][0][4:6] == ["exact", f"{value:.4g}@{-step}"]
    assert lines[-1] == "Left out: runs/notes: it holds no run.json"


def test_the_command_that_is_named_resumes_also_with_what_was_told_anew(home, monkeypatch, capsys):
    folder = Path("runs/a run; $(x)")
    Path("runs/copy-2").rename(folder)
    with (folder / "timing.jsonl").open("a") as file:
        anew = {"steps": 9, "tensorboard": False, "seed": 0}
        file.write(json.dumps({"step": 6, "start": "", "score": "exact", "more": True, "settings": anew}) + "\n")
    (told,) = json.loads(show(monkeypatch, capsys, str(folder), "--json"))["runs"]
    words = shlex.split(told["next"][0])
    assert words == ["regard", "train", "copy", "--resume", str(folder), "--steps", "9", "--no-tensorboard"]
    assert run(monkeypatch, capsys, *words[1:], "--quiet")[0] == 0
    assert json.loads(show(monkeypatch, capsys, str(folder), "--json"))["runs"][0]["step"] == 9


def test_a_run_in_progress_is_running_and_can_be_watched(home, monkeypatch, capsys):
    with lock.hold_lock(Path("runs/copy-2")):
        said = show(monkeypatch, capsys)
        assert re.search(r"^copy-2 +copy +running +6/11 ", said, re.MULTILINE)
        assert re.search(r"^  (\d+:\d\d left, )?\S+ tokens/s; watch it: regard serve runs/copy-2$", said, re.MULTILINE)
        (told,) = json.loads(show(monkeypatch, capsys, "runs/copy-2", "--json"))["runs"]
    assert told["state"] == "running"
    assert told["next"] == ["regard serve runs/copy-2"]


def test_json_has_everything_and_is_strict(home, monkeypatch, capsys):
    def refuse(name: str) -> None:
        raise AssertionError(name)

    with Path("runs/copy-1/history.jsonl").open("a") as file:
        file.write('{"step": 11, "loss": NaN}\n{"step": 11, "validation": {"exact": 2.0, "loss": Infinity}}\n')
    told = json.loads(show(monkeypatch, capsys, "--json"), parse_constant=refuse)
    assert {one["name"]: one["state"] for one in told["runs"]} == {"copy-1": "finished", "copy-2": "stopped"}
    assert told["left_out"] == [{"folder": "runs/notes", "why": "it holds no run.json"}]
    assert "curves" not in told["runs"][0]
    told = json.loads(show(monkeypatch, capsys, "runs/copy-1", "runs/copy-2", "--json"), parse_constant=refuse)
    assert [one["name"] for one in told["runs"]] == ["copy-1", "copy-2"]  # as they were named
    assert told["runs"][0]["settings"]["width"] == 12
    assert told["runs"][0]["best"] == {"score": "exact", "value": 2.0, "step": 11}
    assert [step for step, _ in told["runs"][1]["curves"]["losses"]] == [1, 2, 3, 5, 6]


def test_one_run_is_shown_in_full(home, monkeypatch, capsys):
    said = show(monkeypatch, capsys, "runs/copy-2")
    assert said.startswith("runs/copy-2: copy, stopped, step 6 of 11\n")
    assert "\nTraining loss\n" in said
    assert "\nValidation exact\n" in said
    assert re.search(r"^  width +9 +\[\d+\]$", said, re.MULTILINE)
    assert re.search(r"^  lr +0.005 +\[0.002\]$", said, re.MULTILINE)
    assert not re.search(r"^  seed ", said, re.MULTILINE)
    assert "Resume from step 6: regard train copy --resume runs/copy-2\nOr: regard serve runs/copy-2\n" in said
    assert all(columns(line) <= 100 for line in said.splitlines())
    result = show(monkeypatch, capsys, "runs/copy-1")
    assert re.search(r"^Result \(step \d+\): loss [\d.]+  exact", result, re.MULTILINE)
    assert "Next: regard evaluate runs/copy-1\nOr: regard serve runs/copy-1\n" in result


def test_several_runs_that_are_named_are_compared(home, monkeypatch, capsys):
    said = show(monkeypatch, capsys, "runs/copy-2", "runs/copy-1")
    table = said.partition("Settings that differ:\n")[2].splitlines()
    assert [line.split() for line in table] == [["copy-2", "copy-1"], ["lr", "0.005", "0.002"], ["width", "9", "12"]]
    assert "All settings are the same." in show(monkeypatch, capsys, "runs/copy-1", shutil.copytree("runs/copy-1", "c"))


def test_why_a_run_failed_is_told_and_acts_on_no_terminal(home, monkeypatch, capsys):
    last = {"step": 6, "end": "failed", "why": "the loss is \x1b[31mno number\n at step 7"}
    with Path("runs/copy-2/timing.jsonl").open("a") as file:
        file.write(json.dumps(last) + "\n")
    said = show(monkeypatch, capsys)
    assert "\n  the loss is ␛[31mno number at step 7\n  next: regard train copy --resume runs/copy-2\n" in said
    assert "It failed: the loss is ␛[31mno number at step 7\n" in show(monkeypatch, capsys, "runs/copy-2")


def test_a_run_of_a_task_that_nobody_knows_is_listed_with_all_its_settings(home, monkeypatch, capsys):
    from regard.training.manifest import seal
    from regard.training.run import FORMAT

    settings = {"steps": 11, "quantum": 3}
    Path("runs/copy-2/run.json").write_bytes(seal({"format": FORMAT, "task": "levitate", "settings": settings}))
    assert "  next: regard serve runs/copy-2\n" in show(monkeypatch, capsys)
    said = show(monkeypatch, capsys, "runs/copy-2")
    assert "Settings ('levitate' is no task of this version):\n  steps    11\n  quantum  3\n" in said


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_curves_are_drawn(ending, home, monkeypatch, capsys):
    said = show(monkeypatch, capsys, "runs/copy-1", "runs/copy-2", "--to", f"curves.{ending}", "--dark")
    assert said == f"curves.{ending} is written: copy-1, copy-2.\n"
    data = Path(f"curves.{ending}").read_bytes()
    assert data.startswith(b"\x89PNG" if ending == "png" else b"<?xml")


WRONG = {
    "no such folder": (["nowhere"], "there is no folder nowhere; name a run, or a folder of runs"),
    "another kind of file": (["--to", "curves.gif"], "'curves.gif' ends in none of .svg, .png, .pdf"),
    "no folder for it": (["--to", "none/curves.svg"], "the folder 'none' for 'curves.svg' does not exist"),
    "nothing to draw": (["runs/notes", "--to", "curves.svg"], "there is no run to draw; name one"),
    "a damaged run": (["runs/copy-1"], "runs/copy-1/run.json is damaged ("),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_in_one_sentence(what, home, monkeypatch, capsys):
    if what == "a damaged run":
        Path("runs/copy-1/run.json").write_text("{")
    words, wanted = WRONG[what]
    code, printed, said = run(monkeypatch, capsys, "runs", *words)
    assert (code, printed) == (2, "")
    assert said.startswith(f"regard: {wanted}")
    assert said.count("\n") == 1


def test_where_nothing_was_trained_it_says_how_to(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    wanted = "There is no run in runs/ yet. Train one: regard train copy --out runs/copy\n"
    assert show(monkeypatch, capsys) == wanted
    assert json.loads(show(monkeypatch, capsys, "--json")) == {"runs": [], "left_out": []}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wide", [40, 80, 200])
def test_in_a_terminal_the_name_of_a_run_gives_way(wide, home, monkeypatch, capsys):
    Path("runs/copy-1").rename(f"runs/{'很长的名字' * 9}")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(wide))
    rows = [line for line in show(monkeypatch, capsys).splitlines() if " copy " in line and line[0] != " "]
    assert len(rows) == 2
    assert all(columns(row) <= max(wide, 74) for row in rows)
    assert len({columns(row.partition(" copy ")[0].rstrip()) <= wide for row in rows}) == 1
