"""The app: routes, the guard before them, and errors as one sentence."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from regard.app.protocol.refusal import Refusal
from regard.app.protocol.wire import RunAsk, answer
from regard.app.routes import front, runs, traces, trainings
from regard.app.security.access import must_be_decided, open_routes
from regard.app.security.connections import Shortage
from regard.app.security.guard import Door, Guard
from regard.app.studio.studio import Studio
from regard.errors import RegardError


def make_app(studio: Studio, door: Door, *, first: RunAsk | None = None) -> Guard:
    """What a server runs. Raises where a route does not say who may ask."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_exception_handler(Shortage())
        studio.begin(first)
        yield
        studio.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=life, redirect_slashes=False)
    app.add_exception_handler(RegardError, told)
    app.add_exception_handler(HTTPException, unknown)
    app.add_exception_handler(Exception, failed)
    front.add(app, door)
    for routes in (traces, runs, trainings):
        routes.add(app, studio)
    return guarded(app, door)


def guarded(app: FastAPI, door: Door) -> Guard:
    """The app behind its guard, if every route is decided."""
    must_be_decided(app.routes)
    return Guard(app, door, open_routes(app.routes))


async def told(_: Request, error: Any) -> Response:
    """What was refused on purpose."""
    return answer(error.told(), error.status if isinstance(error, Refusal) else 400)


async def unknown(_: Request, error: Any) -> Response:
    """An address or a method that is not there."""
    status = error.status_code
    said = RegardError(f"there is nothing here ({status}); open the front page").coded("server.unknown", status=status)
    return answer(said.told(), status)


async def failed(_: Request, error: Exception) -> Response:
    """What nobody thought of; the terminal shows where."""
    kind = type(error).__name__
    said = RegardError(f"the server failed ({kind}); its terminal says where").coded("server.failed", kind=kind)
    return answer(said.told(), 500)
