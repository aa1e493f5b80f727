"""What a token pays for standing in its text already."""

import math

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.models.decoder_state import DecoderState


def penalise(scores: Tensor, seen: Tensor, penalty: float | int) -> Tensor:
    """Scores (b, n), with those of `seen` (b, n; True) divided where they are positive, and multiplied where not.

    >>> penalise(torch.tensor([[2.0, -2.0, 3.0]]), torch.tensor([[True, True, False]]), 2)
    tensor([[ 1., -4.,  3.]])
    """
    return torch.where(seen, torch.where(scores < 0, scores * penalty, scores / penalty), scores)


class RepetitionPenalty:
    """Which tokens each row holds, prompt and what was written, and what that costs them (Keskar et al. 2019, §4.1).

    A penalty of 1 costs nothing and remembers nothing; above 1 what was said becomes less likely. It equals
    `RepetitionPenaltyLogitsProcessor` of `transformers`, but padding before a shorter prompt does not count as said.
    """

    def __init__(self, penalty: float | int, steps: DecoderState) -> None:
        check_repetition(penalty)
        self.penalty, self.steps = penalty, steps
        self.seen: Tensor | None = None  # b n

    def __call__(self, scores: Tensor, ids: Tensor) -> Tensor:
        """The scores (b, n) of what comes after `ids` (b, t), which were just read."""
        if self.penalty == 1:
            return scores
        if self.seen is None:
            padding = getattr(self.steps, "left_padding", None)
            self.seen = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
            for row, skipped in enumerate([0] * len(ids) if padding is None else padding.tolist()):
                self.seen[row, ids[row, skipped:]] = True
            self.seen[:, list(getattr(self.steps, "read_ids", ()))] = True  # what a kept state has read before
        else:
            self.seen.scatter_(1, ids, True)
        return penalise(scores, self.seen, self.penalty)

    def reorder(self, index: Tensor) -> None:
        """Row i becomes what row index[i] was."""
        if self.seen is not None:
            self.seen = self.seen[index]


def check_repetition(penalty: float | int) -> None:
    """Raises where a penalty is none."""
    if not 0 < penalty < math.inf:
        raise ConfigError(
            f"repetition_penalty is {penalty}, but it divides the logits of what was said; "
            "give more than 0, and 1 for no penalty"
        )
