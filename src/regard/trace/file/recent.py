"""What was read last from files, so that the next row of the same head is not read and checked again."""

import threading
from collections import OrderedDict, deque

from torch import Tensor

Key = tuple[int, int, int]  # which file, first and last chunk


class Recent:
    """Chunks of files, `room` bytes of them; the least lately used goes first. Any thread may ask.

    >>> import torch
    >>> recent = Recent(10)
    >>> for number in range(3):
    ...     recent.put((0, number, number + 1), torch.full((4,), number, dtype=torch.uint8))
    >>> recent.get((0, 0, 1)) is None, recent.get((0, 2, 3))
    (True, tensor([2, 2, 2, 2], dtype=torch.uint8))
    """

    def __init__(self, room: int) -> None:
        self.room, self.used = room, 0
        self.kept: OrderedDict[Key, Tensor] = OrderedDict()
        self.gone: deque[int] = deque()  # files that nobody reads any more
        self.lock = threading.Lock()

    def get(self, key: Key) -> Tensor | None:
        with self.lock:
            found = self.kept.get(key)
            if found is None:
                return None
            if found._version:  # somebody wrote to it: it is no longer what the file holds
                self.drop(key)
                return None
            self.kept.move_to_end(key)
            return found

    def put(self, key: Key, found: Tensor) -> None:
        with self.lock:
            self.clear()
            if found.nbytes <= self.room and key not in self.kept:
                self.kept[key] = found
                self.used += found.nbytes
            while self.used > self.room:
                self.drop(next(iter(self.kept)))

    def forget(self, file: int) -> None:
        """Let go of what came from one file. May be called at any moment, also while the lock is held."""
        self.gone.append(file)
        if self.lock.acquire(blocking=False):
            try:
                self.clear()
            finally:
                self.lock.release()

    def clear(self) -> None:
        while self.gone:
            file = self.gone.popleft()
            for key in [key for key in tuple(self.kept) if key[0] == file]:
                self.drop(key)

    def drop(self, key: Key) -> None:
        self.used -= self.kept.pop(key).nbytes
