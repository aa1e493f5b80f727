"""Files that are there whole or not at all, on the disk when a call comes back, and named like nobody else's."""

import errno
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PART = ".part"  # how the name of everything ends that is being written or removed
UNSUPPORTED = {errno.EINVAL, errno.EBADF, errno.ENOSYS, errno.ENOTSUP, errno.EISDIR}  # what cannot sync a folder says
TRIES = 50  # on Windows, a file that somebody reads cannot be replaced: so often is it tried again


def part_of(path: Path) -> Path:
    """A hidden name beside `path` that no other process has: ids of processes repeat between containers.

    >>> one, two = part_of(Path("a/b.json")), part_of(Path("a/b.json"))
    >>> one.parent == two.parent == Path("a"), one.name[:8], one.suffix, one == two
    (True, '.b.json.', '.part', False)
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}{PART}")


def write_synced(path: Path, data: bytes) -> None:
    """Writes a new file and waits until it is on the disk."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def put(path: Path, data: bytes) -> None:
    """Writes the file whole or not at all."""
    beside = part_of(path)
    try:
        write_synced(beside, data)
        replace(beside, path)
        sync_folder(path.parent)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def put_stream(path: Path) -> Iterator[BinaryIO]:
    """A file to write into, which may also be moved about in; it gets its name when the block ends without an error."""
    beside = part_of(path)
    try:
        with beside.open("xb+") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        replace(beside, path)
        sync_folder(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def on_windows() -> bool:
    return os.name == "nt"


def replace(old: Path, new: Path) -> None:
    """`os.replace`; on Windows it waits a little for those who read there."""
    for left in reversed(range(TRIES if on_windows() else 1)):
        try:
            os.replace(old, new)
            return
        except PermissionError:
            if not left:
                raise
            time.sleep(0.02)


def sync_folder(folder: Path) -> None:
    """The names in a folder, on the disk, where the system can: Windows opens no folder, some disks sync none."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """The folder and those above it that are missing, their names on the disk; one that is there is fine."""
    if folder.is_dir():
        return
    try:
        folder.mkdir(exist_ok=True)
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def remove(path: Path) -> None:
    """A file or a folder, under a name that says it is going before any of it goes; what cannot go stays as litter."""
    going = part_of(path)
    try:
        replace(path, going)
    except FileNotFoundError:
        return
    scrap(going)


def scrap(path: Path) -> None:
    """A file or a folder; no part of it is needed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        try:
            path.unlink(missing_ok=True)
        except OSError:
            return


def sweep(folder: Path, name: str = ".*") -> None:
    """Take away what was being written or removed in a folder when a process ended."""
    if folder.is_dir():
        for path in list(folder.glob(f"{name}{PART}")):
            scrap(path)
