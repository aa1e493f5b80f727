"""A kind of model that one entry makes known is listed by the server, runs there, and runs again under edits."""

import dataclasses

import pytest
import torch
from torch.testing import assert_close

from regard import watch
from regard.models.kinds import KINDS, kind_named
from regard.models.open.open_model import open_model
from tests.app.served import EDIT, opened, row, run
from tests.toy_kind import TOY, toy_in

TEXT = "the cat sat on the mat ."


@pytest.fixture
def client(tmp_path):
    with toy_in(tmp_path / "little"), opened(tmp_path / "kept", tmp_path / "little") as (client, _):
        yield client


def test_a_model_says_what_its_kind_reads_writes_and_can_do(client):
    models = {model["name"]: model for model in client.get("/api/models").json()}
    little = models["little"]
    assert (little["reads"], little["writes"], little["tasks"]) == ("text", None, ["read"])
    assert little["about"] == "reads and says a number"
    for name, kind in (("en-zh-grammar", "translator"), ("en-zh-grammar-recurrent", "seq2seq"), ("induction", "gpt")):
        entry = kind_named(kind)
        told = models[name]["reads"], models[name]["writes"], models[name]["tasks"]
        assert told == (entry.reads, entry.writes, list(entry.tasks))


def test_a_kind_that_only_reads_runs_though_tokens_were_asked_for(client, tmp_path):
    done = run(client, model="little", text=TEXT, steps=5)[-1]
    assert (done["kind"], done["text"]) == ("done", None)
    info = client.get(f"/api/traces/{done['trace']}").json()
    assert info["output"] == {"text": None, "next": None, "classes": None}
    assert info["tokens"][0]["shown"] == TEXT.split()
    model, tokenizer = open_model(tmp_path / "little")
    with torch.no_grad(), watch(model) as trace:
        model(torch.tensor([tokenizer.encode(TEXT)]))
    for head in range(2):
        assert_close(row(client, done["trace"], 0, head, 3), trace.layers[0].weights[0, head, 3])


def test_its_attention_can_be_edited(client):
    name = run(client, model="little", text=TEXT)[-1]["trace"]
    blocked = EDIT | {"kind": "block", "heads": [1], "query": 3, "key": 5}
    changed = client.post(f"/api/traces/{name}/edit", json={"edits": [blocked]}).json()
    assert (changed["kl"], changed["before"], changed["afterText"]) == (None, [], None)
    assert row(client, changed["trace"], 0, 1, 3)[5] == 0 < row(client, name, 0, 1, 3)[5]
    assert_close(row(client, changed["trace"], 0, 0, 3), row(client, name, 0, 0, 3))


def test_an_empty_text_is_refused(client):
    assert run(client, model="little", text="  ")[-1]["code"] == "text.empty"


def test_a_kind_of_numbers_is_listed_as_one(tmp_path, monkeypatch):
    with toy_in(tmp_path / "little"), monkeypatch.context() as patch:
        patch.setitem(KINDS, "toy", dataclasses.replace(TOY, reads="numbers"))
        with opened(tmp_path / "kept", tmp_path / "little") as (client, _):
            assert client.get("/api/models").json()[-1]["reads"] == "numbers"
