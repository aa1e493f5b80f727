"""What can run: the models that come with the package, and folders that were named when the server was started."""

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.app.protocol.refusal import Refusal, sentence_of, short
from regard.app.runners.runner import Opened
from regard.errors import ModelError, RegardError, is_failure
from regard.models import embedded, store
from regard.training.run import MANIFEST as RUN
from regard.training.run import MODEL

KEPT = 2  # models that stay open
EXAMPLES = {
    "translate": "The cat sat on the mat.",
    "generate": "the cat sees A B C . the",
    "read": "The cat sat on the mat.",
    "see": "",
}


@dataclass(frozen=True)
class Known:
    """A model that can be opened."""

    name: str
    folder: Path
    about: str
    task: str
    ours: bool
    example: str

    def told(self) -> dict[str, str]:
        """As server.ts has it."""
        return {"name": self.name, "about": self.about, "task": self.task, "example": self.example}


class Models:
    """By name; a name never is a path that somebody sent."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self.known: dict[str, Known] = {}
        self.open_ones: OrderedDict[str, Opened] = OrderedDict()
        self.lock = threading.Lock()
        for name in embedded.names():
            self.add(embedded.folder(name), name)
        for folder in folders:
            self.add(folder)

    def add(self, folder: Path, name: str | None = None) -> str:
        """Make a folder known; gives the name that it goes by."""
        wanted = name or folder.resolve().name
        free, number = wanted, 2
        while free in self.known:
            free, number = f"{wanted} ({number})", number + 1
        self.known[free] = describe(free, folder)
        return free

    def listed(self) -> list[dict[str, str]]:
        return [one.told() for one in self.known.values()]

    def find(self, name: str) -> Known:
        if name not in self.known:
            known = ", ".join(self.known)
            raise Refusal(f"there is no model {name[:80]!r} here; there are: {known}", 404).coded(
                "model.none", model=name[:80], models=known
            )
        return self.known[name]

    def open(self, name: str, tell: Callable[[str], None] = lambda text: None) -> Opened:
        """The model, opened once and kept while others are not asked for. Whoever calls this waits."""
        known = self.find(name)
        with self.lock:
            if name in self.open_ones:
                self.open_ones.move_to_end(name)
                return self.open_ones[name]
            tell(f"loading {name}")
            while len(self.open_ones) >= KEPT:  # before, so that there never are more in memory
                self.open_ones.popitem(last=False)
            try:
                self.open_ones[name] = opened(known)
            except BaseException as error:
                if not is_failure(error):
                    raise
                failed = ModelError(sentence_of(error, f"opening {name}"))
                if isinstance(error, RegardError):
                    raise (failed.coded(error.code, **error.about) if error.code else failed) from error
                raise failed.coded("model.open", model=name, why=short(error)) from error
            return self.open_ones[name]


def is_model(folder: Path) -> bool:
    """Whether a folder looks like a model, ours or of the transformers library."""
    return os.path.isfile(folder / store.MANIFEST) or os.path.isfile(folder / "config.json")


def model_of(folder: Path) -> Path | None:
    """The folder of the model that a path names: itself, or the one inside a run of training."""
    if is_model(folder):
        return folder
    inside = folder / MODEL
    return inside if os.path.isfile(folder / RUN) and os.path.isfile(inside / store.MANIFEST) else None


def describe(name: str, folder: Path) -> Known:
    """What a model is, without loading it."""
    if (folder / store.MANIFEST).is_file():
        facts = store.describe(folder)
        task = store.kind_in(folder, facts).task
        return Known(name, folder, str(facts.get("about") or facts.get("name", "")), task, True, example(task, facts))
    from regard.app.runners.library import task_of

    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder} has no config.json that can be read; give the folder of a model") from error
    if not isinstance(config, dict):
        raise ModelError(f"{folder / 'config.json'} holds no object; save the model again")
    task = task_of(config)
    named = config.get("architectures") or [config.get("model_type", "")]
    about = str(named[0] if isinstance(named, list) and named else named)
    return Known(name, folder, about, task, False, "Once upon a time" if task == "generate" else EXAMPLES[task])


def example(task: str, facts: dict[str, Any]) -> str:
    """A text that shows the model well, in words that it knows."""
    words = facts.get("vocabulary")
    if not isinstance(words, list):
        return EXAMPLES[task]
    if set(EXAMPLES["generate"].split()) <= set(words):
        return EXAMPLES["generate"]
    plain = [str(word) for word in words if not (str(word).startswith("<") and str(word).endswith(">"))]
    return " ".join(plain[2:9:2] + plain[:3])


def opened(known: Known) -> Opened:
    """The model, ready to run."""
    from regard.models.folder import open_model

    if known.ours:
        runner: Opened = store.kind_in(known.folder, store.describe(known.folder)).open(known.name, known.folder)
        return runner
    model, tokenizer = open_model(known.folder)
    if known.task == "see":
        from regard.app.runners.pictures import Seeing

        return Seeing(known.name, model, known.folder)
    from regard.app.runners.library import Library

    return Library(known.name, model, tokenizer, known.task)
