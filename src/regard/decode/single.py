"""One text per row, one token per step: the loop that greedy and sampling share."""

from collections.abc import Callable

import torch
from torch import Tensor

from regard.decode.decoded import Decoded
from regard.decode.limits import Limits, first
from regard.decode.log_probs import LogProbs, banned, not_numbers
from regard.decode.once import told_once
from regard.models.decoder_state import DecoderState

Choose = Callable[[Tensor, Tensor], Tensor]  # log-probabilities (b, n) and the rows they are of (b,) → ids (b,)


def write(steps: DecoderState, rows: int, limits: Limits, choose: Choose) -> list[Decoded]:
    """Every row to its end, each token as `choose` says. Rows that have ended leave the batch."""
    ids = first(steps, rows, limits)
    alive = torch.arange(rows, device=ids.device)  # which row stands where
    longest = limits.per_row(rows, ids.device)
    score = torch.zeros(rows, dtype=torch.float32, device=ids.device)
    measure = LogProbs()
    told: list[Tensor] = []
    with told_once(steps, limits.begin) as keep:
        while len(alive):
            logits = steps(ids)
            if not told:
                limits.check(logits.shape[-1])
            chances = measure(logits)  # b n
            score = score.to(chances.dtype)
            token = choose(chances.index_fill_(-1, banned(limits, len(told), chances.device), -torch.inf), alive)  # b
            token = token.where(longest[alive] > len(told), limits.end)
            score[alive] += chances.gather(-1, token[:, None])[:, 0]
            told.append(score.new_full((rows,), limits.end, dtype=torch.int64).index_copy_(0, alive, token))
            ended = token == limits.end
            *gone, wrong = torch.cat([ended, score.isnan().any()[None]]).tolist()
            if wrong:
                raise not_numbers(len(told) - 1)
            if any(gone):
                going = (~ended).nonzero()[:, 0]
                alive, token = alive[going], token[going]
                if len(alive):
                    steps.reorder(going)
            ids = token[:, None]
        whole = torch.stack(told, 1).tolist() if told else []
        found = [Decoded(row[: row.index(limits.end)], value) for row, value in zip(whole, score.tolist())]
        keep([text.ids for text in found])
    return found
