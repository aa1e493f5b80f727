"""GGUF files, byte by byte, against the gguf package; and files that lie."""

import struct
import tracemalloc

import numpy as np
import pytest

from regard.errors import ModelError
from regard.models.gguf import GGUFFile, read_header
from regard.models.gguf.types import TYPES
from tests.models.gguf.files import gguf, smollm, write_gguf

WRITTEN = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")  # those that the package can also write
PACKED = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS")
METADATA = {"llama.block_count": 3, "general.name": "a 猫 🙂", "llama.rope.freq_base": 1e5, "x.flag": True}
METADATA |= {"tokenizer.ggml.tokens": ["a", "", "猫"], "tokenizer.ggml.scores": [0.5, -1.0], "x.ids": [1, 2, 3]}


def tensors(rng, rows=5):
    return {f"{kind}.weight": rng.standard_normal((rows, 256)).astype("f4") for kind in WRITTEN}


@pytest.fixture
def path(tmp_path):
    made = tensors(np.random.default_rng(0))
    return write_gguf(tmp_path / "a.gguf", METADATA, made, types={name: name.split(".")[0] for name in made})


def test_the_table_of_types_is_that_of_the_package():
    for number, kind in TYPES.items():
        theirs = gguf.GGMLQuantizationType(number)
        assert (theirs.name, gguf.GGML_QUANT_SIZES[theirs]) == (kind.name, (kind.values, kind.bytes))


def test_metadata_and_tensors_are_those_that_the_package_reads(path):
    ours, theirs = GGUFFile(path), gguf.GGUFReader(path)
    told = {key: field.contents() for key, field in theirs.fields.items() if not key.startswith("GGUF.")}
    assert ours.metadata == told
    assert METADATA.items() <= {**told, "llama.rope.freq_base": 1e5}.items()
    assert ours.architecture == "llama"
    assert list(ours.tensors) == [tensor.name for tensor in theirs.tensors]
    for tensor in theirs.tensors:
        mine = ours.tensors[tensor.name]
        assert mine.type == tensor.tensor_type.name
        assert mine.shape == tuple(reversed(tensor.shape.tolist()))
        assert np.array_equal(mine.codes, tensor.data.view(np.uint8))
        assert not mine.codes.flags.writeable


def test_smollm_is_read_as_by_the_package():
    ours, theirs = GGUFFile(smollm()), gguf.GGUFReader(smollm())
    assert ours.metadata == {key: f.contents() for key, f in theirs.fields.items() if not key.startswith("GGUF.")}
    for tensor in theirs.tensors[:9]:
        assert np.array_equal(ours.tensors[tensor.name].codes.ravel(), tensor.data.view(np.uint8).ravel())
        wanted = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.array_equal(ours.dequantize(tensor.name), wanted)


@pytest.mark.parametrize("kind", WRITTEN)
def test_what_was_written_comes_back_within_the_steps_of_its_type(path, kind):
    wanted = tensors(np.random.default_rng(0))[f"{kind}.weight"]
    values = GGUFFile(path).dequantize(f"{kind}.weight")
    assert values.dtype == np.float32
    assert values.flags.writeable
    steps = {"F32": 0, "F16": 2**-9, "BF16": 2**-7, "Q8_0": 0.02, "Q5_0": 0.2, "Q5_1": 0.2, "Q4_0": 0.4, "Q4_1": 0.4}
    assert np.abs(values - wanted).max() <= steps[kind]
    theirs = gguf.quants.dequantize(gguf.quants.quantize(wanted, gguf.GGMLQuantizationType[kind]),
                                    gguf.GGMLQuantizationType[kind])  # fmt: skip
    assert np.array_equal(values, theirs.reshape(wanted.shape))


