"""Which numbers are dropped: random draws that cost little, and the same again from the same seed."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from regard.eager import is_transformed

STEPS = 1 << 16  # sixteen random bits decide over one number


class DropoutRecord(NamedTuple):
    """How one call dropped weights: with which probability, and from which seed (None: not to be replayed).

    `replay` gives all weights as used, where another random state than ours decided.
    """

    p: float
    seed: int | None
    replay: Callable[[], Tensor] | None = None


@torch.no_grad()
def draw_kept(
    shape: Sequence[int], p: float, *, dtype: torch.dtype, device: torch.device, seed: int | None = None
) -> Float[Tensor, "..."]:
    """What numbers are multiplied by: 0 with probability p, below 1, and 1 / (1 − p) elsewhere.

    On a processor torch draws one number at a time, so one draw of 64 bits decides over four; p then counts to the
    nearest 1/65536. The draws come from `seed`, or from torch's own generator.
    """
    generator = None if seed is None else Generator(device=device).manual_seed(seed)
    dropped = round(p * STEPS)
    if device.type != "cpu" or not 0 < dropped < STEPS or torch.compiler.is_compiling() or is_transformed():
        drawn = torch.rand(tuple(shape), generator=generator, device=device)
        return (drawn >= p).to(dtype) / (1.0 - p)
    count = math.prod(shape)
    whole = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None, generator=generator)
    bits = whole.view(torch.int16)[:count]
    # Written as numbers at once: a product with booleans takes several times as long.
    found = torch.ge(bits, dropped - STEPS // 2, out=torch.empty(count, dtype=dtype))
    return found.mul_(STEPS / (STEPS - dropped)).view(tuple(shape))


def drop(weights: Float[Tensor, "..."], dropped: DropoutRecord) -> Float[Tensor, "..."]:
    """Set a share p of the weights to 0 and raise the others to 1 / (1 − p); p = 1 leaves nothing."""
    if dropped.p >= 1.0:
        return torch.zeros_like(weights)
    return weights * draw_kept(weights.shape, dropped.p, dtype=weights.dtype, device=weights.device, seed=dropped.seed)
