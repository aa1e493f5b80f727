"""Traces: listed, opened, asked, edited, sent, renamed, forgotten, taken along as a page."""

import asyncio
import contextlib
import os
import re
import secrets
import threading
from concurrent.futures import Executor
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from weakref import WeakValueDictionary

from fastapi import FastAPI, Request
from starlette.responses import Response

from regard.app.protocol import limits
from regard.app.protocol.messages import EditRequest, RenameRequest, TraceLink
from regard.app.protocol.refusal import Refusal, refusal_of
from regard.app.protocol.wire import parse, parse_object, respond
from regard.app.runners.monitor import RunMonitor
from regard.app.security.access import with_token
from regard.app.studio.studio import ASKERS, MEASURERS, Studio, run_contained
from regard.app.studio.traces import disk_refusal
from regard.errors import RegardError
from regard.views.explorer.answer.questions import read_question

RUN = re.compile(r"-?[0-9]{1,6}", re.ASCII)
SLOW = frozenset({"measures", "proof", "flow", "thumbs", "hidden"})  # these take long: tiles go on beside them
PATIENCE = 10.0  # seconds that a list waits for the first run
GONE = Response(status_code=499)  # nobody reads it


class RequestQueue:
    """Questions wait here, not in the threads: who has left meanwhile costs nothing.

    Those that take long have threads of their own, and of each trace one at a time is answered: the measures of a huge
    trace hold up neither the tiles nor the measures of another.
    """

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.quick, self.slow = asyncio.Semaphore(ASKERS), asyncio.Semaphore(MEASURERS)
        self.turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by trace

    async def __call__(self, request: Request, work: Any, *parts: Any) -> Any:
        """What the work gives; None where whoever asked has left."""
        with self.studio.way:  # a model that runs lets it by
            async with self.quick:
                return await self.answer(request, self.studio.asking, work, *parts)

    async def at_length(self, request: Request, trace: str, work: Any, *parts: Any) -> Any:
        """The same for what takes long, after all that was asked of this trace before."""
        turn = self.turns.setdefault(trace, asyncio.Lock())
        async with turn, self.slow:
            return await self.answer(request, self.studio.measuring, work, *parts)

    async def answer(self, request: Request, threads: Executor, work: Any, *parts: Any) -> Any:
        if await request.is_disconnected():
            return None
        return await asyncio.get_running_loop().run_in_executor(threads, run_contained, work, *parts)


def run_of(request: Request) -> int:
    """Which run of a trace is meant; the last one unless a number says."""
    number = request.query_params.get("run", "-1")
    if not RUN.fullmatch(number):
        raise Refusal("run is no whole number; give one, or leave it out for the last").with_code("sent.odd")
    return int(number)


def look_of(request: Request) -> int:
    """Which look at a run that was not over then; 0 for what is whole."""
    number = request.query_params.get("look", "0")
    if not RUN.fullmatch(number) or int(number) < 0:
        raise Refusal("look is no number of a look; open the trace again").with_code("trace.older")
    return int(number)


