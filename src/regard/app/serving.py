"""A port of this machine, and the server on it."""

import gc
import ipaddress
import os
import secrets
import socket
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import uvicorn

from regard.app.app import make_app
from regard.app.protocol.limits import RUN
from regard.app.protocol.messages import RunRequest
from regard.app.security.connections import ACCEPTED, BoundedProtocol
from regard.app.security.guard import LOOPBACK, AccessPolicy
from regard.app.studio.studio import Studio
from regard.errors import ConfigError

PORT, TRIED = 8765, 100
QUEUE = 128  # connections that wait to be accepted
GRACE = 3  # seconds that open answers get when the server ends


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def names_of(host: str) -> tuple[str, ...]:
    """The names under which a server at this address is asked for."""
    if is_loopback(host):
        own = host if ":" not in host else f"[{host.strip('[]')}]"
        return tuple(dict.fromkeys([*LOOPBACK, own]))
    names = [*LOOPBACK, host.lower()]
    if host in ("0.0.0.0", "::"):  # noqa: S104  every address of this machine
        name = socket.gethostname().lower()
        names += [name, *addresses(name)]
    return tuple(dict.fromkeys(f"[{one}]" if one.count(":") > 1 and one[0] != "[" else one for one in names))


def addresses(name: str) -> list[str]:
    try:
        return [str(info[4][0]) for info in socket.getaddrinfo(name, None)]
    except OSError:
        return []


def listen(host: str, port: int | None) -> socket.socket:
    """A socket on this port; without one, on the first from 8765 on that is free."""
    tried = range(PORT, PORT + TRIED) if port is None else [port]
    plain = "127.0.0.1" if host == "localhost" else host.strip("[]")
    family = socket.AF_INET6 if ":" in plain else socket.AF_INET
    try:
        if not plain:
            raise ValueError("empty")
        socket.getaddrinfo(plain, None, family)
    except (OSError, ValueError) as error:  # also what a name is that no machine can have
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"{host!r} is no address at which this machine can listen ({why.lower()}); give another --host"
        ) from error
    for one in tried:
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, else answers wait 40 ms
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((plain, one))
            listener.listen(QUEUE)
            return listener
        except (OSError, OverflowError) as error:
            listener.close()
            if port is not None:
                why = getattr(error, "strerror", None) or str(error)
                raise ConfigError(
                    f"port {port} of {host} cannot be used ({why.lower()}); leave --port out for one that is free"
                ) from error
    raise ConfigError(f"no port from {PORT} to {PORT + TRIED - 1} is free; name one with --port")


def serve(
    studio: Studio,
    at: socket.socket,
    *,
    host: str,
    announce: Callable[[str], None],
    first: RunRequest | None,
    show: bool,
    view: str = "",
) -> None:
    """Serve until Ctrl-C. `announce` hears the address, with its token and `view`, once the server answers."""
    port = at.getsockname()[1]
    policy = AccessPolicy(secrets.token_urlsafe(16), port, names_of(host))
    config = uvicorn.Config(
        make_app(studio, policy, first=first),
        log_level="warning",
        access_log=False,  # its lines would hold the token
        http=BoundedProtocol,
        backlog=ACCEPTED,
        ws_max_size=RUN,
        timeout_graceful_shutdown=GRACE,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
    )
    server = uvicorn.Server(config)
    shown = host if host not in ("0.0.0.0", "::", "localhost") else "127.0.0.1"  # noqa: S104
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/?token={policy.token}"
    address += f"#/view={view}" if view else ""
    threading.Thread(target=wait_and_announce, args=(server, at, address, announce, show), daemon=True).start()
    gc.freeze()  # what was loaded stays: to look through all of it for garbage holds everybody up for a quarter second
    try:
        server.run(sockets=[at])
    except KeyboardInterrupt:
        pass  # uvicorn has ended everything before it hands Ctrl-C on
    finally:
        studio.close()
        gc.unfreeze()


def wait_and_announce(
    server: Any, at: socket.socket, address: str, announce: Callable[[str], None], show: bool
) -> None:
    """Wait until the server answers, then say where it is."""
    while not server.started:
        if server.should_exit:
            return
        time.sleep(0.02)
    at.listen(QUEUE)  # the backlog of the server says how many are accepted at once, and was this one's too
    announce(address)
    if show and has_browser():
        open_browser(address)


def has_browser() -> bool:
    """Whether a browser with a window can be expected; one inside the terminal would only be in the way."""
    if sys.platform in ("darwin", "win32") or os.environ.get("BROWSER"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_browser(address: str) -> None:
    """Open the address by way of a file that only we can read: who lists the processes sees no token."""
    folder = Path(tempfile.mkdtemp(prefix="regard-"))
    file = folder / "open.html"
    file.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(address)}">', encoding="utf-8")
    try:
        webbrowser.open(file.as_uri())
        time.sleep(10)  # the browser reads it soon
    except webbrowser.Error:
        pass
    finally:
        file.unlink(missing_ok=True)
        folder.rmdir()
