"""The best ways on for every row, over all its beams."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.decode.top import find_top

NO_TOKEN = 0  # stands where a text ends; nobody reads it


class Candidates(NamedTuple):
    """For every row the 2 · beams best next steps, falling, r c each, and what they are of."""

    scores: Tensor  # r c
    at: Tensor  # r c: which of a row's choices
    beams: Tensor  # r c: which beam each goes on from
    ends: Tensor  # r c: whether it says END
    tokens: Tensor  # r w·each: what every choice says
    tied: Tensor  # a boolean, as in `Top`

    def take_ended(self, beams: int) -> tuple[Tensor, Tensor]:
        """(scores, beams) of the best `beams`, whose score is −∞ where they do not say END."""
        return self.scores[:, :beams].where(self.ends[:, :beams], -torch.inf), self.beams[:, :beams]

    def take_open(self, beams: int) -> tuple[Tensor, Tensor, Tensor]:
        """(scores, beams, tokens) of the best `beams` that go on."""
        going = self.ends.sort(dim=1, stable=True).indices[:, :beams]  # False is before True, and order stays
        return (
            self.scores.gather(1, going),
            self.beams.gather(1, going),
            self.tokens.gather(1, self.at.gather(1, going)),
        )


def candidates(
    chances: Tensor, ends: Tensor, so_far: Tensor, *, beams: int, must_end: Tensor | None, exact: bool
) -> Candidates:
    """What `so_far` (r, w), the scores of w beams, may become by the log-probabilities `chances` (r · w, n).

    END, `ends` (r · w,), is looked at beside the others, of which each beam offers its best `beams`: an END that must
    come may be the least likely token of all. At most one END per beam leaves at least `beams` ways that go on. The
    order is by score, then the lower beam, then END, then the likelier token, then the lower id.
    """
    rows, width = so_far.shape
    best = find_top(chances, beams, exact=exact)
    values = best.values if must_end is None else best.values.masked_fill(must_end[:, None], -torch.inf)
    scores, tokens = torch.cat([ends[:, None], values], 1), F.pad(best.ids, (1, 0), value=NO_TOKEN)  # r·w each
    if (missing := -(-2 * beams // width) - scores.shape[1]) > 0:  # a small vocabulary
        scores, tokens = F.pad(scores, (0, missing), value=-torch.inf), F.pad(tokens, (0, missing), value=NO_TOKEN)
    each = scores.shape[1]
    scores = (scores.view(rows, width, each) + so_far[:, :, None]).flatten(1)
    scores, at = (part[:, : 2 * beams] for part in scores.sort(dim=1, descending=True, stable=True))
    return Candidates(scores, at, at // each, at % each == 0, tokens.view(rows, -1), best.tied)  # END is first of each
