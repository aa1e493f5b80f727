"""How long a text may become, which ids begin and end it, and which are never said."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import ConfigError, ShapeError
from regard.models.decoder_state import DecoderState, HasPrompt


@dataclass(frozen=True)
class Limits:
    """What a decoder may write.

    A text that has `longest` tokens is ended: END is the only thing left to say, and counts in the score with the
    probability that the model gives it. Before `shortest` tokens END is not said. What may not be said takes no part
    in the choice, and the probabilities of the rest stay what the model made them. Where `end` is None, no token ends
    a text: each has exactly `longest` tokens, and their probabilities are its score. `never` is PAD and BEGIN, 0 and 1,
    unless it is given; where nothing ends a text, there are none of these.

    >>> Limits(longest=50, shortest=2)
    Limits(longest=50, shortest=2, begin=1, end=2, never=(0, 1))
    >>> Limits(longest=[3, 1])
    Limits(longest=[3, 1], shortest=0, begin=1, end=2, never=(0, 1))
    >>> Limits(longest=4, end=None)
    Limits(longest=4, shortest=0, begin=1, end=None, never=())
    """

    longest: int | Sequence[int]  # tokens without END, for all rows or one number per row
    shortest: int = 0  # tokens without END
    begin: int = 1  # what every row is fed first
    end: int | None = 2  # what ends a text; None where nothing does
    never: tuple[int, ...] | None = None  # ids that are never said

    def __post_init__(self) -> None:
        if self.never is None:
            object.__setattr__(self, "never", () if self.end is None else (0, 1))
        lengths = self._lengths()
        if self.shortest < 0:
            raise ConfigError(f"shortest is {self.shortest}, but it counts tokens; give 0 or more")
        if lengths and min(lengths) < 0:
            raise ConfigError(f"longest is {min(lengths)}, but it counts tokens; give 0 or more")
        if lengths and min(lengths) < self.shortest:
            raise ConfigError(
                f"longest is {min(lengths)}, but a text has at least shortest={self.shortest} tokens; "
                "raise longest or lower shortest"
            )
        if self.end is not None and self.end in self.banned:
            raise ConfigError(f"the id {self.end} is both end and never said; leave it out of never")

    @property
    def banned(self) -> tuple[int, ...]:
        """The ids that are never said."""
        return self.never or ()

    @property
    def most(self) -> int:
        """The longest of all rows."""
        return max(self._lengths(), default=0)

    @property
    def steps(self) -> int:
        """How often a model is asked for the next token at most; END is one of them."""
        return self.most + (self.end is not None)

    def per_row(self, rows: int, device: torch.device | str | None = None) -> Tensor:
        """The longest of every row, (rows,)."""
        lengths = self._lengths()
        if isinstance(self.longest, int):
            lengths = lengths * rows
        if len(lengths) != rows:
            raise ShapeError(
                f"longest came for {len(lengths)} rows, but {rows} are written; give one number, or one per row"
            )
        return torch.tensor(lengths, dtype=torch.int64, device=device)

    def check(self, vocabulary: int) -> None:
        """Raises where an id is none of the `vocabulary` that the model says."""
        for name, ids in (("end", () if self.end is None else (self.end,)), ("never", self.banned)):
            for i in ids:
                if not 0 <= i < vocabulary:
                    raise ConfigError(
                        f"{name} holds the id {i}, but the model says {vocabulary} tokens; "
                        f"give ids from 0 to {vocabulary - 1}"
                    )

    def _lengths(self) -> list[int]:
        return [self.longest] if isinstance(self.longest, int) else list(self.longest)


def make_first_ids(steps: DecoderState, rows: int, limits: Limits) -> Tensor:
    """What is fed first: the prompt of a state that has one, else BEGIN for every row, (rows, 1).

    The latter stands on `steps.device` where the model tells one.
    """
    if rows < 0:
        raise ShapeError(f"rows is {rows}, but it counts texts; give 0 or more")
    if isinstance(steps, HasPrompt):
        return steps.take_prompt(rows, limits.steps)
    return torch.full((rows, 1), limits.begin, dtype=torch.int64, device=getattr(steps, "device", None))
