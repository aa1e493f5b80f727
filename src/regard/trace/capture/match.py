"""Where among the held keys those that a call brings along stand, and which entries of the batch they came from."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.trace.capture.key_buffer import KeyBuffer


class Match(NamedTuple):
    """A call goes on with what is held."""

    at: int  # how many held keys come before its first one
    origins: Tensor | None = None  # b b: entry i may continue entry j; None where each continues itself
    doubt: bool = False  # its keys stand at two places: those of a rejected draft, and those of a sliding cache


def match(
    store: KeyBuffer, k: Tensor, before: int, *, same: bool, cached: bool, slides: bool, whole: bool
) -> Match | None:
    """How the first `before` keys of a call continue the held ones; None where they do not.

    `same` says that both calls were made by one method of the model, `cached` that its module was handed a cache,
    `slides` that this cache has let go of keys before, `whole` that the held keys are all that there ever were.
    """
    known = len(store)
    if before > known:
        return None
    end = known - before
    beams = same and k.shape[0] > 1
    if store.equals(k, end, before):
        if end and cached and not slides and store.equals(k, 0, before):
            return Match(0, doubt=True)
        # beams that differ only before the window look alike here, so each of them may be meant
        return Match(end, drop_unmoved(store.origins(k, end, before)) if beams and (end or not whole) else None)
    if end and cached and store.equals(k, 0, before):  # a cache that forgot a draft
        return Match(0)
    if beams and (origins := store.origins(k, end, before)) is not None:
        return Match(end, origins)
    if end and cached and (at := store.last_place(k, before)) is not None:  # it forgot a draft, and slid since
        return Match(at)
    return None


def drop_unmoved(origins: Tensor | None) -> Tensor | None:
    """None where every entry can only have continued itself."""
    return None if origins is None or torch.equal(origins, torch.eye(len(origins), dtype=torch.bool)) else origins


def choose(origins: Tensor) -> Tensor:
    """One origin for each entry: itself where it may be, else the first."""
    itself = origins.diagonal()
    return torch.where(itself, torch.arange(len(origins)), origins.to(torch.uint8).argmax(1))
