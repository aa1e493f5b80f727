"""A tokenizer written in Rust may panic, which is no Exception in Python: it is told, and the worker lives."""

import json

import pytest

from regard.app.protocol.messages import RunRequest
from regard.app.protocol.refusal import Refusal
from regard.app.routes.runs import finish
from regard.app.runners.monitor import RunMonitor
from regard.app.studio.studio import Studio
from regard.errors import ModelError
from regard.models.open.open_model import open_model
from tests.app.served import EDIT, opened, run
from tests.cli.run import run as run_command
from tests.cli.run import saved

SIZES = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 7}
LOST = {"SpecialToken": {"id": "[LOST]", "type_id": 0}}
TEMPLATE = {"type": "TemplateProcessing", "single": [LOST], "pair": [LOST], "special_tokens": {}}
LONG_MERGE = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [["a", "b"]]}


def crafted(folder, **changes):
    """A model whose tokenizer is not what it should be."""
    from transformers import BertConfig, BertModel

    saved(folder, BertModel, BertConfig, **SIZES)
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    return folder


@pytest.fixture
def folders(tmp_path):
    reads, opens = tmp_path / "reads", tmp_path / "opens"
    return crafted(reads, post_processor=TEMPLATE), crafted(opens, model=LONG_MERGE)


def test_a_panic_is_told_to_whoever_asked_and_the_next_run_is_as_always(tmp_path, folders):
    with opened(tmp_path / "kept", *folders) as (client, studio):
        for name, code in (("reads", "model.failed"), ("opens", None)):
            events = []
            finish(studio, RunRequest(model=name, text="the cat"), RunMonitor(), events.append)
            assert [event.kind for event in events] == ["failed"]
            last = run(client, model=name, text="the cat")[-1]
            assert (last["kind"], last.get("code")) == ("failed", code)
            assert "PanicException" in last["text"]
        assert run(client)[-1]["kind"] == "done"


class Panic(BaseException):
    """As those of pyo3 look."""

    __module__ = "pyo3_runtime"


def test_a_panic_while_an_edit_is_run_is_told_and_the_worker_lives(tmp_path, monkeypatch):
    with opened(tmp_path) as (client, studio):
        name = run(client)[-1]["trace"]
        model = studio.models.open("induction")

        def panic(*_):
            raise Panic("index out of range")

        with monkeypatch.context() as patch:
            patch.setattr(model, "run_again", panic)
            told = client.post(f"/api/traces/{name}/edit", json={"edits": [EDIT]})
        assert (told.status_code, told.json()["code"]) == (500, "model.failed")
        assert "Panic: index out of range" in told.json()["error"]
        assert client.post(f"/api/traces/{name}/edit", json={"edits": [EDIT]}).status_code == 200


def test_from_python_a_panic_is_an_error_of_ours(folders):
    with pytest.raises(ModelError, match="could not be opened: PanicException"):
        open_model(folders[1])


@pytest.mark.parametrize("number", [0, 1])
def test_a_command_tells_a_panic_in_one_sentence(monkeypatch, capsys, folders, number):
    code, printed, said = run_command(monkeypatch, capsys, "see", "the cat", "--model", str(folders[number]))
    assert (code, printed) == (2, "")
    last = said.splitlines()[-1]  # before it, the library that loads weights may draw its bar
    assert last.startswith("regard: ")
    assert "PanicException" in last


def test_a_first_run_that_fails_is_told_where_the_server_was_started(tmp_path, capfd):
    studio = Studio(keep=tmp_path / "kept")
    try:
        studio.begin(RunRequest(model="induction", text="A " * 9000))
        with pytest.raises(Refusal):
            studio.welcomed.result(60)
    finally:
        studio.close()
        studio.running.shutdown(wait=True)
    assert "regard: the first run failed: the text has 9,000 tokens" in capfd.readouterr().err
