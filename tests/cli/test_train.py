"""`regard train` as a user meets it: flags, files, folders, signals, several processes, exit codes."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from regard.cli import main as cli
from regard.tasks.registry import names
from regard.training.checkpoint import list_checkpoints, name_of
from regard.training.run import RunFolder
from tests.cli.run import run
from tests.training.crew import Crew, assert_near, assert_same_bits, wait_for

SIZES = {
    "width": 12, "heads": 3, "layers": 1, "hidden": 14, "examples": 90, "validation_size": 7, "batch_tokens": 70,
    "most": 5, "symbols": 6, "dropout": 0, "warmup_steps": 2, "steps": 11, "eval_every": 5, "save_every": 4,
    "log_every": 3,
}  # fmt: skip
SMALL = [f"--{name.replace('_', '-')}={value}" for name, value in SIZES.items()]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["regard", "train", "copy", *SMALL, "--quiet", "--out", str(folder)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    assert not stopped.value.code
    return folder


def settings(folder: Path) -> dict:
    return json.loads((folder / "run.json").read_text())["settings"]


def test_a_run_says_plain_lines_ends_with_its_scores_and_names_the_next_step(monkeypatch, capsys, tmp_path):
    folder = tmp_path / "run"
    code, printed, said = run(monkeypatch, capsys, "train", "copy", *SMALL, "--out", str(folder))
    assert code == 0
    assert re.fullmatch(rf"loss [\d.]+, exact [\d.e-]+ after 11 steps. Next: regard evaluate {folder}\n", printed)
    lines = said.splitlines()
    assert re.fullmatch(rf"[\d,]+ parameters, [\d,]+ examples, 11 steps, in {folder}", lines[0])
    step = r"step 2/11  loss \d+\.\d{4}  lr \d\.\d\de-\d\d  [\d,]+ tokens/s  [\d.]+ steps/s  \d+:\d\d left"
    assert re.fullmatch(step, lines[2])
    assert lines[5] == "step 5/11  validating"
    assert re.fullmatch(r"step 5/11  validation  loss [\d.]+  exact [\d.e-]+  \(best\)", lines[6])
    said_at = [1, 2, 3, 5, 5, 5, 6, 9, 10, 10, 10, 11, 11, 11, 11]  # the last one chooses the weights
    assert [line.split()[1] for line in lines[1:]] == [f"{step}/11" for step in said_at]
    assert "\x1b" not in said
    assert "\r" not in said
    assert (folder / "model" / "manifest.json").exists() or any((folder / "model").iterdir())


def test_quiet_says_nothing_and_a_folder_is_found_where_none_is_named(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        words = ("train", "copy", *SMALL, "--steps=1", "--quiet")
        assert run(monkeypatch, capsys, *words) == (0, "", "")
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["copy-1", "copy-2"]


def test_lines_that_are_left_out_are_counted(monkeypatch, capsys, tmp_path):
    pairs = [f"one two {i}\t三 {i}" for i in range(40)]
    (tmp_path / "right.tsv").write_text("\n".join(pairs[:7]), encoding="utf-8")
    (tmp_path / "pairs.tsv").write_text("\n".join([*pairs, "\t空", "words " * 30 + "\t长"]), encoding="utf-8")
    files = ("--data", str(tmp_path / "pairs.tsv"), "--validation", str(tmp_path / "right.tsv"), "--max-length=20")
    sizes = ("--width=8", "--heads=2", "--layers=1", "--hidden=8", "--vocab-size=300", "--steps=1")
    code, _, said = run(monkeypatch, capsys, "train", "translate", *files, *sizes, "--out", str(tmp_path / "run"))
    assert code == 0, said
    assert " 40 examples (2 left out: empty, or too long), 1 steps" in said


def test_flags_go_before_the_file(monkeypatch, capsys, tmp_path):
    lines = "\n".join(f"{name} = {value}" for name, value in SIZES.items() if name not in ("steps", "width"))
    (tmp_path / "small.toml").write_text(f"{lines}\nsteps = 3\n[model]\nwidth = 6\norder = 'post'\n")
    words = ("train", "copy", "--config", str(tmp_path / "small.toml"), "--steps", "2", "--no-tied")
    code, _, said = run(monkeypatch, capsys, *words, "--quiet", "--out", str(tmp_path / "run"))
    assert (code, said) == (0, "")
    kept = settings(tmp_path / "run")
    assert [kept[name] for name in ("steps", "width", "order", "tied", "validation_size")] == [2, 6, "post", False, 7]


WRONG = {
    "a misspelt setting": (("copy", "--stesp", "3"), "there is no setting 'stesp'; did you mean 'steps'?"),
    "a setting of another task": (("copy", "--vocab-size", "99"), "there is no setting 'vocab_size'; "),
    "a misspelt task": (("cpoy",), "there is no task 'cpoy'; did you mean 'copy'?"),
    "no number": (("copy", "--steps", "many"), "steps is 'many', but input should be a valid integer"),
    "too small": (("copy", "--steps", "0"), "steps is '0', but input should be greater than or equal to 1"),
    "no such choice": (("copy", "--lr-schedule", "linaer"), "lr_schedule is 'linaer', but input should be 'linear', "),
    "a word alone": (("copy", "fast"), "'fast' belongs to no setting; write --name value"),
    "no file": (("copy", "--config", "none.toml"), "none.toml cannot be read (No such file or directory)"),
    "no device": (
        ("copy", *SMALL, "--device", "abacus"),
        "device is 'abacus', but this machine cannot compute there (",
    ),
    "no run": (("copy", "--resume", "nowhere"), "nowhere holds no run that can be read; name the folder of a run"),
    "below a file": (("copy", *SMALL, "--out", "file/run"), "file/run cannot be written to (Not a directory)"),
    "read-only": (("copy", *SMALL, "--out", "/proc/run"), "/proc/run cannot be written to ("),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_in_one_sentence(what, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    words, wanted = WRONG[what]
    code, printed, said = run(monkeypatch, capsys, "train", *words)
    assert (code, printed) == (2, "")
    assert said.startswith(f"regard: {wanted}")
    assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_only_be_read_is_refused(monkeypatch, capsys, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o555)
    code, _, said = run(monkeypatch, capsys, "train", "copy", *SMALL, "--out", str(tmp_path / "closed" / "run"))
    assert code == 2
    assert "closed/run cannot be written to (Permission denied); name another folder" in said


def test_a_folder_with_a_run_is_not_written_over(whole, monkeypatch, capsys):
    before = (whole / "history.jsonl").read_bytes()
    code, _, said = run(monkeypatch, capsys, "train", "copy", *SMALL, "--out", str(whole))
    assert (code, said.startswith(f"regard: {whole} already holds a run; go on with --resume {whole}")) == (2, True)
    assert (whole / "history.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["copy", "--width", "16"], "width cannot change while a run goes on (only steps, num_workers, tensorboard"),
        (["reverse"], "is a run of 'copy', not of 'reverse'; name its own task"),
        (["copy", "--stesp", "20"], "stesp"),
    ],
)
def test_a_run_goes_on_only_as_what_it_was(words, wanted, whole, monkeypatch, capsys):
    code, printed, said = run(monkeypatch, capsys, "train", *words, "--resume", str(whole))
    assert (code, printed) == (2, "")
    assert wanted in said


def test_a_run_that_is_done_may_be_told_to_go_on_for_longer(monkeypatch, capsys, tmp_path):
    words = ("train", "copy", *SMALL, "--quiet", "--steps=4")
    assert run(monkeypatch, capsys, *words, "--out", str(tmp_path))[0] == 0
    code, _, said = run(monkeypatch, capsys, "train", "copy", "--resume", str(tmp_path), "--steps", "7")
    assert (code, "going on after step 4" in said) == (0, True)
    assert RunFolder(tmp_path).history()[-1]["step"] == 7


def trained_here(*words: str):
    """The command in a process of its own that was forked from this one."""

    def work(rank: int) -> int:
        os.setsid()
        sys.argv = ["regard", "train", *words]
        cli.main()
        return 0

    return work


@pytest.mark.parametrize(("number", "workers"), [(signal.SIGINT, 2), (signal.SIGTERM, 0)])
def test_a_signal_saves_and_the_run_goes_on_to_the_same_bits(number, workers, whole, monkeypatch, capsys, tmp_path):
    folder = tmp_path / "run"
    held = tmp_path / "held"
    held.touch()
    slow_down(monkeypatch, held)
    words = ("copy", *SMALL, "--num-workers", str(workers), "--out", str(folder))
    crew = Crew(1, trained_here(*words), tmp_path / "said")
    wait_for(lambda: (folder / "checkpoints" / name_of(4)).exists())
    time.sleep(0.1)
    os.killpg(crew.processes[0].pid, number)  # all of its workers, too, as a terminal does
    assert crew.codes(20) == [128 + number]
    said = crew.told()[0]
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said
    last = int(list_checkpoints(folder / "checkpoints")[-1].name.removeprefix("step-"))
    assert 4 < last < 11
    line = f"Saved at step {last} in {folder}; go on: regard train copy --resume {folder}"
    assert said.splitlines()[-1] == line
    assert not (folder / "model").exists()
    held.unlink()
    words = shlex.split(line.partition("go on: regard ")[2])
    code, printed, said = run(monkeypatch, capsys, *words, "--num-workers", "0")
    assert (code, f"going on after step {last}" in said, " after 11 steps." in printed) == (0, True, True)
    assert_same_bits(folder, whole)


@pytest.mark.parametrize("name", ["run", "a run's folder $HOME; (2)"])
def test_the_command_to_go_on_works_as_it_is_printed_also_with_what_was_told_anew(name, monkeypatch, capsys, tmp_path):
    folder = tmp_path / name
    words = ("train", "copy", *SMALL, "--steps=4", "--quiet")
    assert run(monkeypatch, capsys, *words, "--out", str(folder))[0] == 0
    stop_at(monkeypatch, 6)
    code, _, said = run(monkeypatch, capsys, "train", "copy", "--resume", str(folder), "--steps", "9", "--tensorboard")
    assert code == 143
    told = said.splitlines()[-1]
    assert told.startswith(f"Saved at step 6 in {folder}; go on: regard train copy --resume ")
    assert " --steps 9" in told
    assert " --tensorboard" in told
    monkeypatch.undo()
    shell = subprocess.run(
        ["sh", "-c", "printf '%s\\n' " + told.partition("go on: ")[2]], capture_output=True, text=True, check=True
    )
    assert run(monkeypatch, capsys, *shell.stdout.splitlines()[1:])[0] == 0
    assert RunFolder(folder).history()[-1]["step"] == 9


def stop_at(monkeypatch, step: int) -> None:
    """SIGTERM comes in this step of a run that goes on after its fourth."""
    real, made = torch.optim.AdamW.step, []

    def counted(self, *given, **more):
        made.append(step)
        if 4 + len(made) == step:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(self, *given, **more)

    monkeypatch.setattr(torch.optim.AdamW, "step", counted)


def test_ctrl_c_before_the_first_step_says_how_to_go_on(monkeypatch, capsys, tmp_path):
    from regard.tasks.sequences import PreparedSequences

    def interrupted(self, *given):
        raise KeyboardInterrupt

    folder = tmp_path / "run"
    monkeypatch.setattr(PreparedSequences, "validate", interrupted)  # the second Ctrl-C does not wait
    code, _, said = run(monkeypatch, capsys, "train", "copy", *SMALL, "--out", str(folder))
    assert code == 130
    assert said.splitlines()[-1] == f"Saved at step 5 in {folder}; go on: regard train copy --resume {folder}"
    monkeypatch.setattr(PreparedSequences, "__init__", interrupted)
    code, _, said = run(monkeypatch, capsys, "train", "copy", *SMALL, "--out", str(tmp_path / "none"))
    assert code == 130
    assert said == (
        f"Stopped before anything was saved in {tmp_path / 'none'}; go on: regard train copy --resume "
        f"{tmp_path / 'none'}\n"
    )
    monkeypatch.undo()
    assert run(monkeypatch, capsys, "train", "copy", "--resume", str(tmp_path / "none"), "--quiet")[0] == 0


def test_starts_at_once_get_a_folder_each(monkeypatch, tmp_path):
    from regard.cli.train import make_run_folder

    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: make_run_folder("copy", Path("runs")), range(50)))
    assert len(set(folders)) == 50
    assert all(folder.is_dir() for folder in folders)


BARE = """
import sys
for name in ("sacrebleu", "tensorboard", "rouge_score", "fastapi", "uvicorn", "transformers", "anywidget"):
    sys.modules[name] = None
