"""The measures of every head of a trace file."""

import sys
from dataclasses import replace
from pathlib import Path

from regard.cli.harmless import format_json
from regard.trace.file import load
from regard.trace.measure.summary import summarise
from regard.trace.measure.table import Table

WIDE = 1000  # columns of a file or a pipe, where nothing is left out


def summarise_file(
    path: Path, *, sort: str | None, descending: bool, batch: int | None, lines: int, as_json: bool = False
) -> str:
    """The summary of a trace file as text, or as JSON."""
    table = summarise(load(path), batch)
    if sort is not None:
        table = table.sort(sort, descending=descending)
    if as_json:
        return format_json({"title": table.title, "heads": table.records(), "notes": table.notes})
    more = [f"… {len(table) - lines} more heads; show them with --lines {len(table)}"] if len(table) > lines else []
    return format_table(replace(table, rows=table.rows[:lines], notes=[*more, *table.notes]))


def format_table(table: Table) -> str:
    """The table as lines: in a terminal the columns that fit, elsewhere all of them."""
    from rich.console import Console

    console = Console(color_system=None, width=None if sys.stdout.isatty() else WIDE)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n")
