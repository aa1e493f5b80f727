"""Codes of GGUF files: packed, and computed with, against the values that the gguf package unpacks."""

import pytest
import torch
from torch.testing import assert_close

from regard.errors import ConfigError, ModelError, WatchError
from regard.models.gguf import GGUFFile
from regard.models.gguf.model import read_model
from tests.models.fast.raw_codes import draw_codes, write_raw
from tests.models.gguf.converted import make, to_gguf
from tests.models.gguf.files import smollm, write_gguf

pytest.importorskip("numba", reason="needs numba: pip install 'regard[fast]'")
import regard
from regard.models.fast.quantized import QuantizedModel

WIDE = {
    "hidden_size": 96,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 160,
    "vocab_size": 77,
}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


def quantized_file(folder, kind, family="Llama", **fields):
    """A small model whose matrices are stored so; its vectors are float32."""
    architecture, keys, tensors = to_gguf(make(family, **{**WIDE, **fields}))
    types = {name: kind for name, tensor in tensors.items() if tensor.ndim > 1}
    return write_gguf(folder / "model.gguf", keys, tensors, architecture=architecture, types=types)


@pytest.mark.parametrize("kind", ["Q4_K", pytest.param("Q6_K", marks=pytest.mark.slow)])
@torch.no_grad()
def test_larger_blocks_are_computed_with_as_they_are(tmp_path, kind):
    fields = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "tie_word_embeddings": True}
    architecture, keys, tensors = to_gguf(make("Llama", **{**WIDE, **fields, "num_attention_heads": 8}))
    raw = {name: draw_codes(kind, *one.shape, seed=i) for i, (name, one) in enumerate(tensors.items()) if one.ndim > 1}
    path = write_raw(tmp_path / "model.gguf", keys, tensors, architecture, kind, raw)
    file, ids = GGUFFile(path), torch.randint(77, (1, 9), generator=torch.Generator().manual_seed(2))
    model, expected = QuantizedModel.read(file), read_model(file).double()(ids).float()
    assert list(model.weights.count_codes()) == [kind]
    assert_close(model(ids), expected, **TOLERANCE)
    state = model.begin(ids[:, :8])
    state(state.take_prompt(1, 2))
    assert_close(state(ids[:, 8:]), expected[:, 8], **TOLERANCE)


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q8_0", "F16", "F32"])
@torch.no_grad()
def test_logits_are_those_of_the_unpacked_model(tmp_path, kind):
    file = GGUFFile(quantized_file(tmp_path, kind))
    model, exact = QuantizedModel.read(file), read_model(file).double()
    ids = torch.randint(77, (2, 19), generator=torch.Generator().manual_seed(1))
    expected = exact(ids).float()
    assert_close(model(ids), expected, **TOLERANCE)
    state = model.begin(ids[:, :13])
    assert_close(state(state.take_prompt(2, 7)), expected[:, 12], **TOLERANCE)
    for at in range(13, 19):
        assert_close(state(ids[:, at : at + 1]), expected[:, at], **TOLERANCE)


FIELDS = [("Qwen2", {}), ("Qwen3", {"head_dim": 16}), ("Llama", {"attention_bias": True})]
FIELDS += [("Llama", {"tie_word_embeddings": True})]


@pytest.mark.parametrize(("family", "fields"), FIELDS)
@torch.no_grad()
def test_biases_norms_and_tied_heads_come_along(tmp_path, family, fields):
    file = GGUFFile(quantized_file(tmp_path, "Q4_1", family, **fields))
    ids = torch.randint(77, (1, 9), generator=torch.Generator().manual_seed(2))
    assert_close(QuantizedModel.read(file)(ids), read_model(file).double()(ids).float(), **TOLERANCE)


def test_the_model_says_what_it_is(tmp_path):
    model = QuantizedModel.read(quantized_file(tmp_path, "Q4_1"))
    assert repr(model).startswith("QuantizedModel('model.gguf': 3 layers of width 96, 0 MB as Q4_1")
    assert model.config.width == 96


def test_nobody_can_watch_codes_and_windows_are_refused(tmp_path):
    model = QuantizedModel.read(quantized_file(tmp_path, "Q8_0"))
    unpacked = read_model(GGUFFile(tmp_path / "model.gguf"))
    ids = torch.tensor([[1, 2, 3]])
    with regard.watch(unpacked):
        unpacked(ids)
        with pytest.raises(WatchError, match=r"open it with its weights unpacked: regard\.open_model\('model\.gguf'\)"):
            model.begin(ids)
    with pytest.raises(ConfigError, match="a window of 4 with 1 sinks came"):
        model.begin(ids, window=4, sinks=1)


def test_another_architecture_is_refused(tmp_path):
    architecture, keys, tensors = to_gguf(make("GPT2"))
    path = write_gguf(tmp_path / "gpt2.gguf", keys, tensors, architecture=architecture)
    with pytest.raises(ModelError, match="of the architecture 'gpt2', of which the fast engine knows nothing"):
        QuantizedModel.read(path)


@torch.no_grad()
def test_smollm2_writes_the_same_tokens_from_its_codes_as_unpacked():
    file = GGUFFile(smollm())
    model, unpacked = QuantizedModel.read(file), read_model(file)
    assert model.nbytes < 1.01 * file.path.stat().st_size
    ids = torch.tensor([[1, 9690, 198, 2683, 359, 253, 5356, 5646]])
    state = model.begin(ids)
    logits, rows = [state(state.take_prompt(1, 48))], ids
    for _ in range(47):
        rows = torch.cat((rows, logits[-1].argmax(-1, keepdim=True)), 1)
        logits.append(state(rows[:, -1:]))
    expected = unpacked(rows)[0, ids.shape[1] - 1 :]
    assert (torch.cat(logits) - expected).abs().max() < 2e-4
    assert torch.equal(torch.cat(logits).argmax(-1), expected.argmax(-1))
