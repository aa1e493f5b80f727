"""Files that are whole or not there, also where ids of processes repeat and where the system is Windows."""

import errno
import os
import threading
from pathlib import Path

import pytest

from regard import files
from regard.errors import ModelError
from regard.files import make_folder, part_of, put, remove, sweep, sync_folder
from regard.models import store


def test_writers_with_one_process_id_do_not_disturb_each_other(tmp_path):
    """As in two containers that share a disk: both are process 1."""
    path, wrong = tmp_path / "x.json", []
    wanted = [bytes([number]) * (1000 + 7 * number) for number in range(4)]

    def write(data: bytes) -> None:
        try:
            for _ in range(30):
                put(path, data)
        except OSError as error:
            wrong.append(error)

    writers = [threading.Thread(target=write, args=(data,)) for data in wanted]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert wrong == []
    assert path.read_bytes() in wanted
    assert list(tmp_path.iterdir()) == [path]


def test_the_name_of_a_file_is_put_on_the_disk_after_the_file(tmp_path, monkeypatch):
    synced, real = [], os.fsync

    def fsync(handle: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    put(tmp_path / "x.json", b"1")
    assert [Path(one).parent.name for one in synced[:-1]] == [tmp_path.name]
    assert Path(synced[-1]) == tmp_path
    synced.clear()
    make_folder(tmp_path / "a" / "b")
    assert [Path(one) for one in synced] == [tmp_path, tmp_path / "a"]
    assert (tmp_path / "a" / "b").is_dir()


def test_a_folder_that_cannot_be_opened_or_synced_is_no_error_but_a_full_disk_is(tmp_path, monkeypatch):
    """Windows opens no folder; some network disks sync none."""
    real = os.open

    def closed(path, flags, *more, **named):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", closed)
    put(tmp_path / "x.json", b"1")
    monkeypatch.undo()

    def failing(number: int):
        def fsync(handle: int) -> None:
            raise OSError(number, os.strerror(number))

        return fsync

    monkeypatch.setattr(os, "fsync", failing(errno.EINVAL))
    sync_folder(tmp_path)
    monkeypatch.setattr(os, "fsync", failing(errno.ENOSPC))
    with pytest.raises(OSError, match="No space left"):
        sync_folder(tmp_path)


def test_on_windows_a_file_that_somebody_reads_is_replaced_when_he_is_done(tmp_path, monkeypatch):
    path, real, tries = tmp_path / "x.json", os.replace, []
    put(path, b"old")

    def busy(old, new):
        tries.append(old)
        if len(tries) < 4:
            raise PermissionError(errno.EACCES, "Access is denied")
        real(old, new)

    monkeypatch.setattr(os, "replace", busy)
    monkeypatch.setattr(files, "on_windows", lambda: True)
    put(path, b"new")
    assert (path.read_bytes(), len(tries)) == (b"new", 4)
    monkeypatch.setattr(files, "on_windows", lambda: False)
    tries.clear()
    with pytest.raises(PermissionError):
        put(path, b"newer")
    assert len(tries) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["x.json"]


def test_what_goes_has_another_name_before_any_of_it_is_gone(tmp_path, monkeypatch):
    folder = tmp_path / "old"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_text(name)

    def killed(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "unlink", killed)
    with pytest.raises(KeyboardInterrupt):
        remove(folder)
    monkeypatch.undo()
    (left,) = tmp_path.iterdir()
    assert (left.name[:5], left.suffix) == (".old.", ".part")
    (tmp_path / "mine.part").touch()  # not ours: no hidden name
    sweep(tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["mine.part"]
    remove(folder)  # it is gone already
    assert part_of(folder).parent == tmp_path


@pytest.mark.parametrize("name", ["con", "NUL.json", "com1", "lpt9.txt", "C:x.json", "..\\x", "x.", "x "])
def test_names_that_are_no_files_on_windows_are_refused_everywhere(name, tmp_path):
    with pytest.raises(ModelError, match="give it a plain name of its own"):
        store.must_be_plain(tmp_path, name)
    store.must_be_plain(tmp_path, "conduct.json")
