"""Beam search: several texts per row side by side, and the best of those that end."""

import torch
from torch import Tensor

from regard.decode.decoded import DecodedText
from regard.decode.finished import StopRule
from regard.decode.limits import Limits, make_first_ids
from regard.decode.log_probs import LogProbs, list_banned, make_nan_error
from regard.decode.penalties import LengthPenalty, coverage, length_divisor
from regard.decode.repetition import RepetitionPenalty
from regard.decode.replay import replay_once
from regard.decode.search import Search
from regard.errors import ConfigError
from regard.models.decoder_state import DecoderState


@torch.no_grad()
def beam(
    steps: DecoderState,
    rows: int,
    *,
    beams: int = 5,
    best: int = 1,
    length_penalty: float | int | LengthPenalty = 1.0,
    length_rule: str = "plain",
    coverage_penalty: float | int = 0.0,
    repetition_penalty: float | int = 1.0,
    stop: str = "likely",
    limits: Limits,
) -> list[list[DecodedText]]:
    r"""For each of the `rows` texts that `steps` is in the middle of, the `best` texts found, best first.

    Every row keeps its `beams` likeliest beginnings. Each step looks at all their continuations in the order of
    log-probability: of the first `beams`, those that say END are finished; the first `beams` that do not, go on.
    A finished text scores $\log p(y) / \mathrm{lp}(|y|) + \mathrm{cp}$, and a row keeps as many as it has beams:

    - $|y|$ counts END, where there is one. `length_penalty` is the exponent α of lp $= |y|^\alpha$
      (`length_rule="plain"`, that of `transformers`) or of $((5 + |y|)/6)^\alpha$ (`"wu"`; Wu et al. 2016, eq. 14),
      or a function of $|y|$.
    - cp $= \beta \sum_i \log \min(\sum_j p_{ij}, 1)$ with β = `coverage_penalty`, $p_{ij}$ the share of source
      position i in step j, END's included (the same equation); attention is asked for only where β is above 0.

    `repetition_penalty` multiplies the log-probabilities of what a text holds already, its prompt included, as
    `transformers` does in a search; scores are of what that leaves.

    `stop` says when a row is done: "full", as soon as it has `beams` finished texts; "likely", when besides the best
    open text, scored at its present length, is no better than the worst of them; "sure", when no open text can come
    among the `best` any more. They find what `transformers` finds with early_stopping=True, False and "never".

    Of equal scores the lower beam comes first, then END, then the likelier token, then the lower id. A row that is
    done leaves the batch, and its model's state with it; a batch gives what single texts give. Fewer texts than
    `best` come back only where no more exist. `steps` is used up.

    >>> import torch
    >>> class Coin:  # 3 or 4 or the end, each time the same
    ...     def __call__(self, ids):
    ...         return torch.tensor([0.0, 0.0, 0.2, 0.5, 0.3]).log().expand(len(ids), 5)
    ...     def reorder(self, index):
    ...         pass
    ...     def attention(self):
    ...         return None
    >>> for text in beam(Coin(), 1, beams=3, best=2, length_penalty=0, limits=Limits(longest=2))[0]:
    ...     print(text.ids, round(text.score, 3))
    [] -1.609
    [3, 3] -2.996
    """
    if beams < 1:
        raise ConfigError(f"beams is {beams}, but a search keeps at least one text; give 1 or more")
    if not 1 <= best <= beams:
        raise ConfigError(f"best is {best}, but {beams} beams find 1 to {beams} texts; raise beams or change best")
    if coverage_penalty < 0:
        raise ConfigError(
            f"coverage_penalty is {coverage_penalty}, but it would reward what is left out; give 0 or more"
        )
    divisor = length_divisor(length_penalty, length_rule)
    ids = make_first_ids(steps, rows, limits)
    longest = limits.per_row(rows, ids.device)
    rule = StopRule(stop, divisor, best, longest)
    search: Search | None = None
    looked: Tensor | None = None
    chances: Tensor
    measure, repetition = LogProbs(), RepetitionPenalty(repetition_penalty, steps)
    with replay_once(steps, limits.begin) as keep:
        while len(ids):
            over = limits.end is None and search is not None and search.is_over  # what comes next does not matter
            chances = chances.new_zeros(len(ids), chances.shape[1]) if over else measure.after(steps, ids)  # r·w n
            if not over:
                chances = repetition(chances, ids)
            if search is None:
                limits.check(chances.shape[-1])
                never = list_banned(limits, limits.shortest, chances.device)
                search = Search(
                    rows, beams=beams, limits=limits, longest=longest, divisor=divisor, stop=rule, like=chances
                )
            chances.index_fill_(1, never, -torch.inf)
            ends = take_ends(chances, search, limits)
            if coverage_penalty and not over:
                looked = look(steps, looked)  # r·w s
            cost = None if looked is None else coverage(looked, coverage_penalty)
            move = search.look(chances, ends, cost, exact=False)
            if move.tied:
                move = search.look(chances, ends, cost, exact=True)
            if move.wrong:
                raise make_nan_error(search.length)
            index, tokens = search.take(move)
            if len(index):
                steps.reorder(index)
                repetition.reorder(index)
            looked = None if looked is None else looked[index]
            ids = tokens[:, None]
        texts = [] if search is None else search.texts(best)
        keep([row[0].ids if row else [] for row in texts])
    return texts


def take_ends(chances: Tensor, search: Search, limits: Limits) -> Tensor:
    """END's log-probabilities (r · w,), taken out of those of the other tokens (r · w, n).

    Where no token ends a text, its end costs nothing and comes only when it must.
    """
    never = chances.new_full((), -torch.inf)
    if limits.end is None:
        over = search.must_end()
        return never.expand(len(chances)) if over is None else torch.zeros_like(never).where(over, never)
    ends = chances[:, limits.end].clone() if search.length >= limits.shortest else never.expand(len(chances))
    chances[:, limits.end].fill_(-torch.inf)
    return ends


def look(steps: DecoderState, before: Tensor | None) -> Tensor:
    """The share that each source position had so far, (b, s), with that of the step just made."""
    now = steps.attention()
    if now is None:
        raise ConfigError(
            "a coverage penalty was asked for, but this model tells no attention to a source; give coverage_penalty=0"
        )
    # A model may let go of padding when the longest sources are gone.
    return now if before is None else before[:, : now.shape[1]] + now
