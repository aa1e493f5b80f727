"""Logits → log-probabilities, and what may be said of them."""

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.decode.limits import Limits
from regard.errors import ModelError
from regard.models.decoder_state import DecoderState, HasHead


class LogProbs:
    """log softmax of logits (b, n), in float32 or better, each time in the same memory.

    One pass writes it. A logsumexp would need as much room for its exponentials, and new room every time costs more
    than the numbers do: for 320 rows of 10,000 the system hands out 12 MB in 14 ms, and 4 ms are spent computing.

    >>> LogProbs()(torch.zeros(1, 4)).exp()
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    def __init__(self) -> None:
        self.memory: Tensor | None = None
        self.steps: DecoderState | None = None  # that was asked last
        self.headed: HasHead | None = None  # the same, where it tells its head: to look each time takes long

    def __call__(self, logits: Tensor) -> Tensor:
        """What came before is overwritten."""
        dtype = torch.promote_types(logits.dtype, torch.float32)
        rows, columns = logits.shape
        room = self.room(rows, columns, logits.new_empty(0, dtype=dtype))
        return torch.log_softmax(logits, -1, dtype=dtype, out=room)

    def after(self, steps: DecoderState, ids: Tensor) -> Tensor:
        """The same of the logits that a model gives after these ids; where it tells its head, they stand there too."""
        if steps is not self.steps:
            self.steps, self.headed = steps, steps if isinstance(steps, HasHead) else None
        if self.headed is None or torch.is_autocast_enabled(ids.device.type):
            return self(steps(ids))
        hidden, (weight, bias) = self.headed.hidden(ids), self.headed.head
        if hidden.dtype not in (torch.float32, torch.float64) or weight.dtype != hidden.dtype:
            return self(F.linear(hidden, weight, bias))
        room = self.room(len(hidden), len(weight), hidden)
        logits = torch.mm(hidden, weight.T, out=room) if bias is None else torch.addmm(bias, hidden, weight.T, out=room)
        return torch.log_softmax(logits, -1, out=logits)

    def room(self, rows: int, columns: int, like: Tensor) -> Tensor:
        size = rows * columns
        if self.memory is None or self.memory.numel() < size:
            self.memory = torch.empty(size, dtype=like.dtype, device=like.device)
        return self.memory[:size].view(rows, columns)


def list_banned(limits: Limits, said: int, device: torch.device) -> Tensor:
    """The ids that may not be said after `said` tokens."""
    ids = limits.banned if limits.end is None or said >= limits.shortest else (*limits.banned, limits.end)
    return torch.tensor(ids, dtype=torch.int64, device=device)


def make_nan_error(step: int) -> ModelError:
    """What to raise where a score is NaN."""
    return ModelError(
        f"the model gave logits that are not numbers (NaN) for token {step + 1}; look at its weights and its input"
    )
