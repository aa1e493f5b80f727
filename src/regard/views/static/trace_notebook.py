"""A trace in a notebook: a small table of layers with their heads as thumbnails. Static, and needs nothing else."""

import base64
import struct
import zlib
from html import escape

import numpy as np
from jaxtyping import UInt8

from regard.attention.map import AttentionMap
from regard.tokens.visible import cut, visible
from regard.trace.record.changes import edited_line
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace
from regard.views.static.grid import Grid
from regard.views.static.trace_parts import (
    KINDS,
    UNKNOWN,
    describe_source,
    describe_strongest,
    glimpse,
    labels_of,
    look,
    measure_sharpness,
    precision_of,
)

LAYERS, HEADS, TOKENS = 24, 16, 40  # shown at most; the rest is counted
SMALL, LARGE = (20, 60), (32, 160)  # of a thumbnail along a side: cells at most, and dots
PAPER, INK, GREY = np.array([255, 255, 245]), np.array([38, 66, 110]), 208
READING = "rows are queries, columns are keys; darker cells have more weight"

Pixels = UInt8[np.ndarray, "_high _wide 3"]


def trace_html(trace: Trace, most: int = LAYERS) -> str:
    """The first layers of the last run, one line each, with their heads; everything that is text is escaped."""
    layers = trace.layers
    runs = f"{len(trace.runs)} runs, the last with " if len(trace.runs) > 1 else ""
    count = f"{len(layers)} layer{'' if len(layers) == 1 else 's'}"
    lines = [layer_row(number, layer) for number, layer in enumerate(layers[:most])]
    more = f"<p>… {len(layers) - most} more layers</p>" if len(layers) > most else ""
    head = "".join(f"<th>{name}</th>" for name in ("", "layer", "kind", "q × k", "weights", "heads"))
    notes = [*trace.notes, *(trace.runs[-1].sentences() if trace.runs else [])]
    listed = "".join(f"<li>{escape_text(note)}</li>" for note in notes)
    return (
        f"<div><b>{escape_text(trace.model or 'a trace')}</b>: {runs}{count}{edited_note(trace.edits)}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>{more}"
        f"<ul>{listed}</ul><small>{READING}; a long map shows {SMALL[0]} evenly spaced queries</small></div>"
    )


def layer_row(number: int, layer: Layer) -> str:
    heads = min(layer.heads, HEADS)
    one = look(layer)
    picture = join_thumbnails([one.head(head) for head in range(heads)], *SMALL)
    more = f" and {layer.heads - heads} more" if layer.heads > heads else ""
    q, k = layer.weights.shape[-2:]
    cells = (
        str(number),
        f"<code>{escape_text(layer.name)}</code>",
        escape_text(layer.kind),
        f"{q} × {k}",
        escape_text(describe_source(layer)),
    )
    drawn = image_tag(picture, f"heads 0 to {heads - 1} of {layer.name}") + more
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in (*cells, drawn)) + "</tr>"


def layer_html(layer: Layer) -> str:
    """The heads of one layer, each with its strongest look, and the tokens; everything that is text is escaped."""
    one = look(layer)
    queries, keys = labels_of(one, 24)
    kind, (b, h, q, k) = KINDS.get(layer.kind, UNKNOWN), layer.weights.shape
    figures = []
    for head in range(min(h, HEADS)):
        drawn = image_tag(join_thumbnails([one.head(head)], *LARGE), f"head {head} of {layer.name}")
        said = escape_text(describe_strongest(measure_sharpness(one, head), queries, keys))
        figures.append(
            f'<div style="display:inline-block;margin:4px">head {head}<br>{drawn}<br><small>{said}</small></div>'
        )
    more = f"<p>… {h - HEADS} more heads</p>" if h > HEADS else ""
    rows = [f"<br><small>{what}: {join_tokens(some)}</small>" for what, some in (("queries", queries), ("keys", keys))]
    return (
        f"<div><code>{escape_text(layer.name)}</code>: {kind}; b {b}, h {h}, q {q}, k {k}; "
        f"{escape_text(describe_source(layer))}, {precision_of(layer)}{edited_note(layer.edits)}"
        f"{''.join(rows) if layer.queries else ''}"
        f"<br>{''.join(figures)}{more}<br><small>{READING}</small></div>"
    )


def edited_note(edits: list[str]) -> str:
    """That the model was edited, and how; nothing where it was not."""
    return f"<br><b>{escape(cut(visible(edited_line(edits)), 400))}</b>" if edits else ""


def escape_text(text: str) -> str:
    """Text that stays text in a page."""
    return escape(cut(visible(text), 200))


def join_tokens(tokens: list[str]) -> str:
    more = f" … {len(tokens) - TOKENS} more" if len(tokens) > TOKENS else ""
    return escape(" ".join(tokens[:TOKENS])) + more


def join_thumbnails(maps: list[AttentionMap], cells: int, dots: int) -> Pixels:
    """Thumbnails in one line, a white gap between them; what may not be looked at is striped."""
    painted = [paint(glimpse(map, cells, cells), dots) for map in maps]  # noqa: A001
    return np.concatenate([np.pad(one, [(0, 0), (0, 4), (0, 0)], constant_values=255) for one in painted], 1)[:, :-4]


def paint(grid: Grid, dots: int) -> Pixels:
    size = max(dots // max(grid.shape), 1)
    share = np.clip(np.nan_to_num(grid), 0, 1)[..., None] ** 0.7  # so that small weights can still be seen
    colours = np.round(PAPER + share * (INK - PAPER)).astype(np.uint8).repeat(size, 0).repeat(size, 1)
    hidden = np.isnan(grid).repeat(size, 0).repeat(size, 1)
    stripes = np.add.outer(np.arange(len(colours)), np.arange(colours.shape[1])) % 5 == 0
    colours[hidden] = np.where(stripes[hidden], GREY, 250)[:, None]
    return colours


def image_tag(pixels: Pixels, said: str) -> str:
    data = base64.b64encode(encode_png(pixels)).decode()
    high, wide = pixels.shape[:2]
    style = "image-rendering:pixelated;border:1px solid #ccc;background:#fff"
    size = f'width="{wide}" height="{high}"'
    return f'<img {size} alt="{escape_text(said)}" style="{style}" src="data:image/png;base64,{data}">'


def encode_png(pixels: Pixels) -> bytes:
    """A PNG of 8-bit colours: three chunks, each with its length and checksum."""
    high, wide = pixels.shape[:2]
    rows = np.concatenate([np.zeros((high, 1), np.uint8), pixels.reshape(high, -1)], 1)  # filter 0 before each row

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
