"""Limits on connections: how many there are at once, and how long one may take to send its request or read its answer.

uvicorn has a time-out between requests only. Whoever sends half a header, or a body byte by byte, would hold a
descriptor for ever, and a few hundred of them would leave none for others.
"""

import asyncio
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER = 5.0  # seconds until a header is complete
BODY, RATE = 10.0, 16 << 10  # seconds for a body, and one more for each so many bytes of it
STALLED = 30.0  # seconds in which a client that is sent an answer must read some of it
CONNECTIONS = 256  # at once
RESERVED = 128  # descriptors that are left to files, sockets being accepted and libraries
FEWEST = 16
ACCEPTED = 16  # connections that are accepted before they are counted
FULL = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\nretry-after: 1\r\n\r\n"


def connection_limit() -> int:
    """How many connections may be open at once, such that descriptors are left for everything else."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS
    return max(FEWEST, min(CONNECTIONS, soft - RESERVED))


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, within the limits above.

    Where all connections are taken, the one that has waited longest for a request of its client makes room.
    """

    def connection_made(self, transport: Any) -> None:
        self.deadline: asyncio.TimerHandle | None = None
        self.stall: asyncio.TimerHandle | None = None
        self.since, self.size = self.loop.time(), 0  # of the request that is awaited or being received
        super().connection_made(transport)
        if len(self.connections) > connection_limit():
            waiting = [one for one in self.connections if isinstance(one, BoundedProtocol) and one.is_waiting()]
            oldest = min(waiting, key=lambda one: one.since, default=self)
            if oldest is self:
                transport.write(FULL)
                transport.close()
                return
            oldest.drop()
        self.watch()

    def is_waiting(self) -> bool:
        """Whether no request is being answered: none has come whole, or all that came are done."""
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        if self.deadline is None:  # the first bytes of the next request on a connection that is used again
            self.since, self.size = self.loop.time(), 0
        self.size += len(data)
        super().data_received(data)
        self.watch()

    def watch(self) -> None:
        """Set the deadline while a request is being received, take it away once it is complete."""
        receiving = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if not receiving or self.transport.is_closing():
            self.unset()
        elif self.deadline is None:
            self.deadline = self.loop.call_at(self.due(), self.overdue)

    def due(self) -> float:
        if self.conn.their_state is h11.IDLE:
            return self.since + HEADER
        return self.since + BODY + self.size / RATE

    def overdue(self) -> None:
        self.deadline = None
        if self.flow.read_paused:  # it is the app that does not read on
            self.since = self.loop.time()
        if self.loop.time() < self.due():  # meanwhile the header is complete, or more of the body came
            self.watch()
        else:
            self.drop()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.stall is None:
            self.stall = self.loop.call_later(STALLED, self.drop_stalled, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.stall is not None:
            self.stall.cancel()
            self.stall = None

    def drop_stalled(self, before: int) -> None:
        """Drop who has read nothing of an answer since there were so many bytes left of it."""
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.drop()
        else:
            self.stall = self.loop.call_later(STALLED, self.drop_stalled, left)

    def drop(self) -> None:
        self.unset()
        self.connections.discard(self)  # counted no more, although the socket closes a moment later
        self.transport.abort()

    def unset(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.unset()
        if self.stall is not None:
            self.stall.cancel()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self.unset()  # from here on its own protocol sends pings
        super().handle_websocket_upgrade(event)


class Shortage:
    """Says in one sentence that descriptors ran out; asyncio tries again each second, and would print a traceback.

    Everything else goes to the handler that is there anyway.
    """

    PAUSE = 10.0  # seconds between two sentences

    def __init__(self) -> None:
        self.last_report: float | None = None

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "socket.accept() out of system resource" not in context.get("message", ""):
            loop.default_exception_handler(context)
        elif self.last_report is None or loop.time() - self.last_report > self.PAUSE:
            self.last_report = loop.time()
            why = getattr(context.get("exception"), "strerror", None) or "out of resources"
            sys.stderr.write(f"regard: no connection can be accepted now ({why.lower()}); it is tried again\n")
