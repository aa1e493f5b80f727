"""One text per row, one token per step: the loop that greedy and sampling share."""

from collections.abc import Callable

import torch
from torch import Tensor

from regard.decode.decoded import DecodedText
from regard.decode.limits import Limits, make_first_ids
from regard.decode.log_probs import LogProbs, list_banned, make_nan_error
from regard.decode.replay import replay_once
from regard.models.decoder_state import DecoderState

Choose = Callable[[Tensor, Tensor], Tensor]  # log-probabilities (b, n) and the rows they are of (b,) → ids (b,)


NOTHING = -1  # stands behind the text of a row that has ended, where no token ends it


def write(steps: DecoderState, rows: int, limits: Limits, choose: Choose) -> list[DecodedText]:
    """Every row to its end, each token as `choose` says. Rows that have ended leave the batch."""
    ids = make_first_ids(steps, rows, limits)
    alive = torch.arange(rows, device=ids.device)  # which row stands where
    longest = limits.per_row(rows, ids.device)
    score = torch.zeros(rows, dtype=torch.float32, device=ids.device)
    measure, stop = LogProbs(), NOTHING if limits.end is None else limits.end
    written: list[Tensor] = []
    with replay_once(steps, limits.begin) as keep:
        while len(alive):
            logits, said = steps(ids), len(written)
            if not said:
                limits.check(logits.shape[-1])
            chances = measure(logits)  # b n
            score = score.to(chances.dtype)
            token = choose(chances.index_fill_(-1, list_banned(limits, said, chances.device), -torch.inf), alive)  # b
            room = longest[alive] > said
            if limits.end is None:
                score[alive] += chances.gather(-1, token[:, None])[:, 0].where(room, 0.0)
                token, ended = token.where(room, NOTHING), longest[alive] <= said + 1
            else:
                token = token.where(room, limits.end)
                score[alive] += chances.gather(-1, token[:, None])[:, 0]
                ended = token == limits.end
            written.append(score.new_full((rows,), stop, dtype=torch.int64).index_copy_(0, alive, token))
            *gone, wrong = torch.cat([ended, score.isnan().any()[None]]).tolist()
            if wrong:
                raise make_nan_error(said)
            if any(gone):
                going = (~ended).nonzero()[:, 0]
                alive, token = alive[going], token[going]
                if len(alive):
                    steps.reorder(going)
            ids = token[:, None]
        rows_of_ids = torch.stack(written, 1).tolist() if written else []
        texts = [DecodedText(text_of(row, stop), value) for row, value in zip(rows_of_ids, score.tolist())]
        keep([text.ids for text in texts])
    return texts


def text_of(row: list[int], stop: int) -> list[int]:
    """What stands before the end.

    >>> text_of([5, 3, 2, 2], 2), text_of([5, 3], -1)
    ([5, 3], [5, 3])
    """
    return row[: row.index(stop)] if stop in row else row
