"""The best ways on for every row, over all its beams."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.decode.top import top


class Candidates(NamedTuple):
    """For every row the 2 · beams best next steps, falling; each is a beam and what it says."""

    scores: Tensor  # r c
    beams: Tensor  # r c
    tokens: Tensor  # r c
    ends: Tensor  # r c, True where it says END
    tied: Tensor  # a boolean, as in `Top`

    def open(self, beams: int) -> tuple[Tensor, Tensor, Tensor]:
        """(scores, beams, tokens) of the best that go on, (r, beams)."""
        going = self.ends.sort(dim=1, stable=True).indices[:, :beams]  # False is before True, and order stays
        return self.scores.gather(1, going), self.beams.gather(1, going), self.tokens.gather(1, going)


def candidates(
    chances: Tensor, so_far: Tensor, *, beams: int, end: int, may_end: bool, must_end: Tensor, exact: bool
) -> Candidates:
    """What `so_far` (r, w), the scores of w beams, may become by the log-probabilities `chances` (r · w, n).

    END is looked at beside the others, of which each beam offers its best `beams`: an END that must come may be the
    least likely token of all. At most one END per beam leaves at least `beams` ways that go on. The order is by
    score, then the lower beam, then END, then the likelier token, then the lower id.
    """
    rows, width = so_far.shape
    ends = chances[:, end].clone().view(rows, width, 1) if may_end else chances.new_full((rows, width, 1), -torch.inf)
    chances[:, end] = -torch.inf
    best = top(chances, beams, exact=exact)
    values = best.values.view(rows, width, -1).masked_fill(must_end[:, None, None], -torch.inf)
    scores = (torch.cat([ends, values], 2) + so_far[:, :, None]).flatten(1)
    if may_end:
        chances[:, end] = ends.flatten()  # as it was, should the choice be made again
    tokens = torch.cat([torch.full_like(best.ids[:, :1], end), best.ids], 1).view(rows, -1)
    each = tokens.shape[1] // width
    if (missing := 2 * beams - scores.shape[1]) > 0:  # a small vocabulary
        scores = F.pad(scores, (0, missing), value=-torch.inf)
        tokens = F.pad(tokens, (0, missing), value=end)
    scores, at = scores.sort(dim=1, descending=True, stable=True)
    scores, at = scores[:, : 2 * beams], at[:, : 2 * beams]
    return Candidates(
        scores,
        (at // each).clamp(max=width - 1),
        tokens.gather(1, at),
        (at % each == 0) & (at < each * width),
        best.tied,
    )
