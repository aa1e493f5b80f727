"""The maps of two models side by side as text, where they are small."""

from itertools import zip_longest
from typing import NamedTuple

import torch
from rich.cells import cell_len, set_cell_size

from regard.tokens.visible import cut
from regard.trace.record.layer import Layer
from regard.views.readings.directions import visible_cells
from regard.views.static.terminal import shade

MOST = 24  # tokens of a map that is shown
NAME = 10  # columns of a token
WIDTH = 96  # columns up to which two maps stand beside each other


class TitledHead(NamedTuple):
    """One head of a layer, and what to write above it."""

    title: str
    layer: Layer
    head: int


def maps_text(first: TitledHead, second: TitledHead) -> str:
    """Both maps: darker is more, a dot may not be looked at; "" where one is too large.

    >>> import regard, torch
    >>> weights = regard.attend(*torch.zeros(3, 1, 1, 2, 2), mask=regard.causal()).weights
    >>> one = TitledHead("layer 0, head 0", Layer("attention", "self", weights), 0)
    >>> print(maps_text(one, one))
    layer 0, head 0  layer 0, head 0
    #0  ██··         #0  ██··
    #1  ▒▒▒▒         #1  ▒▒▒▒
    """
    if max(*first.layer.weights.shape[-2:], *second.layer.weights.shape[-2:]) > MOST:
        return ""
    left, right = ([one.title, *shade_head(one.layer, one.head).splitlines()] for one in (first, second))
    wide = max(map(cell_len, left)) + 2
    if wide + max(map(cell_len, right)) > WIDTH:
        return "\n".join([*left, "", *right])
    pairs = zip_longest(left, right, fillvalue="")
    return "\n".join((set_cell_size(one, wide) + two).rstrip() for one, two in pairs)


def shade_head(layer: Layer, head: int) -> str:
    """One head as shaded blocks, with its tokens as rows."""
    weights = layer.weights[0, head].dense()
    visible = visible_cells(layer).expand(layer.heads, *weights.shape)[head]
    shown = [f"#{at}" for at in range(len(weights))] if layer.queries is None else layer.queries[0].shown
    grid = weights.masked_fill(~visible.to(weights.device), torch.nan)
    return shade(grid.numpy(), [cut(name, NAME) for name in shown], most=1.0)
