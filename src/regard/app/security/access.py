"""Who may ask for what: every route says so itself, and a route that does not is an error when the app is made."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from regard.errors import RegardError

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
MARK = "regard_access"
OPEN, TOKEN = "everyone", "who has the token"


def open_to_all(endpoint: Endpoint) -> Endpoint:
    """Whoever reaches the server may ask: what it gives is the same for all, and says nothing of anybody."""
    setattr(endpoint, MARK, OPEN)
    return endpoint


def with_token(endpoint: Endpoint) -> Endpoint:
    """Only who has the token may ask."""
    setattr(endpoint, MARK, TOKEN)
    return endpoint


def decision_of(route: Any) -> str | None:
    """What a route says about who may ask, None where it says nothing."""
    decision = getattr(getattr(route, "endpoint", None), MARK, None)
    return decision if decision in (OPEN, TOKEN) else None


def must_be_decided(routes: Iterable[Any]) -> None:
    """Raise where a route, also one inside a mounted app or a WebSocket, carries no decision."""
    undecided = [place for place, route in walk_routes(routes) if decision_of(route) is None]
    if undecided:
        raise RegardError(
            f"the route {undecided[0]!r} says nothing about who may ask; mark its function with_token or open_to_all"
        )


def walk_routes(routes: Iterable[Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Every route that answers, with its whole path."""
    for route in routes:
        path = f"{before}{getattr(route, 'path', '') or '/'}"
        inner = getattr(route, "routes", None)
        if inner:
            yield from walk_routes(inner, path.rstrip("/"))
        else:  # an app that is mounted whole has no routes that could be read: it is undecided
            yield path, route


def open_routes(routes: Iterable[Any]) -> list[Any]:
    """The routes that are open to all; they stand at the top, where their path is their whole path."""
    return [route for route in routes if decision_of(route) == OPEN]
