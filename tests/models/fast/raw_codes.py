"""Codes of GGUF files made of random bytes, also of kinds that the gguf package can read but not write."""

import numpy as np
import pytest

from tests.models.gguf.files import add_value

pytest.importorskip("gguf", reason="needs gguf to write files with: pip install gguf")
import gguf

SCALES = {"Q4_0": (0,), "Q4_1": (0, 2), "Q8_0": (0,), "Q4_K": (0, 2), "Q6_K": (208,)}  # where float16 stand in a block


def draw_codes(kind, rows, columns, seed=0):
    """Random bytes as the rows of a matrix in a file; scales are small numbers."""
    values, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    generator = np.random.default_rng(seed)
    blocks = generator.integers(0, 256, (rows, columns // values, size), np.uint8)
    for at in SCALES[kind]:
        scales = generator.uniform(-0.02, 0.02, blocks.shape[:2]) / (32 if values > 32 else 1)
        blocks[..., at : at + 2] = scales.astype(np.float16)[..., None].view(np.uint8)
    return blocks.reshape(rows, -1)


def write_raw(path, keys, tensors, architecture, kind, codes):
    """A file whose matrices are these codes."""
    writer, number = gguf.GGUFWriter(path, architecture), gguf.GGMLQuantizationType[kind]
    for key, value in keys.items():
        add_value(writer, key, value)
    for name, tensor in tensors.items():
        writer.add_tensor(name, codes.get(name, tensor), raw_dtype=number if name in codes else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
