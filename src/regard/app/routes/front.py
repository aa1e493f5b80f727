"""The page itself and its script, which hold nothing of anybody; and how the token becomes a cookie."""

from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from regard.app.protocol.refusal import Refusal
from regard.app.security.access import open_to_all
from regard.app.security.guard import SENTENCES, AccessPolicy

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="regard" content="browser">
<title>regard</title>
<link rel="icon" href="data:,">
</head>
<body>
<noscript>This page draws with JavaScript; allow it here.</noscript>
<script type="module" src="/assets/regard.js"></script>
</body>
</html>
"""
AGE = 30 * 24 * 3600  # seconds; the token itself ends with the server


def add(app: FastAPI, policy: AccessPolicy) -> None:
    """Put the routes of the front into the app."""

    @open_to_all
    async def front(request: Request) -> Response:
        token = request.query_params.get("token")
        if token is None:
            return HTMLResponse(PAGE)
        if not policy.fits(token):
            if "text/html" in request.headers.get("accept", ""):
                return HTMLResponse(PAGE, 401)  # it says so itself, in the reader's language
            raise Refusal(SENTENCES["token"], 401).with_code("access.token")
        answer = RedirectResponse("/", 303)
        answer.set_cookie(policy.cookie, policy.token, max_age=AGE, path="/", httponly=True, samesite="strict")
        return answer

    @open_to_all
    async def script() -> Response:
        from regard.views.explorer.bundle import read_bundle

        return Response(read_bundle(), media_type="text/javascript")

    routes: list[tuple[str, Any]] = [("/", front), ("/assets/regard.js", script)]
    for path, endpoint in routes:
        app.add_api_route(path, endpoint, methods=["GET"])
