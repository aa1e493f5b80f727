"""The logits of a model's answer, whatever form that has."""

from typing import Any

from torch import Tensor


def find_logits(output: Any) -> Tensor | None:
    """What may be logits over a vocabulary: an answer that is a tensor, or the part of it that is called so.

    >>> import torch
    >>> find_logits(torch.zeros(1, 2, 3)).shape, find_logits((torch.zeros(1, 2, 3),))
    (torch.Size([1, 2, 3]), None)
    """
    parts = (output, *(getattr(output, name, None) for name in ("logits", "prediction_logits", "words")))
    return next((part for part in parts if isinstance(part, Tensor) and part.ndim == 3), None)