from regard.cli.main import main
sys.argv = ["regard", *{words!r}]
main()
"""


def bare(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command where no extra is installed."""
    code = BARE.format(words=list(words))
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


def test_without_the_extra_translation_is_refused_before_its_first_step(tmp_path):
    done = bare("train", "translate", "--examples=30", "--steps=1", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "regard: to score translations, install regard[train]: pip install 'regard[train]'\n"
    assert list(tmp_path.iterdir()) == []


def test_without_any_extra_what_needs_none_is_trained(tmp_path):
    done = bare("train", "copy", *SMALL, "--steps=2", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "copy-1" / "model" / "manifest.json").exists()


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_of_a_task_lists_its_settings_with_choices_and_defaults(flag, monkeypatch, capsys):
    code, printed, said = run(monkeypatch, capsys, "train", "translate", flag)
    assert (code, said) == (0, "")
    plain = " ".join(printed.split())
    assert "Settings of translate:" in plain
    assert "--lr-schedule learning-rate schedule after warmup: linear, cosine, inverse_sqrt or" in plain
    assert "--swap / --no-swap" in plain
    assert "steps between validations [500]" in plain
    assert "Settings of" not in run(monkeypatch, capsys, "train", flag)[1]
    assert run(monkeypatch, capsys, "train", "translat", flag)[2] == (
        "regard: there is no task 'translat'; did you mean 'translate'?\n"
    )


def slow_down(monkeypatch, held: Path) -> None:
    """An update takes a tenth of a second as long as this file is there."""
    from regard.tasks.writing import PreparedPairs

    real = PreparedPairs.loss

    def slow(self, *given, **more):
        if held.exists():
            time.sleep(0.1)
        return real(self, *given, **more)

    monkeypatch.setattr(PreparedPairs, "loss", slow)


SLOW_DISK = """
import os, time
real = os.fsync
def fsync(file):
    time.sleep(0.3)
    real(file)
os.fsync = fsync
"""


@pytest.mark.parametrize("stopped", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_torchrun_trains_what_one_process_trains(stopped, whole, monkeypatch, capsys, tmp_path):
    """Stopped in the middle, one process goes on alone."""
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if stopped:
        (tmp_path / "sitecustomize.py").write_text(SLOW_DISK)  # so that there is time to be stopped in
        environment["PYTHONPATH"] = str(tmp_path)
    words = ["regard", "train", "copy", *SMALL, "--out", str(folder)]
    with subprocess.Popen([*command, *words], env=environment, stderr=subprocess.PIPE, text=True) as process:
        if stopped:
            wait_for((folder / "checkpoints" / name_of(4)).exists, 90)
            process.terminate()
        said = process.communicate(timeout=90)[1]
    assert sum("parameters, " in line and ", 11 steps" in line for line in said.splitlines()) == 1
    assert "lost another" not in said
    if stopped:
        assert 4 <= int(list_checkpoints(folder / "checkpoints")[-1].name.removeprefix("step-")) < 11
        assert not (folder / "model").exists()
        assert run(monkeypatch, capsys, "train", "copy", "--resume", str(folder))[0] == 0
    else:
        assert process.returncode == 0
    assert_near(folder, whole, but="to_k.bias")  # whose gradient is nothing but what rounding leaves


def test_tasks_are_listed_and_so_are_the_settings_of_one(monkeypatch, capsys):
    code, printed, said = run(monkeypatch, capsys, "tasks")
    assert (code, said) == (0, "")
    listed = [line.split()[0] for line in printed.splitlines()[: len(names())]]
    assert listed == names()
    assert {"answer", "classify", "embed", "fill", "pretrain", "summarise", "translate", "write"} <= set(listed)
    code, printed, said = run(monkeypatch, capsys, "tasks", "translate")
    assert (code, said) == (0, "")
    rows = [line.split() for line in printed.splitlines()]
    assert {"--steps", "--lr", "--data", "--vocab-size", "--dropout", "--validation-size"} <= {row[0] for row in rows}
    assert all(row[0].startswith("--") and len(row) > 2 for row in rows)
    assert run(monkeypatch, capsys, "tasks", "translat")[0] == 2
