"""Models by their name on the hub: from the local cache without a connection, and one sentence where there is none.

The hub is never asked here: a cache is laid out by hand, and what should be the hub is a port of this machine.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
import torch

from regard.errors import ModelError
from regard.models.open.converted import NotConvertibleError
from regard.models.open.open_model import open_model
from tests.cli.run import run, saved

NAME = "somebody/tiny-bert"
SIZES = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 7}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    return saved(tmp_path_factory.mktemp("model"), BertModel, BertConfig, **SIZES)


@pytest.fixture
def cache(tmp_path, model):
    """The cache of the hub as its library lays it out: blobs, a snapshot of links to them, and what `main` is."""
    for name in (NAME, "plain-bert"):
        home = tmp_path / f"models--{name.replace('/', '--')}"
        snapshot = home / "snapshots" / "0123abcd"
        snapshot.mkdir(parents=True)
        (home / "blobs").mkdir()
        (home / "refs").mkdir()
        (home / "refs" / "main").write_text("0123abcd")
        for number, file in enumerate(sorted(model.iterdir())):
            shutil.copy(file, home / "blobs" / str(number))
            (snapshot / file.name).symlink_to(f"../../blobs/{number}")
    return tmp_path


@contextmanager
def blackhole():
    """(port, connections): takes every connection and never says a word."""
    came = []
    with socket.socket() as at:
        at.bind(("127.0.0.1", 0))
        at.listen(64)

        def take():
            while True:
                try:
                    came.append(at.accept()[0])
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield at.getsockname()[1], came
    for one in came:
        one.close()


CLOSED = """
import sys
def deny(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        print("touched the network:", event, args)
        raise SystemExit(99)
sys.addaudithook(deny)
"""


def child(cache, *words, program="", **environment):
    """A command in a process of its own, with that cache."""
    told = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS_"))}
    told |= {"HF_HUB_CACHE": str(cache), "OMP_NUM_THREADS": "1"} | environment
    told |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    called = f"import sys\nsys.argv = {['regard', *map(str, words)]!r}\nfrom regard.cli.main import main\nmain()"
    code = f"{program}\n{called}"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=told, timeout=300
    )


@pytest.mark.parametrize("name", [NAME, "plain-bert"])
@pytest.mark.parametrize("download", [False, True])
def test_a_model_in_the_cache_opens_and_nobody_is_asked(cache, model, monkeypatch, name, download):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("touched the network"))
    found, tokenizer = open_model(name, download=download)
    right, _ = open_model(model)
    torch.testing.assert_close(found.state_dict(), right.state_dict(), rtol=0, atol=0)
    assert tokenizer.encode("the cat").ids == [1, 4, 5, 2]


def test_the_command_sees_a_model_of_the_cache_without_a_connection(cache):
    done = child(cache, "see", "the cats", "--model", NAME, program=CLOSED)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 layers, 6 heads" in done.stdout


def test_a_model_that_is_not_in_the_cache_is_refused_at_once_with_what_to_do(cache):
    done = child(cache, "see", "the cats", "--model", "somebody/other", program=CLOSED)
    assert (done.returncode, done.stdout) == (2, "")
    assert "it is not in the local cache of the hub" in done.stderr
    assert "pass --download (download=True) to fetch it" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("missing", ["model.safetensors", "every weight"])
def test_a_part_of_a_model_in_the_cache_is_told_as_such(cache, monkeypatch, missing):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    file = cache / "models--plain-bert/snapshots/0123abcd/model.safetensors"
    if missing == "model.safetensors":
        file.resolve().unlink()  # the link stays, as after a clean-up
    else:
        file.unlink()
    with pytest.raises(ModelError, match=r"only a part of 'plain-bert' \(model\.safetensors is missing\); pass --down"):
        open_model("plain-bert")


def test_a_shard_that_is_missing_is_named(cache, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    folder = cache / "models--plain-bert/snapshots/0123abcd"
    parts = {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": parts}))
    with pytest.raises(ModelError, match=r"\(model-00002-of-00002\.safetensors is missing\)"):
        open_model("plain-bert")


def test_a_model_of_the_cache_that_ours_cannot_be_is_not_fetched_again(cache, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("touched the network"))
    file = cache / "models--plain-bert/snapshots/0123abcd/config.json"
    config = json.loads(file.read_text())
    file.unlink()
    file.write_text(json.dumps(config | {"is_new_here": 7}))
    with pytest.raises(NotConvertibleError, match="the config has is_new_here=7"):
        open_model("plain-bert", download=True)
    assert open_model("plain-bert", ours=False, download=True)[0].config.is_new_here == 7


def test_pickled_weights_of_the_cache_are_refused_as_those_of_a_folder(cache, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    folder = cache / "models--plain-bert/snapshots/0123abcd"
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"never read")
    with pytest.raises(ModelError, match=r"weights in pytorch_model\.bin, which is no safetensors file"):
        open_model("plain-bert")


def test_a_hub_that_never_answers_is_asked_once_and_given_up(cache):
    with blackhole() as (port, came):
        done = child(cache, "see", "a", "-m", "somebody/other", "--download", HF_ENDPOINT=f"http://127.0.0.1:{port}")
        assert len(came) == 1
    assert (done.returncode, done.stdout) == (2, "")
    assert "'somebody/other' cannot be downloaded: the hub" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_hub_that_cannot_be_reached_is_told_in_one_sentence(cache):
    with socket.socket() as at:
        at.bind(("127.0.0.1", 0))  # nobody listens
        port = at.getsockname()[1]
        done = child(cache, "see", "a", "-m", "somebody/other", "--download", HF_ENDPOINT=f"http://127.0.0.1:{port}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be downloaded: the hub cannot be reached (ConnectError" in done.stderr
    assert done.stderr.count("\n") == 1


def test_offline_is_offline(cache):
    done = child(cache, "see", "a", "-m", "somebody/other", "--download", program=CLOSED, HF_HUB_OFFLINE="1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not in the local cache, and HF_HUB_OFFLINE forbids to fetch it" in done.stderr
    assert child(cache, "see", "the", "-m", NAME, program=CLOSED, HF_HUB_OFFLINE="1").returncode == 0


def test_a_server_runs_a_model_of_the_cache(cache, monkeypatch, tmp_path):
    from regard.app.studio.studio import Studio
    from regard.cli.serve import first_request

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    studio = Studio(keep=tmp_path / "kept")
    try:
        first = first_request(studio, NAME, "the cats sat")
        assert (first.model, first.text) == (NAME, "the cats sat")
        assert studio.models.open(NAME).model.config.width == 12
    finally:
        studio.close()


def test_a_server_without_that_model_says_how_to_get_it(cache, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    code, printed, said = run(monkeypatch, capsys, "serve", "--no-open", "--keep", str(tmp_path), "-m", "some/other")
    assert (code, printed) == (2, "")
    assert "there is no model 'some/other' here" in said
    assert "pass --download" in said
    assert said.count("\n") == 1
