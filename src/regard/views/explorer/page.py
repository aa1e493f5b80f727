"""A trace as one HTML file: the explorer, and the numbers that it asks; nothing is fetched, nothing is stored twice.

The page holds the bytes of a trace file (`packed.py`), and beside them what only Python can know: proofs, measures,
the error of rounding. The browser computes every weight from q and k when somebody looks.
"""

import base64
import hashlib
import html
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.errors import TraceError
from regard.files import put
from regard.tokens.visible import visible
from regard.trace.file.file import select_layers
from regard.trace.record.placement import place_windows
from regard.trace.record.trace import Run, Trace
from regard.views.explorer.bundle import read_bundle
from regard.views.explorer.packing import file_bytes, pack_bytes
from regard.views.explorer.page_data import describe_run, dump_safe_json, escape_script
from regard.views.explorer.rounding import Rounding, RoundingError, measure_error, round_run, rounded_size

FORMAT = 1
ROOM = 1_900_000  # bytes of all numbers up to which v is held too,
SMALL = 2_500_000  # and of a page
PACKED = 1.2  # characters of a page that a byte of numbers takes, at most
LANGUAGES = ("en", "zh")

PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="regard" content="page">
<title>{title}</title>
<style>
html,body{{margin:0;height:100%}}
#regard{{height:100%}}
#wait{{max-width:40em;margin:4em auto;padding:0 1em;font:16px/1.5 system-ui,sans-serif}}
</style>
</head>
<body>
<div id="regard"><p id="wait">{wait}</p></div>
<script type="module">{script}</script>
<script type="application/x-regard" id="about">{about}</script>
{data}
</body>
</html>
"""
DATA = '<script type="application/x-regard" class="trace">{0}</script>'
WAIT = (
    "This page draws attention maps in your browser and needs no network. If this line stays, the page is not whole "
    "or scripts are off: get the file again, or open it in a browser that runs scripts. "
    "此页面在浏览器中绘制注意力图，无需联网。若此行一直显示，则文件不完整或脚本被禁用。"
)


class PageTrace(NamedTuple):
    """One trace of a page: its name, what the model said (`ModelOutput` in messages.ts), the picture it saw, and what
    it made of its text in numbers (`Reading` in reading.ts)."""

    trace: Trace
    name: str = ""
    output: Mapping[str, Any] | None = None
    picture: Mapping[str, Any] | None = None
    reading: Mapping[str, Any] | None = None


def page(
    trace: Trace,
    to: str | os.PathLike[str] | None = None,
    *,
    precision: str = "float16",
    values: bool | None = None,
    layers: Any = None,
    name: str = "",
    language: str | None = None,
) -> str | None:
    """The trace as one HTML file that opens in any browser, offline; the text of the page where `to` is None.

    It holds q and k of every layer in `precision`, "float16" by default, "float32" for the model's own numbers
    exactly; the page prints which, and the largest error that this was measured to make to a weight. `values` says
    whether v is held too (None: while the page stays small); without it the numbers view ends at the weights.
    `layers` are parts of paths, as in `trace.save`. A file of that name is replaced when the new one is whole.
    """
    path = None if to is None else check_page_path(to)
    made = page_html(trace, precision=precision, values=values, layers=layers, name=name, language=language)
    if path is None:
        return made
    write_page(path, made)
    return None


def page_html(
    trace: Trace,
    *,
    precision: str = "float16",
    values: bool | None = None,
    layers: Any = None,
    name: str = "",
    output: Mapping[str, Any] | None = None,
    picture: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    others: Iterable[PageTrace] = (),
    language: str | None = None,
    title: str = "",
    first: str = "",
) -> str:
    """The text of a page; `others` are more traces to choose from and compare with, `first` the address to begin at."""
    chosen = [PageTrace(trace, name, output, picture, reading), *others]
    content = make_content(chosen, precision=precision, values=values, layers=layers, language=language, first=first)
    shown = html.escape(visible(title or name or trace.model or "regard"))
    return PAGE.format(language=language or "en", title=shown, wait=html.escape(WAIT), **content._asdict())


class PageContent(NamedTuple):
    """What makes a page with an element `#regard` the explorer, each part as it is written into the page."""

    policy: str  # of content: nothing is fetched, and this one script runs
    script: str
    about: str
    data: str


def make_content(
    chosen: Sequence[PageTrace],
    *,
    precision: str = "float16",
    values: bool | None = None,
    layers: Any = None,
    language: str | None = None,
    first: str = "",
) -> PageContent:
    """The explorer over these traces, for whatever page it stands in; what is asked for is that of `page`."""
    if language is not None and language not in LANGUAGES:
        raise TraceError(f"language is {language!r:.40}; give {' or '.join(map(repr, LANGUAGES))}")
    script = escape_script(read_bundle())
    rounding = Rounding(precision)
    runs = [last_run(one.trace, layers) for one in chosen]
    size = sum(rounded_size(run, rounding) for run in runs)
    kept = size <= ROOM and PACKED * size + len(script) <= SMALL if values is None else values
    about, data = [], []
    for number, (one, run) in enumerate(zip(chosen, runs)):
        twin = round_run(run, rounding, values=kept)
        whole, arrays = file_bytes(Trace([twin], notes=notes_of(one.trace), model=one.trace.model))
        text = pack_bytes(whole, arrays)
        data.append(DATA.format(text))
        error = RoundingError(0.0, 0, True) if precision == "float32" else measure_error(run, twin)
        info = {"id": str(number), "name": one.name, "output": one.output, "picture": one.picture}
        info |= {} if one.reading is None else {"reading": one.reading}
        about.append({"bytes": len(whole), "packed": len(text), **describe_run(run, info, error)})
    said = {"format": FORMAT, "language": language, "first": first, "traces": about}
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:"
    return PageContent(policy, script, dump_safe_json(said), "\n".join(data))


def write_page(path: Path, made: str) -> None:
    try:
        put(path, made.encode())
    except OSError as error:
        raise TraceError(f"{path} cannot be written: {error.strerror or error}; name a file that can be") from error


PLACED = 1 << 22  # cells of whole maps, put together from windows, that a page may hold as weights


def check_page_path(to: str | os.PathLike[str]) -> Path:
    """The path, if a page can be written there; asked before anything is computed."""
    path = Path(to)
    if "\0" in str(path):
        raise TraceError(f"{str(path)!r:.80} holds NUL, which no file name has; give another name")
    if path.suffix.lower() not in (".html", ".htm"):
        raise TraceError(f"a page is written as .html, but {path.name!r} ends otherwise; rename it")
    if path.is_dir():
        raise TraceError(f"{path} is a folder; give the name of a file in it, such as {path / 'trace.html'}")
    if not path.parent.is_dir():
        raise TraceError(f"the folder {str(path.parent)!r} for {path.name!r} does not exist; make it first")
    return path


def last_run(trace: Trace, layers: Any) -> Run:
    chosen = trace if layers is None else select_layers(trace, [layers] if isinstance(layers, str) else list(layers))
    if not chosen.layers:
        raise TraceError("the trace has no layers, so there is nothing to look at; watch a call of the model first")
    return place_windows(chosen.runs[-1], most=PLACED)


def notes_of(trace: Trace) -> list[str]:
    count = len(trace.runs)
    return [*trace.notes, *([f"the trace has {count} runs; this page holds the last"] if count > 1 else [])]
