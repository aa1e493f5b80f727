"""A model that fills masked words says which, and under its own heading; a classifier names its classes."""

import json

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.app.protocol.messages import RunRequest
from regard.app.runners.monitor import RunMonitor
from regard.app.runners.readers import ReaderRunner, open_reader
from regard.models import BertConfig, SentenceEncoderConfig, TextClassifierConfig, store
from regard.models.read_labels import read_labels
from regard.models.tokenizer import WordTokenizer
from tests.app.served import EDIT, opened, run

WORDS = ["[PAD]", "[MASK]", "the", "cat", "sat", "on", "mat", "."]
SIZES = {"vocab_size": len(WORDS), "width": 12, "heads": 3, "layers": 2, "context": 16}


def make(config):
    model = config.build().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


def save(folder, **options):
    model = make(BertConfig(**SIZES, **options))
    store.write(folder, model, model.config, {"vocabulary": WORDS, "about": "fills in words"})
    return model


@torch.no_grad()
def test_a_masked_word_is_guessed_and_not_called_the_next_token(tmp_path):
    model = save(tmp_path / "guesser", head="masked_words")
    with opened(tmp_path / "kept", tmp_path / "guesser") as (client, _):
        listed = {one["name"]: one for one in client.get("/api/models").json()}["guesser"]
        assert (listed["reads"], listed["writes"], listed["tasks"]) == ("text", None, ["read"])
        done = run(client, model="guesser", text="the cat [MASK] on the [MASK] .")[-1]
        output = client.get(f"/api/traces/{done['trace']}").json()["output"]
        assert (output["text"], output["next"], output["classes"]) == (None, None, None)
        shares = model(torch.tensor([[2, 3, 1, 5, 2, 1, 7]]))[0, 2].softmax(-1)
        assert {one["name"]: one["share"] for one in output["masked"]} == pytest.approx(
            dict(zip(WORDS, shares.tolist(), strict=True)), rel=1e-5
        )
        assert output["masked"][0]["name"] == WORDS[int(shares.argmax())]
        changed = client.post(f"/api/traces/{done['trace']}/edit", json={"edits": [EDIT | {"heads": [1]}]}).json()
        assert changed["kl"] > 0
        assert changed["before"][0]["name"] == output["masked"][0]["name"]
        plain = run(client, model="guesser", text="the cat sat")[-1]
        assert client.get(f"/api/traces/{plain['trace']}").json()["output"] == {
            "text": None, "next": None, "classes": None,
        }  # fmt: skip


@pytest.mark.parametrize("head", ["none", "next_sentence", "pretrain", "classify", "tags", "span", "discriminate"])
def test_every_head_runs(head, tmp_path):
    save(tmp_path, head=head)
    result = open_reader("one", tmp_path).run(RunRequest(model="one", text="the [MASK] sat"), RunMonitor())
    assert len(result.trace.layers) == 2
    assert [tokens.shown for tokens in result.trace.layers[0].queries] == [("the", "[MASK]", "sat")]
    assert (result.output.masked is not None) == (head == "pretrain")


@torch.no_grad()
def test_classes_have_the_names_of_the_config(tmp_path):
    names = {str(number): f"class {number}" for number in range(12)}
    (tmp_path / "config.json").write_text(json.dumps({"id2label": names}))
    assert read_labels(tmp_path) == [f"class {number}" for number in range(12)]
    model = make(BertConfig(**SIZES, head="classify", labels=3))
    request = RunRequest(model="one", text="the cat sat")
    result = ReaderRunner("one", model, WordTokenizer(WORDS), ["bad", "fair", "good"]).run(request, RunMonitor())
    wanted = model(torch.tensor([[2, 3, 4]]))[0].softmax(-1)
    found = {one.name: one.share for one in result.output.classes}
    assert_close(torch.tensor([found[name] for name in ("bad", "fair", "good")]), wanted, rtol=1e-5, atol=1e-6)
    unnamed = ReaderRunner("one", model, WordTokenizer(WORDS), ["bad", "good"]).run(request, RunMonitor())
    assert unnamed.output.classes is None
    for content in ("[", "[1]", '{"id2label": {"a": "b"}}', "{}"):
        (tmp_path / "config.json").write_text(content)
        assert read_labels(tmp_path) == []


def test_a_sentence_encoder_only_reads_and_a_text_that_is_too_long_is_refused(tmp_path):
    model = make(SentenceEncoderConfig(**SIZES))
    store.write(tmp_path / "encoder", model, model.config, {"vocabulary": WORDS})
    with opened(tmp_path / "kept", tmp_path / "encoder") as (client, _):
        done = run(client, model="encoder", text="the cat sat on the mat .")[-1]
        assert done["kind"] == "done"
        assert run(client, model="encoder", text="cat " * 17)[-1]["code"] == "text.long"
        assert run(client, model="encoder", text=" ")[-1]["code"] == "text.empty"


@torch.no_grad()
def test_a_text_classifier_says_its_classes_and_shows_what_its_pooling_looks_at(tmp_path):
    model = make(TextClassifierConfig(**SIZES, labels=3))
    store.write(tmp_path / "judge", model, model.config, {"vocabulary": WORDS, "classes": ["bad", "fair", "good"]})
    with opened(tmp_path / "kept", tmp_path / "judge") as (client, _):
        done = run(client, model="judge", text="the cat sat .")[-1]
        told = client.get(f"/api/traces/{done['trace']}").json()
        wanted = model(torch.tensor([[2, 3, 4, 7]]))[0].softmax(-1)
        assert {one["name"]: one["share"] for one in told["output"]["classes"]} == pytest.approx(
            dict(zip(["bad", "fair", "good"], wanted.tolist(), strict=True)), rel=1e-5
        )
        changed = client.post(f"/api/traces/{done['trace']}/edit", json={"edits": [EDIT | {"heads": [1]}]}).json()
        assert changed["kl"] > 0
        assert {one["name"] for one in changed["after"]} == {"bad", "fair", "good"}
    result = open_reader("judge", tmp_path / "judge").run(RunRequest(model="judge", text="the cat sat"), RunMonitor())
    pooling = result.trace["pooling"]
    assert pooling.weights.shape == (1, 1, 1, 3)
    assert pooling.keys[0].shown == ("the", "cat", "sat")
