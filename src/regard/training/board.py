"""The history of a run as TensorBoard shows it, in RUN/tensorboard."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.errors import ConfigError
from regard.extras import importing

FOLDER = "tensorboard"
DRAWN = {"log": ("training", ("loss", "nll", "lr", "norm")), "validation": ("validation", None)}  # None: every score


class Board:
    """Told what happens, it writes what can be drawn. A run that goes on hides the points it will make again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writer: Any = None

    def __call__(self, kind: str, step: int, facts: dict[str, Any]) -> None:
        if kind == "begin":
            again = [path.name.split(".")[3] for path in self.folder.glob("events.out.tfevents.*")]
            if again:
                wait_for_next_second(max(again))
            self.writer = writer_class()(str(self.folder), purge_step=step if again else None)
        if kind not in DRAWN:
            return
        group, names = DRAWN[kind]
        drawn = facts["scores"] if names is None else {name: facts[name] for name in names}
        for name, value in drawn.items():
            self.writer.add_scalar(f"{group}/{name}", value, step)
        self.writer.flush()  # before the checkpoint that follows: what is not written again is on the disk

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


def wait_for_next_second(last: str) -> None:
    """TensorBoard reads the files of a run in the order of their names, which begin with the second of their making."""
    while last.isdecimal() and int(last) == int(time.time()):
        time.sleep(0.02)


@contextmanager
def board(folder: Path, *, wanted: bool) -> Iterator[Board | None]:
    """A board in the folder of a run, where one is wanted."""
    if not wanted:
        yield None
        return
    made = Board(folder / FOLDER)
    try:
        yield made
    finally:
        made.close()


def writer_class() -> Any:
    """What writes TensorBoard's files, or a `ConfigError` that says how to get it."""
    missing = ConfigError("tensorboard is not installed; pip install 'regard[train]', or leave out --tensorboard")
    with importing("tensorboard", missing=missing):
        from torch.utils.tensorboard import SummaryWriter
    return SummaryWriter
