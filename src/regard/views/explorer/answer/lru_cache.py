"""What was computed once, kept while there is room: the least lately used goes first."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

ROOM = 256 << 20  # bytes
SMALL = 4096  # what counts for a value that does not say how large it is

T = TypeVar("T")


class LruCache:
    """Values by key, `room` bytes of them. Two who ask for one key compute it once; nobody waits for another key.

    >>> cache = LruCache()
    >>> cache.get("answer", lambda: 42), cache.get("answer", lambda: 43)
    (42, 42)
    """

    def __init__(self, room: int = ROOM) -> None:
        self.room, self.used = room, 0
        self.kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self.gates: dict[Hashable, Lock] = {}
        self.lock = Lock()

    def has(self, key: Hashable) -> bool:
        with self.lock:
            return key in self.kept

    def peek(self, key: Hashable) -> Any:
        """The value of a key; None where it is not there. Never waits for one that is being made."""
        with self.lock:
            return self.touch(key) if key in self.kept else None

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made if it is not there."""
        with self.lock:
            if key in self.kept:
                return self.touch(key)
            gate = self.gates.setdefault(key, Lock())
        with gate:
            with self.lock:
                if key in self.kept:
                    return self.touch(key)
            try:
                value = make()
                with self.lock:
                    self.put(key, value)
                return value
            finally:
                with self.lock:
                    self.gates.pop(key, None)

    def touch(self, key: Hashable) -> Any:
        self.kept.move_to_end(key)
        return self.kept[key][0]

    def put(self, key: Hashable, value: Any) -> None:
        size = len(value) if isinstance(value, bytes) else int(getattr(value, "nbytes", SMALL))
        self.used -= self.kept.pop(key, (None, 0))[1]
        self.kept[key] = (value, size)
        self.used += size
        while self.used > self.room and len(self.kept) > 1:
            self.used -= self.kept.popitem(last=False)[1][1]
