"""A table of plain records: sorted, printed in the terminal and the notebook, handed to pandas and polars."""

from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from regard.errors import TraceError
from regard.extras import importing

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

SHOWN = 48  # lines that a repr shows at most
DIGITS = 3
HEADING = 9  # a longer heading is broken, a number never
NOTHING = "–"

Record = dict[str, object]
T = TypeVar("T", bound="Table")


@dataclass(repr=False)
class Table:
    """Records that all have the same keys, in order. None stands where there is no answer."""

    rows: list[Record] = field(default_factory=list)
    title: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def __len__(self) -> int:
        return len(self.rows)

    def records(self) -> list[Record]:
        """Plain dicts, one per line, for pandas.DataFrame, polars.DataFrame or JSON."""
        return [{name: row.get(name) for name in self.columns} for row in self.rows]

    def sort(self: T, by: str, *, descending: bool = False) -> T:
        """The same table in another order; what has no answer comes last."""
        if by not in self.columns:
            raise TraceError(f"there is no column {by!r} to sort by; there are: {', '.join(self.columns)}")
        known = [row for row in self.rows if row.get(by) is not None]
        unknown = [row for row in self.rows if row.get(by) is None]

        def key(row: Record) -> Any:
            return row[by]

        return replace(self, rows=[*sorted(known, key=key, reverse=descending), *unknown])

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame."""
        return library("pandas").DataFrame(self.records(), columns=self.columns)

    def to_polars(self) -> Any:
        """The table as a polars.DataFrame."""
        return library("polars").DataFrame(self.records(), infer_schema_length=None)

    def cells(self) -> list[list[str]]:
        """The lines as they are shown."""
        return [[format_cell(row.get(name)) for name in self.columns] for row in self.rows]

    def __repr__(self) -> str:
        from rich.cells import cell_len

        lines = [[visible(name) for name in self.columns], *self.cells()[:SHOWN]]
        left = [any(isinstance(row.get(name), str) for row in self.rows) for name in self.columns]
        widths = [max(cell_len(line[i]) for line in lines) for i in range(len(self.columns))]
        drawn = [
            "  ".join(
                cell + gap if to_left else gap + cell
                for cell, to_left, gap in zip(line, left, (" " * (w - cell_len(c)) for c, w in zip(line, widths)))
            ).rstrip()
            for line in lines
        ]
        if len(self.rows) > SHOWN:
            drawn.append(f"… {len(self.rows) - SHOWN} more lines")
        return "\n".join([*filter(None, [visible(self.title)]), *drawn, *map(visible, self.notes)])

    def __rich__(self) -> "DrawnTable":
        return DrawnTable(self)

    def _repr_html_(self) -> str:
        from html import escape

        head = "".join(f"<th>{escape(visible(name))}</th>" for name in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in line) + "</tr>" for line in self.cells())
        title = f"<caption>{escape(visible(self.title))}</caption>" if self.title else ""
        notes = "".join(f"<p><small>{escape(visible(note))}</small></p>" for note in self.notes)
        return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


class HasTable:
    """What shows itself as the table that it makes."""

    def table(self) -> Table:
        raise NotImplementedError

    def records(self) -> list[Record]:
        """Plain dicts, one per line of the table, for pandas.DataFrame, polars.DataFrame or JSON."""
        return self.table().records()

    def __repr__(self) -> str:
        return repr(self.table())

    def __rich__(self) -> "DrawnTable":
        return self.table().__rich__()

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


class DrawnTable:
    """The table in a terminal: as many columns as fit, and the names of those that do not."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich import box
        from rich.cells import cell_len
        from rich.table import Table as RichTable
        from rich.text import Text

        table, lines = self.table, self.table.cells()
        names = [visible(name) for name in table.columns]
        widest = [max((cell_len(line[i]) for line in lines), default=0) for i in range(len(names))]
        widths = [max(wide, min(cell_len(name), HEADING)) for wide, name in zip(widest, names)]
        fit = len(names)
        while fit > 1 and sum(widths[:fit]) + 2 * fit > options.max_width:
            fit -= 1
        drawn = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for column, name, width in list(zip(table.columns, names, widths))[:fit]:
            words = any(isinstance(row.get(column), str) for row in table.rows)
            drawn.add_column(Text(name), justify="left" if words else "right", overflow="fold", min_width=width)
        for line in lines:
            drawn.add_row(*(Text(cell) for cell in line[:fit]))
        if table.title:
            yield Text(visible(table.title))
        yield drawn
        if fit < len(names):
            yield Text(f"… {len(names) - fit} more columns: {', '.join(names[fit:])}")
        for note in table.notes:
            yield Text(visible(note))


def format_cell(value: object) -> str:
    """One cell as text."""
    if value is None:
        return NOTHING
    return f"{value:.{DIGITS}f}" if isinstance(value, float) else visible(str(value))


def visible(text: str) -> str:
    """The text with control characters written out, so that no token moves the cursor of a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def library(name: str) -> Any:
    """A library that a table can be handed to, or how to get it."""
    missing = TraceError(f"a table for {name} needs it, and it is not installed: pip install {name}")
    with importing(name, missing=missing):
        return import_module(name)
