"""Where a beam search stands, and one step of it, all in tensors."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.decode.candidates import candidates
from regard.decode.closed import Closed, Stop
from regard.decode.decoded import Decoded
from regard.decode.limits import Limits
from regard.decode.penalties import LengthPenalty
from regard.decode.told import Told


class Move(NamedTuple):
    """What a step would do. The first five are tensors, the rest was fetched from the device in one go."""

    scores: Tensor  # r beams: the texts that go on, best first
    tokens: Tensor  # r beams: what they say
    parents: Tensor  # r beams: the beams they come from
    origin: Tensor  # r beams: the same, counted over all rows
    closed: Closed
    over: list[bool]  # for every row
    tied: bool  # the order of equal scores was left to chance: look again, exactly
    wrong: bool  # a score is NaN
    still: bool  # every beam goes on from itself


class Search:
    """The rows that are still written, the open texts of each, and its finished ones."""

    def __init__(
        self,
        rows: int,
        *,
        beams: int,
        limits: Limits,
        longest: Tensor,
        divisor: LengthPenalty,
        stop: Stop,
        like: Tensor,
    ) -> None:
        self.beams, self.limits, self.longest, self.divisor, self.stop = beams, limits, longest, divisor, stop
        self.alive = torch.arange(rows, device=like.device)  # which row stands where
        self.so_far = like.new_zeros(rows, 1)  # r w: one beam per row, until it has said something
        self.closed = Closed.none(rows, beams, like)
        self.done = Closed.none(rows, beams, like)  # of all rows, filled in as they end
        self.told = Told()

    @property
    def said(self) -> int:
        """How many tokens every open text has."""
        return len(self.told.steps)

    def look(self, chances: Tensor, cost: Tensor | None, *, exact: bool) -> Move:
        """The best step by the log-probabilities (r · w, n); `cost` (r · w,) is added to what ends here."""
        found = candidates(
            chances,
            self.so_far,
            beams=self.beams,
            end=self.limits.end,
            may_end=self.said >= self.limits.shortest,
            must_end=self.longest[self.alive] <= self.said,
            exact=exact,
        )
        ended, slots = found.ends[:, : self.beams], found.beams[:, : self.beams]
        score = found.scores[:, : self.beams] / self.divisor(self.said + 1)
        if cost is not None:
            score = score + cost.view(self.so_far.shape).gather(1, slots)
        closed = self.closed.add(score.where(ended, -torch.inf), self.said, slots)
        scores, parents, tokens = found.open(self.beams)
        over = self.stop(self.alive, scores, self.said + 1, closed)
        rows, width = self.so_far.shape
        origin = torch.arange(0, rows * width, width, device=parents.device)[:, None] + parents
        still = (parents == torch.arange(self.beams, device=parents.device)).all() & (width == self.beams)
        flags = torch.cat([over, torch.stack([found.tied, found.scores[:, 0].isnan().any(), still])])
        *gone, tied, wrong, same = flags.tolist()  # the one moment of a step at which the device is waited for
        return Move(scores, tokens, parents, origin, closed, gone, tied, wrong, same)

    def take(self, move: Move) -> tuple[Tensor, Tensor]:
        """Does it. (which of the r · w texts each one that goes on comes from, what it says), for all that do."""
        self.told.append(self.alive, move.tokens, move.parents)
        self.so_far, self.closed = move.scores, move.closed
        index, tokens = move.origin, move.tokens
        if any(move.over):
            over = torch.tensor(move.over, device=index.device)
            self.done.put(self.alive[over], move.closed.at(over))
            going = ~over
            self.alive, self.so_far, self.closed = self.alive[going], self.so_far[going], self.closed.at(going)
            index, tokens = index[going], tokens[going]
        return index.flatten(), tokens.flatten()

    def texts(self, best: int) -> list[list[Decoded]]:
        """The `best` finished texts of every row, best first."""
        scores, lengths, slots = (part[:, :best] for part in self.done)
        written = self.told.trace(slots, lengths)
        return [
            [Decoded(ids, score) for ids, score in zip(texts, row) if score > -torch.inf]
            for texts, row in zip(written, scores.tolist())
        ]
