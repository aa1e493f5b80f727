"""Where a beam search stands, and one step of it, all in tensors."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.decode.back_pointers import BackPointers
from regard.decode.candidates import candidates
from regard.decode.decoded import DecodedText
from regard.decode.finished import FinishedTexts, StopRule
from regard.decode.limits import Limits
from regard.decode.penalties import LengthPenalty


class SearchStep(NamedTuple):
    """What a step would do: tensors, and what was fetched from the device in one go."""

    scores: Tensor  # r beams: the texts that go on, best first
    parents: Tensor  # r beams: the beams they come from
    tokens: Tensor  # r beams: what they say
    closed: FinishedTexts
    over: list[bool]  # for every row
    tied: bool  # the order of equal scores was left to chance: look again, exactly
    wrong: bool  # a score is NaN


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
        stop: StopRule,
        like: Tensor,
    ) -> None:
        self.beams, self.longest, self.divisor, self.stop = beams, longest, divisor, stop
        self.alive = torch.arange(rows, device=like.device)  # which row stands where
        self.counted = int(limits.end is not None)  # END counts in the length of a text
        self.first_end = int(longest.min())  # before so many tokens no row must end
        self.so_far = like.new_zeros(rows, 1)  # r w: one beam per row, until it has said something
        self.closed = FinishedTexts.none(rows, beams, like)
        self.done = FinishedTexts.none(rows, beams, like)  # of all rows, filled in as they end
        self.pointers = BackPointers()

    @property
    def length(self) -> int:
        """How many tokens every open text has."""
        return len(self.pointers.steps)

    @property
    def is_over(self) -> bool:
        """Whether every text is as long as it may be."""
        return bool((self.longest[self.alive] <= self.length).all())

    def must_end(self) -> Tensor | None:
        """True for the beams whose text is as long as it may be, (r · w,); None where none is."""
        if self.length < self.first_end:
            return None
        return (self.longest[self.alive] <= self.length).repeat_interleave(self.so_far.shape[1])

    def look(self, chances: Tensor, ends: Tensor, cost: Tensor | None, *, exact: bool) -> SearchStep:
        """The best step by the log-probabilities (r · w, n), END's (r · w,), and what else an end costs (r · w,)."""
        ways = candidates(chances, ends, self.so_far, beams=self.beams, must_end=self.must_end(), exact=exact)
        score, slots = ways.take_ended(self.beams)
        score = score / self.divisor(max(1, self.length + self.counted))
        if cost is not None:
            score = score + cost.view(self.so_far.shape).gather(1, slots)
        closed = self.closed.add(score, self.length, slots)
        scores, parents, tokens = ways.take_open(self.beams)
        over = self.stop(self.alive, scores, self.length + 1, closed)
        flags = torch.cat([over, torch.stack([ways.tied, ways.scores[:, 0].isnan().any()])])
        *gone, tied, wrong = flags.tolist()  # the one moment of a step at which the device is waited for
        return SearchStep(scores, parents, tokens, closed, gone, tied, wrong)

    def take(self, move: SearchStep) -> tuple[Tensor, Tensor]:
        """Does it. (which of the r · w texts each one that goes on comes from, what it says), for all that do."""
        rows, width = self.so_far.shape
        index = torch.arange(0, rows * width, width, device=self.alive.device)[:, None] + move.parents  # r beams
        self.pointers.append(self.alive, move.tokens, move.parents)
        self.so_far, self.closed, tokens = move.scores, move.closed, move.tokens
        if any(move.over):
            over = torch.tensor(move.over, device=index.device)
            self.done.put(self.alive[over], move.closed.at(over))
            going = ~over
            self.alive, self.so_far, self.closed = self.alive[going], self.so_far[going], self.closed.at(going)
            index, tokens = index[going], tokens[going]
        return index.flatten(), tokens.flatten()

    def texts(self, best: int) -> list[list[DecodedText]]:
        """The `best` finished texts of every row, best first."""
        scores, places = (part[:, :best] for part in self.done)
        written = self.pointers.trace(places % self.beams, places // self.beams)
        return [
            [DecodedText(ids, score) for ids, score in zip(texts, row) if score > -torch.inf]
            for texts, row in zip(written, scores.tolist())
        ]
