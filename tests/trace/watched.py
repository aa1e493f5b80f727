"""One watched call, after seeing that the model gave the same as without."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.trace.record.trace import Trace

MODES = pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode], ids=["no grad", "inference mode"])


def watched(model: nn.Module, *args: Any, **named: Any) -> Trace:
    """The trace of one call, after seeing that the outputs are bit for bit those of the unwatched model."""
    torch.manual_seed(3)
    plain = model(*args, **named)
    torch.manual_seed(3)
    with regard.watch(model) as trace:
        found = model(*args, **named)
    for a, b in zip(tensors(plain), tensors(found), strict=True):
        assert torch.equal(a, b)
    return trace


def tensors(outputs: Any) -> list[Tensor]:
    if isinstance(outputs, Tensor):
        return [outputs]
    return [x for x in getattr(outputs, "values", lambda: outputs)() if isinstance(x, Tensor)]
