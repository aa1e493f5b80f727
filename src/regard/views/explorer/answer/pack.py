"""An answer as bytes: arrays by name in safetensors, and what is no array as JSON beside them."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.numpy import save
from torch import Tensor

KINDS = {torch.float64: torch.float32, torch.int64: torch.int32, torch.bool: torch.uint8}


class Answer(NamedTuple):
    """What is said in JSON, and the arrays by name; an array that is None is left out."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, Tensor | None]


def pack(answer: Answer) -> bytes:
    """One safetensors blob: float32, int32 and uint8 arrays, and `facts` as ASCII JSON in its metadata."""
    facts = json.dumps(answer.facts, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    arrays = {name: to_plain(array) for name, array in answer.arrays.items() if array is not None}
    return save(arrays, metadata={"facts": facts})


def to_plain(array: Tensor) -> np.ndarray:
    """A contiguous array of a kind that a browser knows."""
    array = array.detach()
    return np.ascontiguousarray(array.to("cpu", KINDS.get(array.dtype, array.dtype)).numpy())
