"""Models, and running them: one WebSocket for each run, closed to stop it."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable

from fastapi import FastAPI, WebSocket
from starlette.responses import Response
from starlette.websockets import WebSocketDisconnect

from regard.app.protocol import limits
from regard.app.protocol.messages import (
    DoneEvent,
    FailedEvent,
    RunEvent,
    RunRequest,
    describe_error,
)
from regard.app.protocol.refusal import RunStopped, refusal_of
from regard.app.protocol.wire import parse, respond
from regard.app.runners.monitor import RunMonitor
from regard.app.security.access import with_token
from regard.app.studio.studio import Studio
from regard.errors import RegardError

FIRST = 30.0  # seconds in which the question must come
LAST = ("done", "failed")


def add(app: FastAPI, studio: Studio) -> None:
    """Put the routes of models into the app."""

    @with_token
    async def models() -> Response:
        return respond(studio.models.list_models())

    @with_token
    async def run(websocket: WebSocket) -> None:
        await websocket.accept()
        with contextlib.suppress(WebSocketDisconnect, asyncio.TimeoutError):
            await serve_run(studio, websocket)

    app.add_api_route("/api/models", models, methods=["GET"])
    app.add_api_websocket_route("/api/run", run)


async def serve_run(studio: Studio, websocket: WebSocket) -> None:
    """Take one question, tell how it goes, and close."""
    loop, events, left = asyncio.get_running_loop(), asyncio.Queue[RunEvent](), threading.Event()

    def tell(event: RunEvent) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server ends
            loop.call_soon_threadsafe(events.put_nowait, event)

    work = None
    try:
        request = await receive_request(websocket)
        if studio.waiting:
            RunMonitor(tell).progress("waiting for another run to end", step="waiting")
        work = studio.queue(lambda: finish(studio, request, RunMonitor(tell, left.is_set), tell))
    except RegardError as error:
        tell(describe_failure(error))
    leaving = asyncio.create_task(until_closed(websocket))
    try:
        while True:
            hearing = asyncio.create_task(events.get())
            await asyncio.wait([hearing, leaving], return_when=asyncio.FIRST_COMPLETED)
            if not hearing.done():
                hearing.cancel()
                return
            await websocket.send_text(json.dumps(hearing.result().to_json()))
            if hearing.result().kind in LAST:
                await websocket.close()
                return
    finally:
        left.set()
        leaving.cancel()
        if work is not None:
            work.cancel()


async def receive_request(websocket: WebSocket) -> RunRequest:
    """What should run."""
    message = await asyncio.wait_for(websocket.receive(), FIRST)
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1005))
    data = message.get("text") or message.get("bytes") or ""
    if len(data) > limits.RUN:
        raise limits.too_large(len(data), limits.RUN, "what was sent")
    return parse(RunRequest, data)


async def until_closed(websocket: WebSocket) -> None:
    """Return when the other side has gone; what else it says is not heard."""
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):
        while (await websocket.receive())["type"] != "websocket.disconnect":
            pass


def describe_failure(error: RegardError) -> FailedEvent:
    """The event that says why a run failed."""
    return FailedEvent(kind="failed", text=str(error), **describe_error(error))


def finish(studio: Studio, request: RunRequest, monitor: RunMonitor, tell: Callable[[RunEvent], None]) -> None:
    """Run, and tell how it ended; whatever a model raises becomes one sentence."""
    try:
        trace, text = studio.run(request, monitor)
    except RunStopped:
        return
    except BaseException as error:  # also the panic of a tokenizer: this is the end of a worker's work
        tell(describe_failure(refusal_of(error, request.model)))
    else:
        tell(DoneEvent(kind="done", trace=trace, text=text))
