"""Whether the rows of a stream still stand where they were embedded, or were flipped, shifted or shuffled since.

A text that is turned round, or moved by one for a first token of its own, is as long as it was: its length says
nothing. A row that kept its place resembles what was embedded there, whatever position was added and however it was
normalised. Rows that resemble others clearly more were moved; where nothing resembles anything, nothing is said.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

SOME = 12  # rows that are looked at
ALIKE, CLEARLY = 0.6, 0.3  # cosines: of a row and what it came from; and by how much more than of its own place


def is_moved(streams: Iterable[Tensor], embedded: Tensor) -> bool:
    """Whether one of these streams, innermost first, shows the embedded rows at other places, and none at their own."""
    first = embedded[None] if embedded.ndim == 2 else embedded
    shapes = (first.shape, first.transpose(0, 1).shape)
    same = [x for x in streams if has_numbers(x) and x.shape in shapes]
    if first.shape[:-1].numel() < 2 or any(x.data_ptr() == embedded.data_ptr() for x in same):
        return False
    with torch.no_grad():
        for x in same:
            ways = [first, first.transpose(0, 1)]
            found = [compare_rows(x, way) for way in ways if way.shape == x.shape]
            if None not in found:
                return all(found)
    return False


def has_numbers(x: Tensor) -> bool:
    """Whether a tensor is an ordinary one: nested ones have no shape, those of torch.func and meta ones no numbers."""
    return not (x.is_nested or x.is_meta or torch._C._functorch.is_functorch_wrapped_tensor(x))


def compare_rows(stream: Tensor, embedded: Tensor) -> bool | None:
    """Whether rows were moved; None where they resemble none of what was embedded."""
    x, e = stream.flatten(0, 1), embedded.flatten(0, 1)
    count, width = x.shape
    at = torch.linspace(0, count - 1, min(SOME, count), device=x.device).round().long()
    rows = x[at].float()
    own = torch.cosine_similarity(rows, e[at].float(), dim=-1)
    strange = own < ALIKE
    if not bool(strange.any()):
        return False
    rows = torch.nn.functional.normalize(rows, dim=-1)
    alike = [(rows @ torch.nn.functional.normalize(part.float(), dim=-1).mT).amax(-1) for part in e.split(4096)]
    best = torch.stack(alike).amax(0)
    chance = math.sqrt(2 * math.log(count) / width)  # the best of so many rows that have nothing to do with it
    moved = strange & (best > max(ALIKE, min(1.3 * chance, 0.99))) & (best > own + CLEARLY)
    if int(moved.sum()) >= max(2, len(at) // 4):
        return True
    return None if bool(strange.all()) else False
