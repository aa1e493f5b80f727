"""The finished texts of a beam search, and whether more can come of it."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.decode.penalties import LengthPenalty
from regard.errors import ConfigError

STOPS = ("full", "likely", "sure")


class FinishedTexts(NamedTuple):
    """The best finished texts of every row, falling: (r, beams) each; a score of −∞ is none."""

    scores: Tensor
    places: Tensor  # length without END · beams + which beam it was then

    @staticmethod
    def none(rows: int, beams: int, like: Tensor) -> "FinishedTexts":
        """Nothing finished yet."""
        places = torch.zeros(rows, beams, dtype=torch.int64, device=like.device)
        return FinishedTexts(like.new_full((rows, beams), -torch.inf), places)

    def add(self, scores: Tensor, length: int, slots: Tensor) -> "FinishedTexts":
        """The best of these and of the texts of `length` tokens with `scores` (r, c); of equals, the older."""
        beams = self.scores.shape[1]
        both, at = torch.cat([self.scores, scores], 1).sort(dim=1, descending=True, stable=True)
        places = torch.cat([self.places, slots + length * beams], 1)
        return FinishedTexts(both[:, :beams], places.gather(1, at[:, :beams]))

    def at(self, rows: Tensor) -> "FinishedTexts":
        """Those of some rows only."""
        return FinishedTexts(self.scores[rows], self.places[rows])

    def put(self, rows: Tensor, other: "FinishedTexts") -> None:
        """Writes those of `other` in these rows."""
        for mine, theirs in zip(self, other):
            mine[rows] = theirs


class StopRule:
    """When a row is done.

    All rules end a row when no beam can go on. "full" ends it with as many finished texts as beams (`transformers`'
    early_stopping=True). "likely" goes on until, besides, the best open text divided by the penalty of its present
    length is no better than the worst of them (early_stopping=False). "sure" ends it when no open text can still
    come among the `best` finished ones, whatever it says, up to the longest (early_stopping="never", which waits for
    the worst of all and finds the same).
    """

    def __init__(self, rule: str, divisor: LengthPenalty, best: int, longest: Tensor) -> None:
        if rule not in STOPS:
            raise ConfigError(f"stop is {rule!r}; choose one of {', '.join(map(repr, STOPS))}")
        self.rule, self.divisor, self.best, self.longest = rule, divisor, best, longest
        self.table: Tensor | None = None

    def __call__(self, alive: Tensor, so_far: Tensor, said: int, closed: FinishedTexts) -> Tensor:
        """True for the rows that are done, (r,), after `said` tokens with the scores `so_far` (r, beams), falling."""
        leading, worst = so_far[:, 0], closed.scores[:, -1]
        stuck = leading == -torch.inf
        if self.rule == "full":
            return stuck | (worst > -torch.inf)
        if self.rule == "likely":
            return stuck | ((leading / self.divisor(said) <= worst) & (worst > -torch.inf))
        # Scores are never above 0: they are best divided by the largest penalty that may come.
        table = self._table(so_far)
        ahead = table[min(said + 1, len(table) - 1) :].cummax(0).values
        most = ahead[(self.longest[alive] - said).clamp(min=0)]
        return stuck | (leading / most <= closed.scores[:, self.best - 1])

    def _table(self, like: Tensor) -> Tensor:
        """The penalty of every length up to the longest with END; length 0 does not come."""
        if self.table is None:
            lengths = range(1, int(self.longest.max()) + 2)
            self.table = like.new_tensor([1.0, *(self.divisor(length) for length in lengths)])
        return self.table
