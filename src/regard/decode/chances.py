"""Logits → log-probabilities, and what may be said of them."""

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.decode.limits import Limits
from regard.errors import ModelError


def log_probabilities(logits: Tensor) -> Tensor:
    """log softmax in float32 or better, (b, n), in memory of its own."""
    # One pass and one buffer. A logsumexp would make a buffer of this size too, for the exponentials.
    return F.log_softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))


def banned(limits: Limits, said: int, device: torch.device) -> Tensor:
    """The ids that may not be said after `said` tokens."""
    ids = limits.never if said >= limits.shortest else (*limits.never, limits.end)
    return torch.tensor(ids, dtype=torch.int64, device=device)


def not_numbers(step: int) -> ModelError:
    """What to raise where a score is NaN."""
    return ModelError(
        f"the model gave logits that are not numbers (NaN) for token {step + 1}; look at its weights and its input"
    )
