"""Every visible key takes a share, and the shares add to one."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.errors import DtypeError, MaskError
from regard.shapes import Allowed, Scores, Weights


def softmax(
    scores: Scores, allowed: Allowed | None = None, *, sink: Float[Tensor, "..."] | float | None = None
) -> Weights:
    r"""The share of each key: $w_j = e^{s_j} / (e^{\mathrm{sink}} + \sum_{i\ \mathrm{allowed}} e^{s_i})$.

    Without a `sink` its term is absent and the visible weights of a row add to one. A `sink` is one more
    logit that takes a share and gives nothing, so that a query can look away: a number or a tensor that
    broadcasts to (…, q, 1), learned as in GPT-OSS, or 0.0 for "softmax off by one" (Miller 2023).
    A row that may look nowhere is 0, with or without a sink.

    >>> import torch
    >>> scores = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    >>> softmax(scores, torch.tensor([[True, True, False], [False, False, False]]))
    tensor([[0.2689, 0.7311, 0.0000],
            [0.0000, 0.0000, 0.0000]])
    >>> softmax(torch.zeros(1, 3), sink=0.0)
    tensor([[0.2500, 0.2500, 0.2500]])
    """
    logits, hidden = hide(scores, allowed)  # *b q k
    # −inf in a whole row would be 0/0; any number will do, because the row is hidden again below.
    logits = logits.masked_fill(hidden.all(-1, keepdim=True), 0.0)
    if sink is None:
        weights = torch.softmax(logits, -1)
    else:
        extra = sink.to(logits) if isinstance(sink, Tensor) else logits.new_full((), sink)
        extra = extra.expand(*logits.shape[:-1], 1)  # *b q 1
        weights = torch.softmax(torch.cat([logits, extra], -1), -1)[..., :-1]
    return weights.masked_fill(hidden, 0.0).to(scores.dtype)


def hide(scores: Scores, allowed: Allowed | None) -> tuple[Scores, Bool[Tensor, "*_b q k"]]:
    """Scores as a weigher computes with them, −inf where nothing may be seen, and which cells those are.

    What stood in a hidden cell is replaced before any arithmetic; neither it nor its gradient is ever used.
    """
    logits = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    if allowed is not None:
        if allowed.dtype != torch.bool:
            raise DtypeError(
                f"allowed is {allowed.dtype}, but must be bool, True where a query may look; "
                "write allowed != 0 if 1 means that it may"
            )
        if not fits(allowed.shape, scores.shape):
            raise MaskError(
                f"allowed {tuple(allowed.shape)} does not broadcast to scores {tuple(scores.shape)}; "
                "each of its sizes, counted from the right, must be 1 or the same"
            )
        logits = logits.masked_fill(~allowed, -math.inf)
    return logits, logits == -math.inf


def fits(small: torch.Size, large: torch.Size) -> bool:
    """Whether `small` broadcasts to `large`."""
    tail = large[len(large) - len(small) :]
    return len(small) <= len(large) and all(s in (1, n) for s, n in zip(small, tail))
