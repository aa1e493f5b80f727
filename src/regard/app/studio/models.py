"""What can run: the models that come with the package, and folders that were named when the server was started."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.app.protocol.messages import ModelInfo
from regard.app.protocol.refusal import Refusal, sentence_of, short
from regard.app.runners.runner import Runner
from regard.errors import ModelError, RegardError, is_failure
from regard.models import embedded, store
from regard.models.open.locate import ModelLocation, locate

ONCE = "Once upon a time"  # what most can go on with
BEGINNING, MASKED = "A man", "A man is [MASK] in front of a white wall."  # for small models of everyday English
ASKED = "Who sat on the mat?\nThe cat sat on the mat, and the dog slept by the door."  # a question, then a passage
OPINION = "A gripping, funny film with a rather weak end."  # for classifiers, most of which tell moods apart
MAX_OPEN = 2  # models that stay open
EXAMPLES = {
    "translate": "The cat sat on the mat.",
    "summarise": (
        "The storm formed to the west of Africa. Hurricane Isidora reached its peak on September 12 and struck the "
        "coast of Florida the next morning."
    ),
    "generate": "the cat sees A B C . the",
    "read": "The cat sat on the mat.",
    "see": "",
}


@dataclass(frozen=True)
class KnownModel:
    """A model that can be opened: what a page is told of it, where it lies, and what makes it run."""

    info: ModelInfo
    folder: Path
    opener: Callable[[str, Path], Runner]


class Models:
    """By name; a name never is a path that somebody sent."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self.known: dict[str, KnownModel] = {}
        self.open_ones: OrderedDict[str, Runner] = OrderedDict()
        self.lock = threading.Lock()
        for name in embedded.names():
            self.add(locate(name))
        for folder in folders:
            self.add(locate(folder))

    def add(self, place: ModelLocation) -> str:
        """Make a model known; gives the name that it goes by."""
        wanted = place.name
        free, number = wanted, 2
        while free in self.known:
            free, number = f"{wanted} ({number})", number + 1
        self.known[free] = describe(free, place)
        return free

    def list_models(self) -> list[ModelInfo]:
        """What a page is told of each."""
        return [model.info for model in self.known.values()]

    def find(self, name: str) -> KnownModel:
        if name not in self.known:
            known = ", ".join(self.known)
            raise Refusal(f"there is no model {name[:80]!r} here; there are: {known}", 404).with_code(
                "model.none", model=name[:80], models=known
            )
        return self.known[name]

    def open(self, name: str, tell: Callable[[str], None] = lambda text: None) -> Runner:
        """The model, opened once and kept while others are not asked for. Whoever calls this waits."""
        known = self.find(name)
        with self.lock:
            if name in self.open_ones:
                self.open_ones.move_to_end(name)
                return self.open_ones[name]
            tell(f"loading {name}")
            while len(self.open_ones) >= MAX_OPEN:  # before, so that there never are more in memory
                self.open_ones.popitem(last=False)
            try:
                self.open_ones[name] = known.opener(name, known.folder)
            except BaseException as error:
                if not is_failure(error):
                    raise
                failed = ModelError(sentence_of(error, f"opening {name}"))
                if isinstance(error, RegardError):
                    raise (failed.with_code(error.code, **error.about) if error.code else failed) from error
                raise failed.with_code("model.open", model=name, why=short(error)) from error
            return self.open_ones[name]


def describe(name: str, place: ModelLocation) -> KnownModel:
    """What a model is, without loading it."""
    if place.kind is None:
        return describe_foreign(name, place)
    kind, facts = place.kind, store.describe(place.path)
    info = ModelInfo.model_validate({
        "name": name,
        "about": str(facts.get("about") or facts.get("name", "")),
        "reads": kind.reads,
        "writes": kind.writes,
        "tasks": list(kind.tasks),
        "example": example(kind.task, facts),
    })  # fmt: skip
    return KnownModel(info, place.path, lambda name, folder: kind.open(name, folder))


def describe_foreign(name: str, place: ModelLocation) -> KnownModel:
    """The same of a model that others made: from its config.json, or from the header of its GGUF file."""
    from regard.app.runners.foreign import describe_gguf, open_foreign
    from regard.app.runners.library import PROFILES, architecture_of, read_config, task_of

    if place.layout == "gguf":
        about, opener = describe_gguf(place.path)
        facts = {"name": name, "about": about, "example": ONCE, **PROFILES["generate"]}
        return KnownModel(ModelInfo.model_validate(facts), place.path, opener)
    config = read_config(place.path)
    task = task_of(config)
    text = ONCE if task == "generate" else EXAMPLES[task]
    facts = {"name": name, "about": architecture_of(config), "example": text, **PROFILES[task]}
    return KnownModel(ModelInfo.model_validate(facts), place.path, open_foreign)


def example(task: str, facts: dict[str, Any]) -> str:
    """A text that shows the model well, in words that it knows."""
    if task == "see":
        return EXAMPLES[task]
    words = facts.get("vocabulary")
    if not isinstance(words, list):
        config = facts.get("config")
        if isinstance(config, dict) and config.get("head") == "masked_words":
            return MASKED
        if facts.get("task") == "answer":
            return ASKED
        if facts.get("classes"):
            return OPINION
        return BEGINNING if task == "generate" else EXAMPLES[task]
    if set(EXAMPLES["generate"].split()) <= set(words):
        return EXAMPLES["generate"]
    plain = [str(word) for word in words if not (str(word).startswith("<") and str(word).endswith(">"))]
    return " ".join(plain[2:9:2] + plain[:3])
