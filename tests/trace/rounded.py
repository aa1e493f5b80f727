"""A cache whose older keys are not those that were computed: what quantising does, with no library behind it."""

import pytest
from torch import Tensor

pytest.importorskip("transformers")
from transformers.cache_utils import QuantizedLayer


class Rounded(QuantizedLayer):
    """Keeps old keys rounded and the newest ones whole; beams cannot be told by keys that were rounded alike."""

    def __init__(self) -> None:
        super().__init__(residual_length=3)

    def _quantize(self, tensor: Tensor, axis: int) -> Tensor:  # type: ignore[override]
        return (tensor * 8).round()

    def _dequantize(self, q_tensor: Tensor) -> Tensor:
        return q_tensor / 8
