"""Folders of models: every kind comes back as it was, smaller where asked, and what is not whole is refused."""

import hashlib
import json

import pytest
import torch
from torch.testing import assert_close

from regard.errors import ModelError
from regard.models import GPT, GPTConfig, store
from regard.models.int8 import unpack_rows
from regard.models.seq2seq import Seq2Seq, Seq2SeqConfig
from regard.models.translator import Translator, TranslatorConfig

EVERY = {
    "gpt": (GPTConfig(7, 12, 3, 2, 16), GPT),
    "translator": (TranslatorConfig(11, 11, 12, 3, 2, decoder_layers=1, shared=True, positions="learned"), Translator),
    "seq2seq": (Seq2SeqConfig(11, 13, 8, layers=2, cell="lstm", embedding=5, tied=True), Seq2Seq),
}
SOURCE, TARGET = torch.tensor([[5, 6, 2], [7, 2, 0]]), torch.tensor([[1, 4], [1, 3]])


def spoil(folder, **changes):
    told = json.loads((folder / store.MANIFEST).read_text())
    (folder / store.MANIFEST).write_text(json.dumps(told | changes))


@pytest.mark.parametrize("kind", EVERY)
def test_every_kind_is_read_as_it_was_written(kind, tmp_path):
    config, made = EVERY[kind]
    model = config.build().eval()
    told = store.write(tmp_path, model, config, {"name": "x"}, {"source.json": b"{}", "target.json": "猫".encode()})
    assert (told["kind"], told["name"], told["weights"]["dtype"]) == (kind, "x", "float32")
    assert store.describe(tmp_path) == told
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        store.MANIFEST, store.WEIGHTS, "source.json", "target.json",
    ]  # fmt: skip
    found = store.read(tmp_path)
    assert isinstance(found, made)
    assert not found.training
    assert_close(found.state_dict(), model.state_dict(), rtol=0, atol=0)
    assert store.read_file(tmp_path, "target.json").decode() == "猫"
    if kind != "gpt":
        assert torch.equal(found(SOURCE, TARGET), model(SOURCE, TARGET))


def test_a_manifest_that_names_no_kind_is_that_of_a_gpt(tmp_path):
    config, _ = EVERY["gpt"]
    store.write(tmp_path, config.build(), config, {})
    told = store.describe(tmp_path)
    del told["kind"]
    (tmp_path / store.MANIFEST).write_text(json.dumps(told))
    assert isinstance(store.read(tmp_path), GPT)


@pytest.mark.parametrize("kind", EVERY)
def test_half_the_bytes_store_the_same_model_to_three_digits(kind, tmp_path):
    config, _ = EVERY[kind]
    model = config.build().eval()
    told = store.write(tmp_path, model, config, {}, dtype=torch.float16)
    size = (tmp_path / store.WEIGHTS).stat().st_size
    assert told["weights"]["dtype"] == "float16"
    assert told["weights"]["bytes"] == size
    tensors = len(model.state_dict())
    assert size < 2 * told["weights"]["parameters"] + 120 * tensors
    found = store.read(tmp_path)
    assert {p.dtype for p in found.parameters()} == {torch.float32}
    for name, tensor in model.state_dict().items():
        assert torch.equal(found.state_dict()[name], tensor.half().float())
    assert model.state_dict()[name].dtype == torch.float32  # what was written stays as it was


def test_numbers_that_float16_cannot_hold_are_not_lost_in_silence(tmp_path):
    config, _ = EVERY["translator"]
    model = config.build()
    with torch.no_grad():
        model.source_embed.weight[3, 4] = 7e4
    with pytest.raises(ModelError, match=r"source_embed\.weight has numbers that are not finite as torch\.float16"):
        store.write(tmp_path / "a", model, config, {}, dtype=torch.float16)
    assert not (tmp_path / "a").exists()
    store.write(tmp_path / "a", model, config, {})


def test_the_shipped_translator_takes_five_megabytes():
    """4 + 4 layers of width 128, 256 hidden channels, one table of 10,000 tokens: counted, not written."""
    with torch.device("meta"):
        model = TranslatorConfig(10_000, 10_000, 128, 4, 4, hidden=256, shared=True).build()
    parameters = sum(p.numel() for p in model.parameters())
    assert 2_600_000 < parameters < 2_700_000
    assert 2 * parameters < 5.5e6


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", store.MANIFEST, store.WEIGHTS, "", ".."])
def test_files_lie_beside_the_weights_and_nowhere_else(name, tmp_path):
    config, _ = EVERY["gpt"]
    with pytest.raises(ModelError, match="cannot lie beside the weights"):
        store.write(tmp_path / "a", config.build(), config, {}, {name: b"x"})
    store.write(tmp_path / "b", config.build(), config, {})
    spoil(tmp_path / "b", files={name: {"sha256": hashlib.sha256(b"").hexdigest()}})
    with pytest.raises(ModelError, match="cannot lie beside the weights"):
        store.read(tmp_path / "b")
    with pytest.raises(ModelError, match="cannot lie beside the weights"):
        store.read_file(tmp_path / "b", name)


