"""What a user says about the axes of attention where the run does not show it: how many heads, and which come first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.attention.axes.layout import Factor, Layout
from regard.errors import WatchError

LAYOUTS = ("batch-major", "head-major")


@dataclass(frozen=True)
class AxesHint:
    """`AxesHint` says how many heads a layer has and how they share an axis with the batch; None is not said."""

    heads: int | None = None
    layout: str | None = None

    def __bool__(self) -> bool:
        return self.heads is not None or self.layout is not None

    def __str__(self) -> str:
        told = {"heads": self.heads, "layout": self.layout}
        return ", ".join(f"{name}={value!r}" for name, value in told.items() if value is not None)

    def allows(self, reading: Layout) -> bool:
        """Whether a reading of the axes can be what was said; a layout is one of an axis that holds both."""
        if self.heads is not None and reading.heads != self.heads:
            return False
        return all(self.orders(axis) for axis in reading.axes)

    def orders(self, factors: tuple[Factor, ...]) -> bool:
        """Whether batch and heads come in the order that was said, where both are there."""
        roles = [role for role, size in factors if size > 1]
        if self.layout is None or not {"b", "h"} <= set(roles):
            return True
        return (roles.index("h") < roles.index("b")) == (self.layout == "head-major")


@dataclass(frozen=True)
class AxesHints:
    """The hints for the layers of one model, by parts of their paths; "" is for all."""

    heads: Mapping[str, int] = field(default_factory=dict)
    layout: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.heads or self.layout)

    def at(self, path: str) -> AxesHint:
        """What was said of the layer at a path."""
        return AxesHint(said_of(path, self.heads), said_of(path, self.layout))


def said_of(path: str, told: Mapping[str, Any]) -> Any:
    """What the longest part of this path says."""
    fitting = [part for part in told if not part or f".{part}." in f".{path}."]
    return told[max(fitting, key=len)] if fitting else None


def make_hints(heads: Any, layout: Any, paths: Iterable[str]) -> AxesHints:
    """Hints as they may be given: one value for all layers, or one for each part of a path."""
    if heads is None and layout is None:
        return AxesHints()
    paths = list(paths)
    heads, layout = (by_path(given, what, paths) for given, what in ((heads, "heads"), (layout, "layout")))
    for count in heads.values():
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise WatchError(f"heads={count!r} is no number of heads; give a whole number from 1 on")
    for name in layout.values():
        if name not in LAYOUTS:
            raise WatchError(f"layout={name!r} is not known; give {' or '.join(map(repr, LAYOUTS))}")
    return AxesHints(heads, layout)


def by_path(given: Any, what: str, paths: list[str]) -> dict[str, Any]:
    """A hint as a table of parts of paths, each of which must fit one."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return {"": given}
    for part in given:
        if not any(f".{part}." in f".{path}." for path in paths):
            raise WatchError(f"no part of the model fits {what}={{{part!r}: …}}; name a part of a module's path")
    return dict(given)
