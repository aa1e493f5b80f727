"""Codes of GGUF files: packed, and computed with, against the values that the gguf package unpacks."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regard.errors import ConfigError, ModelError, WatchError
from regard.models.gguf import GGUFFile
from regard.models.gguf.model import read_model
from tests.models.gguf.converted import make, to_gguf
from tests.models.gguf.files import smollm, write_gguf

pytest.importorskip("numba", reason="needs numba: pip install 'regard[fast]'")
import gguf

import regard
from regard.models.fast.packing import ROW_BYTES, pack
from regard.models.fast.quantized import QuantizedModel
from regard.models.fast.tables import NAMES, Q4_0, Q4_1, Q8_0

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


def unpack(tiles, code, rows, columns):
    """The values of packed tiles, number by number, as packing.py describes them."""
    data, size = tiles.reshape(-1), 16 * ROW_BYTES[code]
    values, head = np.zeros((rows, columns), np.float32), 64 if code == Q4_1 else 32
    for row in range(rows):
        for column in range(columns):
            block = data[((row // 16) * (columns // 32) + column // 32) * size :][:size]
            halves = block[:head].view(np.float16).astype(np.float32)
            place, each = column % 32, 4 if code == Q8_0 else 8
            word = block[head:].view(np.uint32)[place // each * 16 + row % 16]
            bits = int(word) >> (32 // each * (place % each))
            number = ((bits + 128) % 256) - 128 if code == Q8_0 else bits & 15
            number = number - 8 if code == Q4_0 else number
            values[row, column] = halves[row % 16] * np.float32(number)
            values[row, column] += halves[16 + row % 16] if code == Q4_1 else 0
    return values


@pytest.mark.parametrize("code", [Q4_0, Q4_1, Q8_0], ids=[NAMES[code] for code in (Q4_0, Q4_1, Q8_0)])
def test_packed_codes_are_the_same_bits_at_other_places(code):
    kind = gguf.GGMLQuantizationType[NAMES[code]]
    stored = gguf.quants.quantize(np.random.default_rng(0).standard_normal((21, 96), np.float32), kind)
    packed = pack(stored, code)
    assert packed.nbytes == 32 * 3 * ROW_BYTES[code]
    np.testing.assert_array_equal(unpack(packed, code, 21, 96), gguf.quants.dequantize(stored, kind))


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
