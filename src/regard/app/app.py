"""The app: routes, the guard before them, and errors as one sentence."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from regard.app.protocol.messages import RunRequest
from regard.app.protocol.refusal import Refusal
from regard.app.protocol.wire import respond_error
from regard.app.routes import front, runs, traces, trainings
from regard.app.security.access import must_be_decided, open_routes
from regard.app.security.connections import Shortage
from regard.app.security.guard import AccessPolicy, Guard
from regard.app.studio.studio import Studio
from regard.errors import RegardError


def make_app(studio: Studio, policy: AccessPolicy, *, first: RunRequest | None = None) -> Guard:
    """What a server runs. Raises where a route does not say who may ask."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_exception_handler(Shortage())
        studio.begin(first)
        yield
        studio.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=life, redirect_slashes=False)
    app.add_exception_handler(RegardError, answer_refusal)
    app.add_exception_handler(HTTPException, answer_unknown)
    app.add_exception_handler(Exception, answer_failure)
    front.add(app, policy)
    for routes in (traces, runs, trainings):
        routes.add(app, studio)
    return put_behind_guard(app, policy)


def put_behind_guard(app: FastAPI, policy: AccessPolicy) -> Guard:
    """The app behind its guard, if every route is decided."""
    must_be_decided(app.routes)
    return Guard(app, policy, open_routes(app.routes))


async def answer_refusal(_: Request, error: Any) -> Response:
    """What was refused on purpose."""
    return respond_error(error, error.status if isinstance(error, Refusal) else 400)


async def answer_unknown(_: Request, error: Any) -> Response:
    """An address or a method that is not there."""
    status = error.status_code
    sentence = f"there is nothing here ({status}); open the front page"
    return respond_error(RegardError(sentence).with_code("server.unknown", status=status), status)


async def answer_failure(_: Request, error: Exception) -> Response:
    """What nobody thought of; the terminal shows where."""
    kind = type(error).__name__
    sentence = f"the server failed ({kind}); its terminal says where"
    return respond_error(RegardError(sentence).with_code("server.failed", kind=kind), 500)
