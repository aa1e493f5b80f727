"""The survey itself: each model in a process of its own with a time limit, each row a line of JSON.

`python -m tests.trace.survey.run LIBRARY [name …]` computes those rows of transformers, timm, x_transformers or
vit_pytorch that are not in the file yet; with names it computes these anew.
"""

import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.trace.survey.library import Row, compute_row

SECONDS = 60  # of a core: what else the machine does must not decide what a row says
PATIENCE = 20  # times as long by the clock


def in_a_child(work: Callable[[], Row], seconds: float = SECONDS) -> Row:
    """What `work` gives, computed in a fork that may crash or hang without harm."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
            try:
                row = work()
            except BaseException as error:
                row = {"crash": f"{type(error).__name__}: {str(error)[:300]}", "trace": traceback.format_exc()[-2500:]}
            with os.fdopen(writer, "w") as file:
                json.dump(row, file)
        finally:
            os._exit(0)
    os.close(writer)
    parts: list[bytes] = []
    until = time.monotonic() + PATIENCE * seconds
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            break
        part = os.read(reader, 1 << 16)
        if not part:
            break
        parts.append(part)
    os.close(reader)
    _, status = os.waitpid(child, 0)
    if not parts:
        return {
            "crash": f"no answer in {seconds} s"
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGXCPU)
            else f"ended by status {status}"
        }
    return json.loads(b"".join(parts))


def survey(rows: list[str], compute: Callable[[str], Row], file: Path, again: bool = False) -> None:
    """Compute what is not in the file, and write it there line by line."""
    known = read(file)
    for name in rows:
        if name in known and not again:
            continue
        start = time.monotonic()
        row = in_a_child(lambda name=name: compute(name))
        row = {"name": name, **row, "seconds": round(time.monotonic() - start, 1)}
        with file.open("a") as out:
            out.write(json.dumps(row) + "\n")


def read(file: Path) -> dict[str, Row]:
    """The rows of a file; later lines replace earlier ones."""
    if not file.is_file():
        return {}
    return {row["name"]: row for row in map(json.loads, file.read_text().splitlines())}


if __name__ == "__main__":
    import regard.trace.watch  # noqa: F401
    from tests.trace.survey.libraries import LIBRARIES

    library = LIBRARIES[sys.argv[1]]
    library.load()
    file = Path(os.environ.get("REGARD_SURVEY", f"/tmp/survey/{sys.argv[1]}.jsonl"))
    file.parent.mkdir(exist_ok=True)
    chosen = sys.argv[2:]
    wanted = [name for name in library.names() if not chosen or name in chosen or name.split("/")[0] in chosen]
    survey(wanted, lambda name: compute_row(library, name), file, again=bool(chosen))