class TraceRoutes:
    """What can be asked of the traces of a studio."""

    def __init__(self, studio: Studio) -> None:
        self.studio, self.traces, self.asking = studio, studio.traces, RequestQueue(studio)

    @with_token
    async def list_all(self) -> Response:
        """The cards of all traces; the first run is waited for a moment."""
        if self.studio.welcomed is not None:
            await asyncio.wait([asyncio.wrap_future(self.studio.welcomed)], timeout=PATIENCE)
        return respond(self.traces.list_traces())

    @with_token
    async def open_one(self, request: Request, wanted: str) -> Response:
        """What a page must know before it asks for numbers."""
        run, look = run_of(request), self.traces.newest_look(wanted)
        info = await self.asking(request, lambda: self.traces.answers(wanted, run, look).info())
        if info is None:
            return GONE
        response = respond(info)
        response.headers["x-look"] = str(look)  # to be sent with every question about it
        return response

    @with_token
    async def ask(self, request: Request, wanted: str, what: str) -> Response:
        """One question about a trace."""
        run, look = run_of(request), look_of(request)
        body = parse_object(await limits.body_of(request))
        self.traces.find(wanted, look)  # what is gone is told before what is wrong with the question
        question = read_question(what, body)
        answer = self.traces.peek_tile(question, wanted, run, look)
        if answer is None:
            work = (self.traces.ask, question, wanted, run, look)
            answer = await (
                self.asking.at_length(request, wanted, *work) if what in SLOW else self.asking(request, *work)
            )
        return GONE if answer is None else Response(answer, media_type="application/octet-stream")

    @with_token
    async def rename(self, request: Request, wanted: str) -> Response:
        """Another name for a trace."""
        self.traces.rename(wanted, parse(RenameRequest, await limits.body_of(request)).name)
        return respond({})

    @with_token
    async def forget(self, wanted: str) -> Response:
        """Take a trace away."""
        self.traces.forget(wanted)
        return respond({})

    @with_token
    async def page(self, request: Request, wanted: str) -> Response:
        """A trace as a file that opens by itself."""
        html = await self.asking.at_length(request, wanted, render_page, self.studio, wanted)
        if html is None:
            return GONE
        name = quote(f"{self.traces.find(wanted).card.name or 'trace'}.html", safe="", errors="replace")
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{name}"}  # never opened as a page of ours
        return Response(html, media_type="text/html; charset=utf-8", headers=headers)

    @with_token
    async def edit(self, request: Request, wanted: str) -> Response:
        """The same run again, under edits."""
        run, edits = run_of(request), parse(EditRequest, await limits.body_of(request)).edits
        left = threading.Event()
        monitor = RunMonitor(stopped=left.is_set)
        watching = asyncio.create_task(until_gone(request, left))
        try:
            work = self.studio.queue(lambda: self.studio.edit(wanted, edits, monitor, run))
            return respond(await asyncio.wrap_future(work))
        except RegardError:
            raise
        except Exception as error:
            raise refusal_of(error, self.studio.model_of(wanted)) from error
        finally:
            left.set()
            watching.cancel()

    @with_token
    async def upload(self, request: Request) -> Response:
        """Keep a trace that was sent."""
        part = self.traces.folder / f".sent-{secrets.token_hex(8)}"
        try:
            await receive_file(request, part)
            identity = await self.asking(request, self.traces.take, part, name_of(request.headers.get("x-name", "")))
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        return GONE if identity is None else respond(TraceLink(trace=identity))


def add(app: FastAPI, studio: Studio) -> None:
    """Put the routes of traces into the app."""
    routes = TraceRoutes(studio)
    one = "/api/traces/{wanted}"
    for path, endpoint, method in (
        ("/api/traces", routes.list_all, "GET"),
        ("/api/traces", routes.upload, "POST"),
        (one, routes.open_one, "GET"),
        (one, routes.rename, "PATCH"),
        (one, routes.forget, "DELETE"),
        (f"{one}/ask/{{what}}", routes.ask, "POST"),
        (f"{one}/edit", routes.edit, "POST"),
        (f"{one}/page", routes.page, "GET"),
    ):
        app.add_api_route(path, endpoint, methods=[method])


async def until_gone(request: Request, left: threading.Event) -> None:
    """Notice that whoever asked has left."""
    while not await request.is_disconnected():
        await asyncio.sleep(0.2)
    left.set()


async def receive_file(request: Request, part: Path) -> None:
    """Write the body of a request to a file, piece by piece; what is too long is not all read."""
    length = limits.stated_length(request.headers)
    if length is not None and length > limits.UPLOAD:
        raise limits.too_large(length, limits.UPLOAD, "the trace")
    count = 0
    try:
        part.parent.mkdir(0o700, parents=True, exist_ok=True)
        with open(part, "xb", opener=private) as file:
            async for chunk in request.stream():
                count += len(chunk)
                if count > limits.UPLOAD:
                    raise limits.too_large(None, limits.UPLOAD, "the trace")
                file.write(chunk)
    except OSError as error:
        raise disk_refusal(part.parent, error) from error


def private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def name_of(header: str) -> str:
    """The name of a file that was sent, percent-encoded, without its folder and ending."""
    name = re.split(r"[/\\]", unquote(header, errors="replace"))[-1].removesuffix(".trace")
    plain = "".join(letter if letter.isprintable() else " " for letter in name).strip()
    return plain[: limits.NAME] or "trace"


def render_page(studio: Studio, wanted: str) -> str:
    """A trace as one HTML file."""
    from regard.views.explorer.page import page_html

    entry = studio.traces.find(wanted)
    card = entry.card
    return page_html(studio.traces.trace_of(entry), name=card.name, output=card.output, picture=card.picture)
