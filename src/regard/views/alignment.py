"""Which written word looked at which read one: as text, and as one page that needs nothing else."""

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

from regard.views import as_grid, readable
from regard.views.trace_terminal import grid_text

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, "Noto Sans CJK SC", sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
  color: #1b1f24; background: #fff }}
h1 {{ font-size: 1.4rem }} h2 {{ font-size: 1.1rem; margin: 2rem 0 .2rem; font-weight: 600 }}
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


def alignment_text(weights: Any, rows: Sequence[str], columns: Sequence[str]) -> str:
    """The map in characters, and below it what each written token looked at most.

    >>> print(alignment_text([[0.9, 0.1], [0.2, 0.8]], ["猫", "坐"], ["cat", "sat"]))
         cat  sat
    猫  █.90 ░.10
    坐  ░.20 █.80
    <BLANKLINE>
    猫 ← cat 0.90   坐 ← sat 0.80
    """
    grid = as_grid(weights)
    rows, columns = [readable(name) for name in rows], [readable(name) for name in columns]
    best = [(row, columns[int(line.argmax())], float(line.max())) for row, line in zip(rows, grid)]
    listed = [f"{row} ← {column} {share:.2f}" for row, column, share in best]
    drawn = "\n".join(line.rstrip() for line in grid_text(grid, rows, columns).plain.splitlines())
    return drawn + "\n\n" + "   ".join(listed)


def alignment_page(title: str, parts: Sequence[Part]) -> str:
    """One HTML page with a table for each translation; texts are only text in it, and it loads nothing."""
    return PAGE.format(title=html.escape(title), parts="\n".join(map(section, parts)))


def section(part: Part) -> str:
    grid = as_grid(part.weights)
    head = "".join(f"<th scope=col>{html.escape(name)}</th>" for name in part.columns)
    body = "".join(
        f"<tr><th scope=row>{html.escape(name)}</th>{''.join(map(cell, line))}</tr>"
        for name, line in zip(part.rows, grid.tolist())
    )
    return (
        f"<h2>{html.escape(part.source)} → {html.escape(part.text)}</h2>"
        f'<div class="map"><table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def cell(share: float) -> str:
    """One weight: its number, and a colour that says the same."""
    ink = "#fff" if share > 0.55 else "inherit"
    said = f"{share:.2f}".removeprefix("0") if share >= 0.005 else ""
    return f'<td title="{share:.6f}" style="background:rgba(49,104,142,{share:.3f});color:{ink}">{said}</td>'
