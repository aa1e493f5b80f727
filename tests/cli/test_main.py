"""The command as a user meets it: a process, its words, its exit code."""

import re
import subprocess
import sys

import pytest

import regard
from regard.cli import main as cli
from regard.errors import ShapeError

WEIGHTS = """
.2976 .1095 .1805 .1805 .2318
.1205 .3275 .1986 .1986 .1547
.1805 .1805 .2976 .1095 .2318
.1986 .1986 .1205 .3275 .1547
.2374 .1440 .2374 .1440 .2374
"""


def run(*words: str, **options):
    command = [sys.executable, "-m", "regard", *words]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, **options)


@pytest.fixture(scope="module")
def demo():
    return run("demo", "--by-hand")


def test_help_names_the_commands():
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Build, train and see attention." in done.stdout
    assert "demo" in done.stdout


def test_no_command_is_help_too():
    assert run().stdout == run("--help").stdout


def test_version():
    assert run("--version").stdout == f"regard {regard.__version__}\n"


def test_an_unknown_command_is_refused():
    done = run("attnd")
    assert done.returncode == 2
    assert "No such command 'attnd'" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_of_our_own_is_one_sentence(monkeypatch, capsys):
    def fail():
        raise ShapeError("q has width 3 and k has width 4; make them equal")

    monkeypatch.setattr("regard.cli.by_hand.by_hand_text", fail)
    monkeypatch.setattr(sys, "argv", ["regard", "demo", "--by-hand"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "regard: q has width 3 and k has width 4; make them equal\n"


def test_the_demo_translates_with_both_models_and_writes_a_page(tmp_path):
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("→ 猫坐在垫子上。") == 2
    assert done.stdout.count("猫 ← cat") == 2
    assert "regard train translate" in done.stdout
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert page.count('class="trace"') == 8
    assert not re.search(r"https?://(?!www\.w3\.org/)", page)


def test_the_demo_by_hand_shows_every_step_with_the_published_numbers(demo):
    assert demo.returncode == 0, demo.stderr
    for step in ["1. What is read", "2. Scores", "3. Scale", "4. Softmax", "5. Mix", "6. Check", "Next:"]:
        assert step in demo.stdout
    for name, row in zip(("x1", "x2", "x3", "x4", "x5"), WEIGHTS.strip().splitlines(), strict=True):
        assert "  ".join([f"   {name}", *(f"0{weight}" for weight in row.split())]) in demo.stdout
    assert "x1  1.00  0.00  0.50  0.50  0.75" in demo.stdout
    assert "x5  0.75  0.25  0.75  0.25  0.75" in demo.stdout


def test_the_demo_agrees_with_attend(demo):
    assert "All 25 weights agree" in demo.stdout
    assert "NOT" not in demo.stdout


def test_the_demo_fits_eighty_columns_and_a_pipe(demo):
    assert max(map(len, demo.stdout.splitlines())) <= 80
    assert "\x1b" not in demo.stdout


def test_a_terminal_without_these_letters_still_gets_the_numbers():
    done = subprocess.run(
        [sys.executable, "-m", "regard", "demo", "--by-hand"],
        capture_output=True,
        check=True,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
    )
    assert b"0.2976" in done.stdout
