"""Where a run stands, and which score is the best so far."""

import math
from dataclasses import dataclass, field

from regard.training.task import Better


@dataclass
class Progress:
    """Where a run stands, beside its weights. As a checkpoint has it, nothing was told of the step yet."""

    step: int = 0  # updates made
    epoch: int = 0
    index: int = 0  # batches of the epoch that are done
    best: float | None = None  # best score so far, and when
    best_step: int = 0
    waited: int = 0  # validations since
    lr: float = 0.0  # of the last update, and the norm of its gradient
    norm: float = 0.0
    since: dict[str, float] = field(default_factory=lambda: {"loss": 0.0, "nll": 0.0, "count": 0.0})  # the last line
    over: bool = False  # stopped early


def beats(score: float, best: float | None, better: Better) -> bool:
    """Whether a score is better than the best so far: the first one is, and anything is better than no number.

    >>> beats(3.0, 2.0, Better("bleu")), beats(3.0, 2.0, Better("loss", more=False)), beats(3.0, math.nan, Better("x"))
    (True, False, True)
    """
    return best is None or math.isnan(best) or (score > best if better.more else score < best)
