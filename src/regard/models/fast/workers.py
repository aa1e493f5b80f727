"""The threads that run a kernel beside the one that asked."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

MOST = max(1, (os.cpu_count() or 1) - 1)


class Workers:
    """Threads that wait for work, begun when first used. Any number of callers may share them.

    Kernels share their work so that one thread alone finishes it (share.py). A worker that has not begun by then,
    because others keep it busy or a fork left it behind, is not waited for.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.pool: ThreadPoolExecutor | None = None

    def run(self, kernel: Callable[..., None], arguments: tuple[object, ...], counter: int, threads: int) -> None:
        """Calls `kernel(*arguments, thread, threads, counter)` on each of so many threads, this one among them."""
        helpers = min(threads, MOST + 1) - 1
        pool = self._open() if helpers else None
        jobs = [pool.submit(kernel, *arguments, i + 1, threads, counter) for i in range(helpers)] if pool else []
        try:
            kernel(*arguments, 0, threads, counter)
        finally:
            for job in jobs:
                if not job.cancel():
                    job.result()

    def _open(self) -> ThreadPoolExecutor:
        with self.lock:
            if self.pool is None:
                self.pool = ThreadPoolExecutor(MOST, thread_name_prefix="regard-fast")
            return self.pool


WORKERS = Workers()
