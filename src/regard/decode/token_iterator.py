"""One token per row and step: the loop that greedy, sampling and streaming share."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decode.choice import Choose
from regard.decode.limits import Limits, make_first_ids
from regard.decode.log_probs import LogProbs, list_banned, make_nan_error
from regard.decode.repetition import RepetitionPenalty
from regard.decode.top import TopTokens, find_top
from regard.errors import ConfigError
from regard.models.decoder_state import DecoderState


class TokenStep(NamedTuple):
    """The next token of every row that is still written."""

    rows: Int[Tensor, " b"]  # which rows these are
    tokens: Int[Tensor, " b"]
    log_probs: Float[Tensor, " b"]  # of the model itself, before any penalty, temperature or filter
    alternatives: TopTokens | None = None  # the likeliest tokens and their log-probabilities, (b, k) each, falling


class TokenIterator(Iterator[TokenStep]):
    """Writes a token to every row each time it is asked for the next; rows that have ended leave the batch.

    A row ends when it has said END, when it is as long as `limits` allow, or when `stop` names it. With `closing` a
    row that is as long as it may be says END as well, whatever `choose` wants. The token that came last has not been
    read when it comes: of the rows that are left, `steps(tokens[:, None])` gives what would come after it.
    """

    def __init__(
        self,
        steps: DecoderState,
        rows: int,
        limits: Limits,
        choose: Choose,
        *,
        repetition_penalty: float | int = 1.0,
        alternatives: int = 0,
        closing: bool = False,
    ) -> None:
        if alternatives < 0:
            raise ConfigError(f"alternatives is {alternatives}, but it counts tokens; give 0 or more")
        self.steps, self.limits, self.choose, self.alternatives = steps, limits, choose, alternatives
        self.penalty = RepetitionPenalty(repetition_penalty, steps)
        self.closing = closing and limits.end is not None
        self.ids = make_first_ids(steps, rows, limits)
        self.alive = torch.arange(rows, device=self.ids.device)  # which row stands where
        self.longest = limits.per_row(rows, self.ids.device) + self.closing
        self.said, self.measure = 0, LogProbs()
        self.logits: Tensor | None = None  # that the model gave last, (b, n)
        self.going: list[bool] | None = None  # of the rows that were asked last, who goes on
        self.is_done = rows == 0 or limits.most + self.closing == 0

    def stop(self, rows: Sequence[int]) -> None:
        """These rows say no more."""
        if rows and self.going is not None:
            leaving = set(rows)
            self.going = [on and row not in leaving for on, row in zip(self.going, self.alive.tolist())]

    @torch.no_grad()
    def __next__(self) -> TokenStep:
        self._leave()
        if self.is_done:
            raise StopIteration
        self.logits = logits = self.steps(self.ids)
        if not self.said:
            self.limits.check(logits.shape[-1])
        chances = self.measure(logits)  # b n
        scores = self.penalty(chances if self.penalty.penalty == 1 else logits.to(chances.dtype), self.ids)
        token = self.choose(
            scores.index_fill_(-1, list_banned(self.limits, self.said, chances.device), -torch.inf), self.alive
        )  # b
        room = self.longest[self.alive] - self.said  # how many tokens a row may still say, this one included
        if self.closing and self.limits.end is not None:
            token = token.where(room > 1, self.limits.end)
        ended = room <= 1 if self.limits.end is None else (room <= 1) | (token == self.limits.end)
        log_probs = chances.gather(-1, token[:, None])[:, 0]
        best = find_top(chances, self.alternatives, exact=True) if self.alternatives else None
        wrong, *gone = torch.cat([log_probs.isnan().any()[None], ended]).tolist()
        if wrong:
            raise make_nan_error(self.said)
        self.said, self.ids, self.going = self.said + 1, token[:, None], [not one for one in gone]
        if self.said == 1 and bool((room < 1).any()):  # a row that may say nothing was read with the others
            some = room > 0
            best = None if best is None else TopTokens(best.values[some], best.ids[some], best.tied)
            return TokenStep(self.alive[some], token[some], log_probs[some], best)
        return TokenStep(self.alive, token, log_probs, best)

    def _leave(self) -> None:
        """Rows that have ended leave the batch, and the model's state with it; the last ones stay for who reads on."""
        if self.going is None or all(self.going):
            return
        going = [at for at, on in enumerate(self.going) if on]
        self.is_done, self.going = not going, None
        if going:
            index = torch.tensor(going, device=self.ids.device)
            self.alive, self.ids = self.alive[index], self.ids[index]
            self.steps.reorder(index)
            self.penalty.reorder(index)
