"""Which written word looked at which read one: as text, and as one page that needs nothing else."""

import html
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from regard.tokens.visible import columns as wide
from regard.tokens.visible import visible
from regard.views import Grid, as_grid, named, readable
from regard.views.trace_terminal import grid_text

LONGEST = 32  # columns of a token's name
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, "Noto Sans CJK SC", sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
  color: #1b1f24; background: #fff }}
h1 {{ font-size: 1.4rem }} h2 {{ font-size: 1.1rem; margin: 2rem 0 .2rem; font-weight: 600; overflow-wrap: anywhere }}
.map {{ overflow-x: auto; padding-bottom: .5rem }}
table {{ border-collapse: collapse; margin: .6rem 0 }}
th {{ font-weight: 500; padding: .15rem .5rem; white-space: pre }}
thead th {{ vertical-align: bottom }} tbody th {{ text-align: right }}
td {{ width: 3.2rem; height: 2rem; text-align: center; font-size: .75rem; font-variant-numeric: tabular-nums;
  border: 1px solid #e6e8eb }}
p.note {{ color: #57606a; font-size: .9rem }}
@media (prefers-color-scheme: dark) {{ body {{ color: #e6edf3; background: #0d1117 }} td {{ border-color: #30363d }}
  p.note {{ color: #9198a1 }} }}
</style></head><body>
<h1>{title}</h1>
{parts}
<p class="note">A row is a written token, a column one that was read; a cell is the share of the row that this token
took, mean over the heads of one layer. Every number is the model's own, and each row adds to one.</p>
</body></html>
"""


class Part(NamedTuple):
    """One translation with its alignment, (written, read)."""

    source: str
    text: str
    rows: Sequence[str]
    columns: Sequence[str]
    weights: Any


def alignment_text(weights: Any, rows: Sequence[str], columns: Sequence[str], *, width: int = 160) -> str:
    """The map in characters, and below it what each written token looked at most; a map beyond `width` is left out.

    >>> print(alignment_text([[0.9, 0.1], [0.2, 0.8]], ["猫", "坐"], ["cat", "sat"]))
         cat  sat
    猫  █.90 ░.10
    坐  ░.20 █.80
    <BLANKLINE>
    猫 ← cat 0.90   坐 ← sat 0.80
    """
    grid, down, across = parts_of(weights, rows, columns)
    down, across = [readable(name) for name in down], [readable(name) for name in across]
    listed = [f"{name} ← {strongest(line, across)}" for name, line in zip(down, grid)]
    if max(map(wide, down)) + 2 + sum(max(wide(name), 4) + 1 for name in across) > width:
        return "\n".join(listed)
    drawn = "\n".join(line.rstrip() for line in grid_text(grid, down, across).plain.splitlines())
    return drawn + "\n\n" + "   ".join(listed)


def strongest(line: Any, names: Sequence[str]) -> str:
    """What took most of a row."""
    if np.isnan(line).all():
        return "nothing"
    best = int(np.nanargmax(line))
    return f"{names[best]} {line[best]:.2f}"


def alignment_page(title: str, parts: Sequence[Part]) -> str:
    """One HTML page with a table for each translation; texts are only text in it, and it loads nothing.

    What is hidden in a text, or turns the direction of writing, is shown by its name.

    >>> page = alignment_page("one", [Part("<b>", "猫", ["猫"], ["<b>"], [[1.0]])])
    >>> "&lt;b&gt;" in page, "<b>" in page
    (True, False)
    """
    return PAGE.format(title=plain(title), parts="\n".join(map(section, parts)))


def section(part: Part) -> str:
    grid, down, across = parts_of(part.weights, part.rows, part.columns)
    head = "".join(heading(name, "col") for name in across)
    body = "".join(
        f"<tr>{heading(name, 'row')}{''.join(map(cell, line))}</tr>" for name, line in zip(down, grid.tolist())
    )
    return (
        f"<h2><bdi>{plain(part.source)}</bdi> → <bdi>{plain(part.text)}</bdi></h2>"
        f'<div class="map"><table><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def parts_of(weights: Any, rows: Sequence[str], columns: Sequence[str]) -> tuple[Grid, list[str], list[str]]:
    """Numbers and a name for each row and column, refused where they do not fit."""
    grid = as_grid(weights)
    return grid, named(rows, grid.shape[0], "row"), named(columns, grid.shape[1], "column")


def plain(text: str) -> str:
    """A text that is nothing but text in a page, and hides nothing."""
    return html.escape(visible(text.strip()))


def heading(name: str, side: str) -> str:
    """The name of a token; of a long one the middle is told when somebody points at it."""
    whole, short = visible(name), readable(name, LONGEST)
    said = f' title="{html.escape(whole)}"' if whole != short else ""
    return f'<th scope="{side}" dir="auto"{said}>{html.escape(short)}</th>'


def cell(share: float) -> str:
    """One weight: its number, and a colour that says the same."""
    if math.isnan(share):
        return '<td title="hidden">·</td>'
    deep = min(max(share, 0.0), 1.0)
    ink = "#fff" if deep > 0.8 else "inherit"  # where white stands out more than the dark of the page
    said = f"{share:.2f}".removeprefix("0") if share >= 0.005 else ""
    return f'<td title="{share:.6f}" style="background:rgba(49,104,142,{deep:.3f});color:{ink}">{said}</td>'
