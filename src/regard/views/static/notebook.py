"""A small picture of a map for notebooks, as plain HTML that needs nothing else."""

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.attention.map import AttentionMap

SIDE = 24  # cells at most along each side
PIXELS = 8
MAPS = 8  # heads shown at most


def map_html(map: "AttentionMap") -> str:  # noqa: A002
    """The first heads of the map, pooled by their largest weight: rows are queries, columns are keys."""
    q, k = map.shape[-2:]
    most = map.pool(min(SIDE, max(q, 1)), min(SIDE, max(k, 1))).max
    heads = most.reshape(-1, *most.shape[-2:])
    pictures = "".join(map_svg(head.tolist()) for head in heads[:MAPS])
    more = f", {heads.shape[0] - MAPS} more not shown" if heads.shape[0] > MAPS else ""
    rule = "each cell is one weight" if (q, k) == tuple(most.shape[-2:]) else "each cell is the largest of its block"
    return f"<div><code>{html.escape(repr(map))}</code><br>{pictures}<br><small>{rule}{more}</small></div>"


def map_svg(rows: list[list[float]]) -> str:
    width, height = len(rows[0]) * PIXELS if rows else 0, len(rows) * PIXELS
    cells = "".join(
        f'<rect x="{j * PIXELS}" y="{i * PIXELS}" width="{PIXELS}" height="{PIXELS}" fill-opacity="{value:.3f}"/>'
        for i, row in enumerate(rows)
        for j, value in enumerate(row)
    )
    return (
        f'<svg width="{width}" height="{height}" fill="#31688e" '
        f'style="background:#fff;border:1px solid #999;margin:2px" role="img" aria-label="attention map">{cells}</svg>'
    )