def test_files_that_are_missing_or_changed_are_refused(tmp_path):
    config, _ = EVERY["seq2seq"]
    store.write(tmp_path, config.build(), config, {}, {"source.json": b"{}"})
    with pytest.raises(ModelError, match=r"has no 'target\.json'; there are: source\.json"):
        store.read_file(tmp_path, "target.json")
    (tmp_path / "source.json").write_bytes(b"[]")
    for reading in (store.read, lambda folder: store.read_file(folder, "source.json")):
        with pytest.raises(ModelError, match=r"source\.json is not the file that its manifest describes"):
            reading(tmp_path)
    (tmp_path / "source.json").unlink()
    with pytest.raises(ModelError, match=r"has no source\.json that can be read"):
        store.read(tmp_path)
    spoil(tmp_path, files=["source.json"])
    with pytest.raises(ModelError, match="has no list of files"):
        store.read(tmp_path)


@pytest.mark.parametrize(
    ("kind", "change", "sentence"),
    [
        ("translator", {"layers": 10**9}, "speaks of 1000000000 layers"),
        ("translator", {"decoder_layers": 10**9}, "speaks of 1000000000 layers"),
        ("translator", {"width": 10**15}, "holds other tensors than the config"),
        ("translator", {"heads": 10**12, "positions": "alibi"}, "holds other tensors than the config"),
        ("translator", {"source_vocab_size": 10**10, "target_vocab_size": 10**10}, "holds other tensors"),
        ("translator", {"context": 10**10}, "holds other tensors than the config"),
        ("translator", {"attention": "loud"}, "describes no model: attention is 'loud'"),
        ("translator", {"cell": "gru"}, "has no config of a Translator"),
        ("translator", {"width": "12"}, "describes no model: its width is '12'"),
        ("seq2seq", {"layers": 10**9}, "speaks of 1000000000 layers"),
        ("seq2seq", {"layers": "2"}, "describes no model: its layers is '2'"),
        ("seq2seq", {"embedding": 10**15}, "holds other tensors than the config"),
        ("seq2seq", {"cell": "gru"}, "holds other tensors than the config"),
        ("seq2seq", {"width": 9}, "describes no model: width is 9, but two directions have half of it each"),
        ("seq2seq", {"heads": 3}, "has no config of a Seq2Seq"),
    ],
)
def test_a_config_that_lies_is_refused_before_anything_is_made(kind, change, sentence, tmp_path):
    config, _ = EVERY[kind]
    store.write(tmp_path, config.build(), config, {})
    spoil(tmp_path, config=store.describe(tmp_path)["config"] | {"dropout": 0})
    store.read(tmp_path)
    spoil(tmp_path, config=store.describe(tmp_path)["config"] | change)
    with pytest.raises(ModelError, match=sentence):
        store.read(tmp_path)


def test_another_kind_of_model_is_named(tmp_path):
    config, _ = EVERY["gpt"]
    store.write(tmp_path, config.build(), config, {"kind": "of magic"})
    assert store.describe(tmp_path)["kind"] == "gpt"
    for kind in ("magic", ["gpt"], None):
        spoil(tmp_path, kind=kind)
        with pytest.raises(ModelError, match=r"but gpt, .*seq2seq are read here"):
            store.read(tmp_path)
    spoil(tmp_path, kind="seq2seq")
    with pytest.raises(ModelError, match="has no config of a Seq2Seq"):
        store.read(tmp_path)


def test_int8_takes_a_quarter_and_loses_at_most_half_a_step_of_each_row(tmp_path):
    torch.manual_seed(3)
    config = GPTConfig(vocab_size=53, width=24, heads=3, layers=2, context=17)
    model = config.build()
    manifest = store.write(tmp_path / "small", model, config, {}, dtype=torch.int8)
    whole = store.write(tmp_path / "whole", model, config, {})
    assert manifest["weights"]["dtype"] == "int8"
    assert manifest["weights"]["bytes"] < 0.45 * whole["weights"]["bytes"]
    read = store.read(tmp_path / "small").state_dict()
    for name, value in model.state_dict().items():
        step = value.abs().amax(-1, keepdim=True) / 127 if value.dim() == 2 else value.abs() / 1024
        assert ((read[name] - value).abs() <= step / 2 * (1 + 1e-5)).all(), name
        assert read[name].dtype == torch.float32


def test_int8_of_weights_that_are_no_numbers_is_refused(tmp_path):
    config = GPTConfig(vocab_size=11, width=8, heads=2, layers=1, context=5)
    model = config.build()
    with torch.no_grad():
        next(model.parameters())[1, 2] = torch.nan
    with pytest.raises(ModelError, match="not finite"):
        store.write(tmp_path, model, config, {}, dtype=torch.int8)


def test_scales_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(ModelError, match="scales that do not fit"):
        unpack_rows({"w": torch.ones(3, 2, dtype=torch.int8), "w::scale": torch.ones(2)})
