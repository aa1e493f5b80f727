"""Runs of training: listed, and one example at one step as a trace."""

import asyncio
import re

from fastapi import FastAPI
from starlette.responses import Response

from regard.app.protocol.messages import TraceLink
from regard.app.protocol.refusal import Refusal
from regard.app.protocol.wire import respond
from regard.app.security.access import with_token
from regard.app.studio.studio import Studio

NUMBER = re.compile(r"[0-9]{1,12}", re.ASCII)


def add(app: FastAPI, studio: Studio) -> None:
    """Put the routes of training into the app."""

    @with_token
    async def list_all() -> Response:
        work = asyncio.get_running_loop().run_in_executor(studio.asking, studio.trainings.list_trainings)
        return respond(await work)

    @with_token
    async def open_one(wanted: str, step: str, example: str) -> Response:
        if not NUMBER.fullmatch(step) or not NUMBER.fullmatch(example):
            raise Refusal("a step and an example are whole numbers; open the list again", 404).with_code(
                "training.none"
            )
        loop = asyncio.get_running_loop()
        opening = loop.run_in_executor(studio.asking, studio.open_training, wanted, int(step), int(example))
        return respond(TraceLink(trace=await opening))

    app.add_api_route("/api/trainings", list_all, methods=["GET"])
    app.add_api_route("/api/trainings/{wanted}/{step}/{example}", open_one, methods=["GET"])
