"""Who may ask at all. Stands before every route, also before those that do not exist.

A page of another site, or a name that was bent to this machine (DNS rebinding), reaches a server on loopback as well as
we do; so Host and Origin are compared whole, and a token is needed although only this machine can connect.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import Match

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "worker-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
ALWAYS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
READS = ("GET", "HEAD")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SENTENCES = {
    "host": "this server answers only under the address that it printed; open that one",
    "origin": "this came from another page, which may not ask here; open the address that the server printed",
    "token": "this needs the token of the server; open the address that `regard serve` printed, with its token",
}


@dataclass(frozen=True)
class AccessPolicy:
    """Under which names the server answers, and the token that it wants."""

    token: str
    port: int
    names: tuple[str, ...] = LOOPBACK

    @property
    def hosts(self) -> frozenset[str]:
        plain = {name for name in self.names if self.port == 80}
        return frozenset({f"{name}:{self.port}" for name in self.names} | plain)

    @property
    def cookie(self) -> str:
        """Cookies are shared by all ports of a host, so its name holds the port."""
        return f"regard-{self.port}"

    def fits(self, token: str) -> bool:
        """Whether this is the token; takes as long whatever came."""
        return compare_digest(token.encode("utf-8", "surrogatepass"), self.token.encode())

    def is_known(self, headers: Headers) -> bool:
        """Whether a request carries the token, as a cookie or as `Authorization: Bearer`."""
        authorization = headers.get("authorization", "")
        if authorization[:7].lower() == "bearer " and self.fits(authorization[7:].strip()):
            return True
        return any(self.fits(value) for value in cookies(headers, self.cookie))


def cookies(headers: Headers, name: str) -> list[str]:
    """Every cookie of this name: another app on this host may have set one too."""
    values = []
    for line in headers.getlist("cookie"):
        for part in line.split(";"):
            try:
                read = SimpleCookie(part.strip())
            except CookieError:
                continue
            values += [read[name].value] if name in read else []
    return values


class Guard:
    """An ASGI app around another: refuses what may not ask, and puts the headers on every answer."""

    def __init__(self, app: Any, policy: AccessPolicy, free: Iterable[Any] = ()) -> None:
        self.app, self.policy, self.free = app, policy, list(free)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refused = self.check(scope)
        if scope["type"] == "websocket":
            if refused is None:
                await self.app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008, "reason": ""})
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in ALWAYS.items():
                    headers[name] = value
            await send(message)

        if refused is None:
            await self.app(scope, receive, send_with_headers)
        else:
            await refuse(send_with_headers, *refused)

    def check(self, scope: Any) -> tuple[int, str] | None:
        """Status and reason; None where the request may go on."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.policy.hosts:
            return 421, "host"
        plain = scope["type"] == "http" and scope["method"] in READS
        origins = headers.getlist("origin")
        if (origins or not plain) and origins != [f"http://{hosts[0].lower()}"]:
            return 403, "origin"
        free = scope["type"] == "http" and any(route.matches(scope)[0] == Match.FULL for route in self.free)
        if not from_here(headers, visited=free and plain):
            return 403, "origin"
        return None if free or self.policy.is_known(headers) else (401, "token")


def from_here(headers: Headers, *, visited: bool) -> bool:
    """Whether a browser says that its own page, or its user, asked. A link on another page may lead to the front."""
    site = headers.get("sec-fetch-site", "none")
    if site in ("same-origin", "none"):
        return True
    return visited and (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")


async def refuse(send: Any, status: int, why: str) -> None:
    body = json.dumps({"error": SENTENCES[why], "code": f"access.{why}", "about": {}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
