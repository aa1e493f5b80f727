"""What a section shows a run by: chips, bars, tables of weights, and a text with some of its words marked."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from regard.views.article.markup import Markup, element, join
from regard.views.static.shades import shade_style

SHORT = 3  # letters; longer names of columns stand upright where the screen is narrow


class MarkedSpan(NamedTuple):
    """Some characters of a text that stand out, and what they say when they are pointed at."""

    start: int
    stop: int
    title: str = ""


def chips(
    names: Sequence[str],
    values: Sequence[float],
    *,
    top: float = 1.0,
    signed: bool = False,
    titles: Sequence[str] | None = None,
) -> Markup:
    """Words with a number below each, on the colour of its share of `top`."""
    form = "{:+.2f}" if signed else "{:.2f}"
    made = [
        element(
            "span",
            name,
            element("small", form.format(round(value, 2) + 0.0)),
            class_="shade chip",
            style=shade_style(value / top, signed=signed),
            title=title or f"{value:.4f}",
        )
        for name, value, title in zip(names, values, titles or [""] * len(names))
    ]
    return element("p", join(made, " "), class_="chips")


def bar_list(names: Sequence[str], shares: Sequence[float]) -> Markup:
    """A line for each name: its share as a bar and as a number."""
    rows = [
        element(
            "tr",
            element("th", name, scope="row"),
            element("td", f"{share:.3f}", class_="number"),
            element("td", element("i", style=f"width:{100 * min(max(share, 0.0), 1.0):.2f}%"), class_="bar"),
        )
        for name, share in zip(names, shares)
    ]
    return element("table", *rows, class_="bars")


def weight_table(
    rows: Sequence[str],
    columns: Sequence[str],
    weights: Sequence[Sequence[float]],
    *,
    show: Callable[[float], str] | None = None,
) -> Markup:
    """Numbers, mostly between 0 and 1, as a table of shaded cells; it scrolls where the screen is narrow.

    `show` writes a number; by default with two digits, as .07, and not at all where these are 0.
    """
    kind = "key long" if max(map(len, columns), default=0) > SHORT else "key"
    head = element("tr", element("td"), *(element("th", name, scope="col", class_=kind) for name in columns))
    body = [
        element(
            "tr",
            element("th", name, scope="row", class_="query"),
            *(weight_cell(share, (show or short_number)(share)) for share in line),
        )
        for name, line in zip(rows, weights)
    ]
    table = element("table", head, *body, class_="weights")
    return scroll_box(table)


def scroll_box(table: Markup) -> Markup:
    """A table that may be wider than the screen, which keys scroll too."""
    return element("div", table, class_="wide", tabindex="0", role="region", **{"aria-label": "table"})


def weight_cell(share: float, shown: str) -> Markup:
    """A number on its colour; below 0 it has that of 0."""
    return element("td", shown, class_="shade", style=shade_style(min(max(share, 0.0), 1.0)), title=f"{share:.4f}")


def short_number(share: float) -> str:
    """Two digits.

    >>> short_number(0.071), short_number(0.001), short_number(1.0)
    ('.07', '', '1.00')
    """
    shown = f"{share:.2f}".removeprefix("0")
    return "" if shown == ".00" else shown


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """A table of texts; it scrolls where the screen is narrow."""
    top = element("tr", *(element("th", name, scope="col") for name in head))
    body = [element("tr", *(element("td", one) for one in row)) for row in rows]
    return scroll_box(element("table", top, *body, class_="plain"))


def text_box(text: str, marked: Sequence[MarkedSpan] = ()) -> Markup:
    """A text, with its lines, some characters of it marked; of two marks that overlap the first stays.

    >>> text_box("A <cat> sat.", [MarkedSpan(2, 7, "who")])
    '<blockquote dir="auto">A <mark title="who">&lt;cat&gt;</mark> sat.</blockquote>'
    """
    parts: list[str] = []
    at = 0
    for start, stop, title in sorted(marked):
        if start >= at:
            parts += [text[at:start], element("mark", text[start:stop], **({"title": title} if title else {}))]
            at = stop
    return element("blockquote", *parts, text[at:], dir="auto")


def shaded_text(words: Sequence[str], shares: Sequence[float]) -> Markup:
    """Words of a longer text, each on the colour of its share of the largest; pointing at one tells its number."""
    top = max(shares, default=0.0) or 1.0
    made = [
        element("span", word, class_="shade", style=shade_style(share / top), title=f"{share:.4f}")
        for word, share in zip(words, shares)
    ]
    return element("blockquote", join(made, " "), dir="auto")


def command_box(command: str) -> Markup:
    """A command to copy; a line ends between its words only.

    >>> command_box("regard demo")
    '<pre><code><span>regard</span> <span>demo</span></code></pre>'
    """
    return element("pre", element("code", join([element("span", word) for word in command.split(" ")], " ")))


def note(text: str) -> Markup:
    """A sentence that says what the numbers are."""
    return element("p", text, class_="note")
