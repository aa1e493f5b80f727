"""The sections of an article and the explorer with their runs, as one HTML file that needs no network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from regard.trace.record.trace import Trace
from regard.views.article.markup import Markup, as_markup, element, join
from regard.views.article.parts import command_box
from regard.views.article.style import STYLE
from regard.views.explorer.page import WAIT, PageTrace, make_content

LARGEST = 8_000_000  # bytes of a page, beyond which it holds no v

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="regard" content="page">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{main}
<section id="explorer">
{heading}
{anchors}
<div id="regard" data-part><p id="wait">{wait}</p></div>
</section>
<script type="module">{script}</script>
<script type="application/x-regard" id="about">{about}</script>
{data}
</body>
</html>
"""


class ArticleRun(NamedTuple):
    """A run that the explorer of the page holds, and where it opens: `layer=1&head=2`."""

    name: str
    trace: Trace
    output: Mapping[str, Any]  # ModelOutput in messages.ts
    place: str
    view: str = "map"  # that it opens in
    picture: Mapping[str, Any] | None = None  # ShownPicture in messages.ts, of a model that saw one


@dataclass(frozen=True)
class ArticleSection:
    """One section: what the model is, what went in and came out, what it looked at, and commands."""

    name: str  # one word, by which the page is linked to
    title: str
    about: str
    parts: Sequence[tuple[str, Markup]]  # each with its heading
    commands: Sequence[tuple[str, str]]  # each with what it is for
    trained_by: str  # the command that made the model; "" where it is not known
    run: ArticleRun
    summary: str  # of the run, for a terminal


def article_page(title: str, lead: str, sections: Sequence[ArticleSection]) -> str:
    """The page. All that is text is escaped; v of every layer is held as long as the page stays below 8 MB."""
    links = [run_address(number, one.run) for number, one in enumerate(sections)]
    main = element(
        "main",
        element("h1", title),
        element("p", lead),
        element("nav", *(element("a", one.title, href=f"#{one.name}") for one in sections), **{"aria-label": "Tasks"}),
        *(section_markup(one, link) for one, link in zip(sections, links)),
    )
    heading = [
        element("h2", "Every layer and head of these runs"),
        element(
            "p",
            "The explorer below holds the runs above, with q and k of each layer: choose one by its name, a view by "
            "its tab, a layer and a head at the left. Inside it, ? lists the keys.",
            class_="about",
        ),
    ]
    parts = {
        "title": as_markup(title),
        "style": STYLE,
        "main": main,
        "heading": join(heading),
        # The explorer reads such an address and the browser scrolls to it: no script of our own is needed.
        "anchors": join(element("a", id=link.removeprefix("#")) for link in links),
        "wait": as_markup(WAIT),
    }
    runs = [PageTrace(one.run.trace, one.run.name, one.run.output, one.run.picture) for one in sections]
    for values in (True, False):
        content = make_content(runs, values=values, first=links[0])
        made = PAGE.format(**parts, **content._asdict())
        if len(made.encode()) <= LARGEST:
            break
    return made


def run_address(number: int, run: ArticleRun) -> str:
    """The address of a run in the explorer. The explorer passes over `see`, which makes it the name of one place.

    >>> run_address(2, ArticleRun("fill", Trace([]), {}, "layer=1&head=0"))
    '#/see&trace=2&view=map&layer=1&head=0'
    """
    return f"#/see&trace={number}&view={run.view}&{run.place}"


def section_markup(one: ArticleSection, link: str) -> Markup:
    """A section as the page has it."""
    commands = [(name, command_box(command)) for name, command in one.commands]
    if one.trained_by:
        folded = element(
            "details", element("summary", "The command that trained this model"), command_box(one.trained_by)
        )
        commands.append(("Training", folded))
    opened = element("a", f"Open this run in the explorer: {one.run.name}", href=link, class_="see")
    parts = [*one.parts, ("Explore", element("p", opened)), *commands]
    rows = [join([element("h3", name), element("div", part)]) for name, part in parts]
    return element(
        "section",
        element("h2", one.title),
        element("p", one.about, class_="about"),
        element("div", *rows, class_="rows"),
        id=one.name,
    )
