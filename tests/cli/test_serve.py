"""`regard serve`: what it refuses before anything is served."""

import builtins
import socket
from pathlib import Path

import pytest

from regard.cli.serve import default_folder
from regard.training.run import RunFolder
from tests.cli.run import run

REFUSED = [
    (["--host", "0.0.0.0"], "opens the app to the network: everybody who reaches this machine and has the token"),
    (["--text", "a"], "a text came without a model to read it; name one with --model"),
    (["nowhere"], "nowhere does not exist, and should be a trace, the folder of a model or that of a training run"),
    (["--model", "nobody"], "there is no model 'nobody' here (`regard models` lists them all); to fetch one"),
    (["--port", "70000"], "port 70000 of 127.0.0.1 cannot be used"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED, ids=[said[:24] for _, said in REFUSED])
def test_bad_wishes_are_refused_in_one_sentence(monkeypatch, capsys, tmp_path, words, said):
    monkeypatch.chdir(tmp_path)
    code, printed, beside = run(monkeypatch, capsys, "serve", "--no-open", "--keep", str(tmp_path), *words)
    assert (code, printed) == (2, "")
    assert said in beside
    assert beside.count("\n") == 1


def test_a_folder_that_is_none_of_the_three_is_refused(monkeypatch, capsys, tmp_path):
    _, _, beside = run(monkeypatch, capsys, "serve", "--no-open", str(tmp_path))
    assert "is neither a trace, the folder of a model nor that of a training run" in beside


@pytest.mark.parametrize(
    ("words", "view"), [(["copied"], "training"), (["copied", "--model", "induction"], ""), ([], "")], ids=len
)
def test_what_is_named_is_what_the_explorer_begins_with(monkeypatch, capsys, tmp_path, words, view):
    from regard.app import serving

    monkeypatch.chdir(tmp_path)
    Path("copied").mkdir()
    RunFolder(Path("copied")).begin("copy", {})
    shown = []
    monkeypatch.setattr(serving, "serve", lambda *_, **options: shown.append(options["view"]))
    code, _, _ = run(monkeypatch, capsys, "serve", "--no-open", "--keep", str(tmp_path / "kept"), *words)
    assert (code, shown) == (0, [view])


def test_a_damaged_trace_is_refused_before_anything_is_served(monkeypatch, capsys, tmp_path):
    (tmp_path / "a.trace").write_bytes(bytes(99))
    _, _, beside = run(monkeypatch, capsys, "serve", "--no-open", str(tmp_path / "a.trace"))
    assert "was never finished" in beside


def test_a_port_that_is_taken_is_named(monkeypatch, capsys, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        _, _, beside = run(monkeypatch, capsys, "serve", "--no-open", "--port", str(port), "--keep", str(tmp_path))
    assert f"port {port} of 127.0.0.1 cannot be used (address already in use); leave --port out" in beside


def test_a_missing_extra_is_named(monkeypatch, capsys):
    original = builtins.__import__

    def missing(name, *rest, **more):
        if name == "regard.app" or name.startswith(("regard.app.", "uvicorn", "fastapi")):
            raise ModuleNotFoundError("No module named 'fastapi'", name="fastapi")
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    code, _, beside = run(monkeypatch, capsys, "serve")
    assert (code, beside) == (2, "regard: to open the app, install regard[app]: pip install 'regard[app]'\n")


def test_runs_are_kept_where_data_of_a_user_belongs(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "regard" / "runs"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".local" / "share" / "regard" / "runs"
