"""One process per run: a lock that goes with the process, and a file that says whose the run is.

On some network disks a lock is given to everyone. So the file is read again before anything gets its name, and who
finds another name in it stops.
"""

import json
import os
import platform
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from regard.errors import RunError
from regard.files import put

LOCK, OWNER = ".lock", ".owner"


class Claim:
    """That this process is the one that trains in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.token = folder, secrets.token_hex(16)
        told = {"process": os.getpid(), "host": platform.node(), "token": self.token}
        put(folder / OWNER, (json.dumps(told) + "\n").encode())

    def check(self) -> None:
        """Refuse to write where somebody else has begun to."""
        told = owner_of(self.folder)
        if told and told.get("token") != self.token:
            raise RunError(
                f"another process ({name_owner(told)}) has begun to train in {self.folder}, where files cannot be "
                "locked; this one stops, and what it saved is there"
            )

    def drop(self) -> None:
        with suppress(OSError):
            if owner_of(self.folder).get("token") == self.token:
                (self.folder / OWNER).unlink()

    def give_up(self) -> None:
        """Leave no sign of it."""
        self.drop()
        with suppress(OSError):
            (self.folder / LOCK).unlink(missing_ok=True)


@contextmanager
def hold_lock(folder: Path) -> Iterator[Claim]:
    """Nobody else trains here meanwhile."""
    lock, new = FileLock(folder / LOCK, timeout=0), not (folder / LOCK).exists()
    try:
        with suppress(NotImplementedError):  # no locks on this disk: the file that says whose it is must do
            lock.acquire()
        claim = Claim(folder)
    except Timeout as error:
        raise RunError(
            f"another process ({name_owner(owner_of(folder))}) is training in {folder}; "
            "wait for it, or name another folder"
        ) from error
    except OSError as error:
        if new and lock.is_locked:
            for name in (OWNER, LOCK):
                (folder / name).unlink(missing_ok=True)
        lock.release()
        raise RunError(f"{folder} cannot be written to ({error.strerror}); train in another folder") from error
    try:
        yield claim
    finally:
        claim.drop()
        lock.release()


def is_held(folder: Path) -> bool:
    """Whether a process trains in a folder now. Whoever asks takes nothing away from one that begins.

    The owner is looked at first, so that the lock is only tried where somebody says to hold it: a process of this
    machine that is gone holds nothing. Where locks cannot be tried, as in a folder that may only be read, what the
    owner says must do.
    """
    told = owner_of(folder)
    if not told or (told.get("host") == platform.node() and not is_alive(told.get("process"))):
        return False
    if not (folder / LOCK).exists():  # nothing is made by asking
        return True
    try:
        with FileLock(folder / LOCK, timeout=0):
            return False
    except (Timeout, OSError, NotImplementedError):
        return True


def is_alive(process: object) -> bool:
    """Whether a process of this machine is there; True where the system cannot say."""
    if os.name == "nt" or not isinstance(process, int) or process <= 0:
        return True
    try:
        os.kill(process, 0)  # no signal at all: only whether it could be sent
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it is there, and somebody else's; or no such number can be
        return True
    return True


def owner_of(folder: Path) -> dict[str, object]:
    """What the owner of a run says of itself; nothing where it says nothing."""
    try:
        told = json.loads((folder / OWNER).read_bytes())
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def name_owner(told: dict[str, object]) -> str:
    """A process for a sentence: by its id, and its machine where that is another one."""
    there = told.get("host", platform.node())
    return f"id {told.get('process', 'unknown')}" + ("" if there == platform.node() else f" on {there}")
