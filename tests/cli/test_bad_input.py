"""Whatever is wrong with what a command is given: one sentence, an exit code that is not 0, and no traceback."""

import os
import subprocess
import sys

import pytest

from tests.cli.run import run
from tests.tasks.tiny import run_of

LONG = "x" * 3000
SEE = ("see", "A B A B", "--model", "induction")
TRANSLATE = ("translate", "-m", "en-zh-grammar", "Hi.", "--beams", "1")
COMPARE = ("compare-attention", "--length", "16", "--heads", "1", "--width", "8", "--keys", "8")
CLOSED = "/proc/self"  # a folder in which nobody can write, not even root


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    """A folder with things that are not what a command wants."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.txt").write_text("A B C\n")
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 9)
    for ending in ("html", "svg", "trace"):
        (tmp_path / f"folder.{ending}").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("[]")


def refused(monkeypatch, capsys, *words):
    code, printed, said = run(monkeypatch, capsys, *words)
    assert code == 2
    assert (said.count("\n"), said[:8]) == (1, "regard: "), said
    assert len(said) < 800
    return said, printed


@pytest.mark.parametrize(
    ("command", "name"),
    [(command, name) for command in (SEE, TRANSLATE) for name in ("x.svg", "x.html", "x.trace")] + [(COMPARE, "x.svg")],
    ids=lambda given: given if isinstance(given, str) else given[0],
)
@pytest.mark.parametrize("kind", ["no folder", "a file as folder", "a folder", "closed", "long"])
def test_a_file_that_cannot_be_written_is_refused(monkeypatch, capsys, command, kind, name):
    if kind == "closed" and not os.path.isdir(CLOSED):
        pytest.skip("there is no folder that is closed to everybody on this system")
    ending = name[1:]
    to = {
        "no folder": f"nowhere/{name}",
        "a file as folder": f"text.txt/{name}",
        "a folder": f"folder{ending}",
        "closed": f"{CLOSED}/{name}",
        "long": LONG[:300] + ending,
    }[kind]
    refused(monkeypatch, capsys, *command, "--to", to)
    assert not [path.name for path in os.scandir() if path.name.startswith((".", "x"))]  # nothing half is left


@pytest.mark.parametrize("command", [SEE, TRANSLATE, COMPARE], ids=lambda words: words[0])
@pytest.mark.parametrize("name", ["x.gif", "x", "x.svg.exe"])
def test_a_name_of_no_known_kind_is_refused_before_anything_is_computed(monkeypatch, capsys, command, name):
    said, printed = refused(monkeypatch, capsys, *command, "--to", name)
    assert printed == ""
    assert ".svg, .png, .pdf" in said


@pytest.mark.parametrize("folder", ["nowhere", "text.txt", CLOSED])
def test_the_demo_says_where_it_cannot_write(monkeypatch, capsys, folder):
    said, _ = refused(monkeypatch, capsys, "demo", "--folder", folder)
    assert "demo.html" in said


@pytest.mark.parametrize("model", ["nowhere", "text.txt", "binary", "folder", LONG, "a\0b", "", "run", "\x1b[31m", "é"])
@pytest.mark.parametrize("command", ["see", "census", "translate", "evaluate", "serve"])
def test_what_is_no_model_is_refused(monkeypatch, capsys, command, model):
    words = {
        "see": ("see", "A", "-m", model),
        "census": ("census", "A", "-m", model),
        "translate": ("translate", "-m", model, "A"),
        "evaluate": ("evaluate", model),
        "serve": ("serve", "--no-open", "--keep", "kept", "-m", model),
    }[command]
    said, printed = refused(monkeypatch, capsys, *words)
    assert printed == ""
    assert "\x1b" not in said


@pytest.mark.parametrize("path", ["nowhere", "text.txt", "binary", "folder", LONG, "run"])
@pytest.mark.parametrize(
    "command", [("serve", "--no-open", "--keep", "kept"), ("summary",)], ids=lambda words: words[0]
)
def test_what_is_no_trace_is_refused(monkeypatch, capsys, command, path):
    if command[0] == "summary" and path == LONG:
        path = LONG[:300]
    refused(monkeypatch, capsys, *command, path)


@pytest.mark.parametrize("host", ["no host at all", "", "a\0b", "256.1.2.3"])
def test_an_address_that_is_none_is_refused(monkeypatch, capsys, host):
    code, printed, said = run(
        monkeypatch, capsys, "serve", "--no-open", "--keep", "kept", "--allow-network", "--host", host
    )
    assert (code, printed) == (2, "")
    assert f"regard: {host!r} is no address at which this machine can listen" in said


def test_more_than_memory_holds_is_refused_before_it_is_asked_for(monkeypatch, capsys):
    said, printed = refused(monkeypatch, capsys, "compare-attention", "--length", "99999999999")
    assert (printed, "a length of 99,999,999,999 needs" in said) == ("", True)


@pytest.mark.parametrize("text", ["A\x1b[31mB", "A\x07", "\udce9", "A\u202eB"])
@pytest.mark.parametrize("command", ["see", "census", "translate"])
def test_no_control_character_of_a_text_reaches_the_terminal(monkeypatch, capsys, command, text):
    words = ("translate", "-m", str(run_of()), text, "--beams", "1", "--see") if command == "translate" else None
    code, printed, said = run(monkeypatch, capsys, *(words or (command, text, "--model", "induction")))
    assert code in (0, 2)
    assert not {"\x1b", "\x07", "\u202e"} & set(printed + said)


# Around the command


def child(*words, close=False, **how):
    """A command in a process of its own; `close` closes the reading end of its standard output at once."""
    command = [sys.executable, "-m", "regard", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)
    if close:
        process.stdout.close()
        said = process.stderr.read()
        process.stderr.close()
        return process.wait(120), "", said
    printed, said = process.communicate(timeout=120)
    return process.returncode, printed, said


@pytest.mark.parametrize("words", [("models",), ("tasks",), ("-h",), SEE, TRANSLATE], ids=lambda words: words[0])
def test_a_reader_that_leaves_ends_a_command_quietly(words):
    code, _, said = child(*words, close=True)
    assert code != 0
    assert said == ""


def test_a_user_without_a_home_keeps_runs_in_a_folder_of_their_own(monkeypatch, capsys):
    from regard.cli.serve import default_folder

    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.home", nobody)
    folder = default_folder()
    try:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert f"no home folder is known, so runs are kept in {folder}" in capsys.readouterr().err
    finally:
        folder.rmdir()


def test_without_home_see_shows_what_it_always_shows(tmp_path):
    told = {name: value for name, value in os.environ.items() if name != "HOME"} | {"OMP_NUM_THREADS": "1"}
    code, printed, said = child(*SEE, env=told, cwd=tmp_path)
    assert (code, said) == (0, "")
    assert "2 layers, 8 heads" in printed


POSIX = ("fcntl", "pwd", "grp", "resource", "termios", "pty", "tty", "posix_ipc", "syslog", "readline")
WINDOWS = """
import os, signal, sys
for name in {names!r}:
    sys.modules[name] = None
for name in ("geteuid", "getuid", "fork", "sched_getaffinity", "sysconf", "setpriority", "getpriority", "killpg"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGKILL", "SIGALRM"):
    if hasattr(signal, name):
        delattr(signal, name)
import importlib, pkgutil
import regard.app, regard.cli
loaded = 0
for package in (regard.app, regard.cli):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(found.name)
        loaded += 1
assert loaded > 30, loaded
from regard.app.security.connections import CONNECTIONS, connection_limit
assert connection_limit() == CONNECTIONS
from pathlib import Path
from regard.app.app import make_app
from regard.app.security.guard import AccessPolicy
from regard.app.studio.studio import Studio
from regard.cli.serve import default_folder
default_folder()
studio = Studio(keep=Path("kept"))
make_app(studio, AccessPolicy("token", 1))
studio.close()
sys.argv = ["regard", "see", "A B", "--model", "induction"]
from regard.cli.main import main
main()
"""


def test_nothing_of_the_commands_and_the_server_needs_what_only_posix_has(tmp_path):
    told = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WINDOWS.format(names=POSIX)],
        capture_output=True,
        text=True,
        check=False,
        env=told,
        cwd=tmp_path,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "2 layers, 8 heads" in done.stdout
