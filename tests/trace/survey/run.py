"""The survey itself: each model in a process of its own with a time limit, each row a line of JSON.

`python -m tests.trace.survey.run transformers [folder …]` computes the rows that are not in the file yet;
with folders it computes these anew.
"""

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
SECONDS = 40
MISSING = "(needs a library)"


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
    until = time.monotonic() + seconds
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
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            else f"ended by status {status}"
        }
    return json.loads(b"".join(parts))


def quiet() -> None:
    """No warnings, one thread."""
    import logging
    import warnings

    import torch

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)


def list_targets(folder: str) -> list[str]:
    """The classes of one folder that are looked at; none where it needs what is not there."""
    from tests.trace.survey.folders import mentions_attention, targets

    try:
        return targets(folder) if mentions_attention(folder) else []
    except ImportError:
        return [MISSING]


def transformers_row(name: str) -> Row:
    """One class: built small, fed, judged; larger where it cannot be small."""
    quiet()
    if name.endswith(MISSING):
        return {"built": False, "why": "its module needs a library that is not installed"}
    from tests.trace.survey.folders import build, classes_of, sharpen
    from tests.trace.survey.inputs import feed
    from tests.trace.survey.judge import judge, run
    from tests.trace.survey.overrides import FEEDS, SETTINGS

    folder, wanted = name.split("/")
    one = next(one for one in classes_of(folder) if one.__name__ == wanted)
    settings = {**SETTINGS.get(one.config_class.__name__, {})}
    said: list[str] = []
    for level in (0, 1):
        try:
            model = build(one, level, settings)
        except Exception as error:
            said.append(f"{level}: {type(error).__name__}: {str(error)[:200]}")
            continue
        sharpen(model)

        def works(inputs: Row, model: Any = model) -> None:
            if not run(model, inputs):
                raise ValueError("no output")

        inputs, more = feed(model, model.config, works, FEEDS.get(wanted))
        said += [f"{level}: {sentence}" for sentence in more[:8]]
        if not inputs:
            continue
        for size in (1.0, 0.5):
            if all(bool(x.isfinite().all()) for x in run(model, inputs) if x.is_floating_point()):
                break
            sharpen(model, size)
        shapes = {key: list(value.shape) for key, value in inputs.items() if hasattr(value, "shape")}
        return {
            "built": True,
            "class": wanted,
            "level": level,
            "inputs": shapes,
            "said": said[:6],
            **judge(model, inputs),
        }
    return {"built": False, "why": said[-1] if said else "", "said": said}


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
    import torch  # noqa: F401

    import regard.trace.watch  # noqa: F401
    from tests.trace.survey.folders import folders

    file = Path(os.environ.get("REGARD_SURVEY", "/tmp/survey/transformers.jsonl"))
    file.parent.mkdir(exist_ok=True)
    chosen = sys.argv[2:]
    classes = {folder: list_targets(folder) for folder in folders()}
    rest = [f"{folder}/{one}" for folder, more in classes.items() for one in more[1:]]
    names = [*(f"{folder}/{more[0]}" for folder, more in classes.items() if more), *rest]  # the widest of each first
    wanted = [name for name in names if not chosen or name in chosen or name.split("/")[0] in chosen]
    survey(wanted, transformers_row, file, again=bool(chosen))