def write_codes(path, codes, kind):
    """A file with one tensor `w` of these bytes."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("w", codes, raw_dtype=gguf.GGMLQuantizationType[kind])
    for step in ("header", "kv_data", "tensors"):
        getattr(writer, f"write_{step}_to_file")()
    writer.close()
    return GGUFFile(path)


@pytest.mark.parametrize("kind", PACKED)
def test_blocks_that_the_package_only_reads_are_read_in_their_places(tmp_path, kind):
    stored = next(one for one in TYPES.values() if one.name == kind)
    codes = np.random.default_rng(1).integers(0, 60, (37, 3, 512 // stored.values * stored.bytes), dtype=np.uint8)
    file = write_codes(tmp_path / "k.gguf", codes, kind)
    assert file.tensors["w"].shape == (37, 3, 512)
    wanted = gguf.quants.dequantize(codes, gguf.GGMLQuantizationType[kind])
    assert np.array_equal(file.dequantize("w"), wanted, equal_nan=True)


def block_q4_k(scale, least, scales, mins, codes):
    """One Q4_K block by its definition in ggml: 8 groups of 32, each with 6 bits of scale and of least."""
    packed = np.zeros(12, np.uint8)
    for group in range(4):
        packed[group] = (scales[group] & 63) | (scales[group + 4] >> 4 << 6)
        packed[group + 4] = (mins[group] & 63) | (mins[group + 4] >> 4 << 6)
        packed[group + 8] = (scales[group + 4] & 15) | ((mins[group + 4] & 15) << 4)
    nibbles = np.concatenate([codes[pair * 2] | (codes[pair * 2 + 1] << 4) for pair in range(4)])
    return np.concatenate([np.array([scale, least], "<f2").view(np.uint8), packed, nibbles.astype(np.uint8)])


def test_q4_k_stands_for_what_its_definition_says(tmp_path):
    rng = np.random.default_rng(2)
    scales, mins, codes = rng.integers(0, 64, 8), rng.integers(0, 64, 8), rng.integers(0, 16, (8, 32))
    block = block_q4_k(0.5, 0.25, scales, mins, codes)
    file = write_codes(tmp_path / "k.gguf", block[None], "Q4_K")
    wanted = 0.5 * scales[:, None] * codes - 0.25 * mins[:, None]
    assert np.array_equal(file.dequantize("w").reshape(8, 32), wanted)


def test_q6_k_stands_for_what_its_definition_says(tmp_path):
    rng = np.random.default_rng(3)
    codes, scales = rng.integers(0, 64, (2, 4, 32)), rng.integers(-128, 128, (2, 4, 2), dtype=np.int8)
    low = [half[part] & 15 | (half[part + 2] & 15) << 4 for half in codes for part in (0, 1)]
    high = [sum((half[part] >> 4) << (2 * part) for part in range(4)) for half in codes]
    block = np.concatenate([*low, *high]).astype(np.uint8)
    block = np.concatenate([block, scales.ravel().view(np.uint8), np.array([0.125], "<f2").view(np.uint8)])
    file = write_codes(tmp_path / "k.gguf", block[None], "Q6_K")
    wanted = 0.125 * np.repeat(scales, 16, -1) * (codes - 32.0)
    assert np.array_equal(file.dequantize("w").reshape(2, 4, 32), wanted)


def test_a_file_that_is_cut_anywhere_is_refused_in_one_sentence(path, tmp_path):
    whole = path.read_bytes()
    last = max(info.start + info.size for info in read_header(path).tensors.values())
    cuts = [*range(200), *range(200, last, 97), last - 1]
    for cut in cuts:
        (tmp_path / "b.gguf").write_bytes(whole[:cut])
        with pytest.raises(ModelError, match=r"b\.gguf (ends too early|is no GGUF file)") as told:
            GGUFFile(tmp_path / "b.gguf")
        assert "\n" not in str(told.value)
    assert len(cuts) > 250
    (tmp_path / "b.gguf").write_bytes(whole[:last])
    GGUFFile(tmp_path / "b.gguf")


@pytest.mark.parametrize(("first", "number"), [(8, 2**20), (9, 2**40), (10, 2**63)])
def test_a_header_that_lies_allocates_nothing(path, tmp_path, first, number):
    """Bytes of the header as a huge number, everywhere: an error or another model, but no memory and no long loop."""
    whole = path.read_bytes()
    end = whole.index(b"F32.weight") + 80
    sentences = []
    for place in range(first, end, 3):
        (tmp_path / "b.gguf").write_bytes(whole[:place] + struct.pack("<Q", number) + whole[place + 8 :])
        tracemalloc.start()
        try:
            GGUFFile(tmp_path / "b.gguf")
        except ModelError as error:
            sentences.append(str(error))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**20
    assert len(sentences) > 60
    assert not [sentence for sentence in sentences if "\n" in sentence or len(sentence) > 600]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "holds less than 4 bytes"),
        (b"PK\x03\x04 something else", "does not begin with GGUF"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "of version 1, but 2 and 3 are read"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60), "ends too early"),
    ],
)
def test_what_is_no_gguf_file_is_refused(tmp_path, content, sentence):
    (tmp_path / "a.gguf").write_bytes(content)
    with pytest.raises(ModelError, match=sentence):
        GGUFFile(tmp_path / "a.gguf")


def test_a_path_that_cannot_be_read_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "none.gguf"):
        with pytest.raises(ModelError, match="cannot be read"):
            GGUFFile(path)


def test_a_tensor_that_is_not_there_and_a_package_that_is_not_there_are_named(path, monkeypatch):
    with pytest.raises(ModelError, match=r"a\.gguf has no tensor 'blk'; it has F32\.weight"):
        GGUFFile(path).dequantize("blk")
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    with pytest.raises(ModelError, match=r"install regard\[gguf\]"):
        GGUFFile(path).dequantize("Q8_0.weight")
