"""One text per row to its end: what greedy and sampling share."""

import torch

from regard.decode.choice import Choose
from regard.decode.decoded import DecodedText
from regard.decode.limits import Limits
from regard.decode.replay import replay_once
from regard.decode.token_iterator import TokenIterator, TokenStep
from regard.models.decoder_state import DecoderState


def write(
    steps: DecoderState, rows: int, limits: Limits, choose: Choose, *, repetition_penalty: float | int = 1.0
) -> list[DecodedText]:
    """Every row to its end, each token as `choose` says. Rows that have ended leave the batch."""
    with replay_once(steps, limits.begin) as keep:
        said = [*TokenIterator(steps, rows, limits, choose, repetition_penalty=repetition_penalty, closing=True)]
        texts = collect_texts(said, rows, limits.end)
        keep([text.ids for text in texts])
    return texts


def collect_texts(said: list[TokenStep], rows: int, end: int | None) -> list[DecodedText]:
    """The text and the score of every row from all its steps; END counts in the score and stands not in the text."""
    ids: list[list[int]] = [[] for _ in range(rows)]
    if not said:
        return [DecodedText(text, 0.0) for text in ids]
    score = torch.zeros(rows, dtype=said[0].log_probs.dtype, device=said[0].log_probs.device)
    for step in said:
        score[step.rows] += step.log_probs
        for row, token in zip(step.rows.tolist(), step.tokens.tolist()):
            if token != end:
                ids[row].append(token)
    return [DecodedText(text, value) for text, value in zip(ids, score.tolist())]
