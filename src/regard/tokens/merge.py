"""Word pieces merged to words: in tokens, and in the weights between them."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import ShapeError
from regard.tokens.text import Tokens
from regard.tokens.visible import visible

Groups = Sequence[slice | Sequence[int]]


def groups(tokens: Tokens) -> list[slice]:
    """The pieces of each word, in order; a token that belongs to no word stands alone.

    >>> groups(Tokens.of(["[CLS]", "play", "##ing", "cats"]))
    [slice(0, 1, None), slice(1, 3, None), slice(3, 4, None)]
    """
    if tokens.words is None:
        return [slice(at, at + 1) for at in range(len(tokens))]
    before = (None, *tokens.words)  # of each token the word of the one before it
    borders = [at for at, word in enumerate(tokens.words) if word is None or word != before[at]]
    return [slice(first, stop) for first, stop in pairwise([*borders, len(tokens)])]


def merge_tokens(tokens: Tokens) -> Tokens:
    """The words that the pieces make. A word has no id, and is shown without the space before it.

    >>> merge_tokens(Tokens.of(["The", "Ġcat", "s", "Ġsleep"])).shown
    ('The', 'cats', 'sleep')
    """
    if tokens.words is None:
        return tokens
    merged = groups(tokens)
    firsts = tokens.pick([group.start for group in merged])
    offsets = None if tokens.offsets is None else tuple(span(tokens.offsets[group]) for group in merged)
    whole = len(merged) == len(tokens)
    return replace(
        firsts,
        shown=tuple(word(tokens, group, at) for group, at in zip(merged, offsets or (None,) * len(merged))),
        ids=tokens.ids if whole else None,
        offsets=offsets,
        grid=tokens.grid if whole else None,
    )


def span(offsets: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    """From the first character to the last."""
    known = [offset for offset in offsets if offset is not None]
    return (known[0][0], known[-1][1]) if known else None


def word(tokens: Tokens, group: slice, at: tuple[int, int] | None) -> str:
    """What is shown for a word: its text, where that is known, so that a shared character is whole again."""
    together = "".join(tokens.shown[group])
    if tokens.text is None or at is None or at[0] == at[1] or "\ufffd" in tokens.text[slice(*at)]:
        return together
    text = tokens.text[slice(*at)]
    return visible(text.strip(" ") or text)


def merge_weights(
    weights: Float[Tensor, "*_b q k"], rows: Groups | Tensor | None = None, columns: Groups | Tensor | None = None
) -> Float[Tensor, "*_b r c"]:
    r"""The weights between words: rows of a word are averaged, its columns added, so that rows still add to 1.

    $w'_{rc} = \frac1{|r|} \sum_{i \in r} \sum_{j \in c} w_{ij}$. `rows` and `columns` say which belong together, as
    `groups` gives them; None leaves an axis as it is. Sums are taken in float32 or better. To go block by block, give
    the rows of some words with their groups counted from the block's first row; `owners` spares looking at the same
    columns again for each block.

    >>> weights = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    >>> merge_weights(weights, [[0], [1, 2]], [slice(0, 2), slice(2, 3)])
    tensor([[1.0000, 0.0000],
            [0.7500, 0.2500]])
    """
    weights = weights if weights.dtype == torch.float64 else weights.float()
    if columns is not None:
        weights = added(weights, -1, owned(columns, weights.shape[-1], "column"))
    if rows is not None:
        of_row = owned(rows, weights.shape[-2], "row")
        sizes = torch.bincount(of_row).to(weights)
        weights = added(weights, -2, of_row) / sizes.unsqueeze(-1)
    return weights


def added(weights: Tensor, axis: int, of: Tensor) -> Tensor:
    """Sums along one axis over what belongs to the same group."""
    shape = list(weights.shape)
    shape[axis] = int(of.max()) + 1 if len(of) else 0
    return weights.new_zeros(shape).index_add(axis, of.to(weights.device), weights)


def owned(parts: Groups | Tensor, size: int, name: str) -> Tensor:
    if not isinstance(parts, Tensor):
        return owners(parts, size, name)
    if parts.shape != (size,):
        raise ShapeError(f"owners came as {tuple(parts.shape)} for {size} {name}s; give one per {name}")
    return parts


def owners(parts: Groups, size: int, name: str = "place") -> Int[Tensor, "_n"]:
    """Which group each of `size` places belongs to; every place is in one group, and no group is empty.

    >>> owners([slice(0, 2), [2], [3, 4]], 5)
    tensor([0, 0, 1, 2, 2])
    """
    owner_of = [-1] * size
    for owner, part in enumerate(parts):
        members = range(size)[part] if isinstance(part, slice) else part
        if not len(members):
            raise ShapeError(f"group {owner} is empty; give each at least one {name}")
        for at in members:
            if not 0 <= at < size:
                raise ShapeError(f"group {owner} has {name} {at}, but there are {size}; give the groups of this map")
            if owner_of[at] >= 0:
                raise ShapeError(f"{name} {at} is in groups {owner_of[at]} and {owner}; put it into one of them")
            owner_of[at] = owner
    missing = owner_of.count(-1)
    if missing:
        raise ShapeError(f"the groups leave out {missing} of {size} {name}s; put each into one of them")
    return torch.tensor(owner_of, dtype=torch.long)
