"""Positions as callers give them: nothing, where the first token stands, or one number per token."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import DtypeError, ShapeError


def align_positions(
    positions: Int[Tensor, "*_p"], x: Float[Tensor, "*_b t c"], *, heads: bool = False
) -> Int[Tensor, "*_q t"]:
    """The positions on x's device, with axes that stand beside x's own, all but the channels.

    (t,) serves all alike; one row for every leading axis of x is taken as it is. With `heads` x is
    (…, h, t, d), and positions (…, t) of its sequences get the missing axis of the heads. Anything else
    would be a guess, and is a `ShapeError`.
    """
    if positions.dtype == torch.bool or not _whole(positions.dtype):
        raise DtypeError(
            f"positions came as {positions.dtype}, wanted whole numbers; convert them with positions.long()"
        )
    given, wanted = tuple(positions.shape), tuple(x.shape[:-1])
    if heads and 2 <= positions.ndim == x.ndim - 2:
        positions = positions.unsqueeze(-2)
    if not _fits(tuple(positions.shape), wanted):
        rows = (*wanted[:-2], wanted[-1]) if heads and x.ndim > 3 else wanted
        choice = f" or {rows}, one row per sequence" if len(rows) > 1 else ""
        raise ShapeError(
            f"positions of shape {given} do not fit x of shape {tuple(x.shape)}; "
            f"give {wanted[-1:]}, shared by all{choice}"
        )
    return positions.to(x.device)


def _whole(dtype: torch.dtype) -> bool:
    return not (dtype.is_floating_point or dtype.is_complex)


def _fits(given: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    if len(given) not in (1, len(wanted)) or given[-1] != wanted[-1]:
        return False
    return all(g in (1, w) for g, w in zip(given[:-1], wanted[:-1]))
