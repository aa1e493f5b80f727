"""One entry makes a kind of model known everywhere: a toy of two small classes is stored, opened, listed and seen."""

import dataclasses
import json

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.errors import ModelError
from regard.models import GPT, GPTConfig, Seq2SeqConfig, TranslatorConfig, embedded, store
from regard.models.kinds import KINDS, READS, Kind, kind_named, kind_of, kind_of_config, register, resolve
from regard.models.open.open_model import open_model
from tests.cli.run import run
from tests.toy_kind import TOY, Toy, ToyConfig, toy_in


@pytest.mark.parametrize("name", KINDS)
def test_every_entry_names_classes_that_are_there(name):
    kind = KINDS[name]
    assert kind.name == name
    assert dataclasses.is_dataclass(kind.config_class)
    assert issubclass(kind.model_class, nn.Module)
    assert callable(kind.open)


SIZES = {"gpt": GPTConfig(7, 12, 3, 2, 16), "translator": TranslatorConfig(11, 13, 12, 3, 2)}
SIZES |= {"seq2seq": Seq2SeqConfig(11, 13, 8), "baseline": Seq2SeqConfig(11, 13, 8, attention="none")}


@pytest.mark.parametrize(("name", "across"), {"gpt": 0, "translator": 1, "seq2seq": 1, "baseline": 0}.items())
def test_a_model_knows_its_kind_and_whether_it_looks_across(name, across):
    config = SIZES[name]
    kind, model = kind_of_config(config), config.build()
    assert kind_of(model) is kind
    assert isinstance(model, kind.model_class)
    assert kind.looks_across(model) == bool(across)


def test_what_extends_a_kind_is_of_that_kind_and_what_is_not_ours_of_none():
    class Longer(GPT):
        pass

    assert kind_of(Longer(GPTConfig(7, 12, 3, 2, 16))) is KINDS["gpt"]
    assert kind_of(nn.Linear(2, 3)) is None


def test_every_embedded_model_is_of_a_kind():
    kinds = {name: kind_named(embedded.describe(name).get("kind", "gpt")).task for name in embedded.names()}
    assert kinds == {
        "digits": "see", "en-zh": "translate", "en-zh-grammar": "translate", "en-zh-grammar-recurrent": "translate",
        "filler": "read", "glimpses": "see", "induction": "generate", "reader": "read", "sentence-encoder": "read",
        "sentiment": "read", "shapes-captioner": "see", "summariser": "summarise", "writer": "generate",
    }  # fmt: skip


def test_a_toy_is_stored_and_read(tmp_path):
    with toy_in(tmp_path) as (config, model):
        assert store.describe(tmp_path)["kind"] == "toy"
        assert store.describe(tmp_path)["config"] == dataclasses.asdict(config)
        again, tokenizer = open_model(tmp_path)
        assert isinstance(again, Toy)
        ids = torch.tensor([tokenizer.encode("the cat sat on the mat .")])
        assert_close(again(ids), model(ids), rtol=0, atol=0)
    with pytest.raises(ModelError, match=r"is of kind 'toy', but gpt, .*seq2seq are read here"):
        open_model(tmp_path)
    with pytest.raises(ModelError, match="ToyConfig is the config of no kind"):
        store.write(tmp_path, model, config, {})


@pytest.mark.parametrize("size", ["vocab_size", "width", "heads"])
def test_a_toy_that_lies_about_its_sizes_is_refused_before_memory_is_taken(tmp_path, size):
    with toy_in(tmp_path):
        told = store.describe(tmp_path)
        told["config"][size] = 10**12
        (tmp_path / store.MANIFEST).write_text(json.dumps(told))
        with pytest.raises(ModelError, match="holds other tensors than the config"):
            store.read(tmp_path)


def test_a_toy_is_seen_from_the_command_line(tmp_path, monkeypatch, capsys):
    with toy_in(tmp_path):
        words = ("see", "the cat sat", "--model", str(tmp_path), "--layer", "0", "--head", "1", "--json")
        code, out, err = run(monkeypatch, capsys, *words)
    assert code == 0, err
    layer = json.loads(out)["layers"][0]
    assert (layer["layer"], layer["queries"]) == ("attention", ["the", "cat", "sat"])
    assert_close(torch.tensor(layer["rows"]).sum(-1), torch.ones(3))


def test_a_toy_is_listed_with_those_that_come_with_the_package(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(embedded, "FOLDER", tmp_path)
    with toy_in(tmp_path / "little"):
        code, out, _ = run(monkeypatch, capsys, "models", "--json")
        assert (code, json.loads(out)["little"]["kind"]) == (0, "toy")
        code, out, _ = run(monkeypatch, capsys, "models")
        assert code == 0
        assert "little: reads and says a number" in out
        assert "--model little" in out


def test_a_kind_that_reads_no_text_is_not_seen(tmp_path, monkeypatch, capsys):
    other = dataclasses.replace(TOY, reads="numbers", tasks=("see",))
    with toy_in(tmp_path, other):
        code, _, err = run(monkeypatch, capsys, "see", "the cat", "--model", str(tmp_path))
    assert code == 2
    assert "is a toy, which reads numbers, but a text came" in " ".join(err.split())


def test_entries_that_say_nothing_useful_are_refused():
    with pytest.raises(ModelError, match="there is a kind 'gpt' already"):
        register(KINDS["gpt"])
    with pytest.raises(ModelError, match=r"there is no kind 'mamba' of model; there are: gpt, .*seq2seq"):
        kind_named("mamba")
    with pytest.raises(ModelError, match=r"reads 'smell'; choose one of " + ", ".join(map(repr, READS))):
        dataclasses.replace(TOY, reads="smell")
    with pytest.raises(ModelError, match="serves 'dance'; choose from 'generate'"):
        dataclasses.replace(TOY, tasks=("dance",))
    with pytest.raises(ModelError, match="serves 'nothing'"):
        dataclasses.replace(TOY, tasks=())
    with pytest.raises(ModelError, match="'nowhere:Class' cannot be imported"):
        Kind("x", "nowhere:Class", "", "text", None, ("read",), "").config_class  # noqa: B018
    assert resolve(TOY.config) is ToyConfig
