"""What one watch saw: runs of the model, each with its attention layers in the order they were computed."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from regard.errors import TraceError
from regard.trace.layer import Layer


@dataclass
class Run:
    """One top-level call of the model, or one `generate()`, stitched."""

    layers: list[Layer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __getitem__(self, path: str | tuple[str, str]) -> Layer:
        return find(self.layers, path)


@dataclass
class Trace:
    """What a model attended to. `runs` are its calls; `layers` are those of the last one.

    `trace["layer.3"]` finds a layer by any unambiguous part of its path, `trace["layer.3", "cross"]` tells kinds
    apart. `notes` says what was refused or could not be seen, one sentence each.
    """

    runs: list[Run] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    model: str = ""  # the class of the model
    fingerprint: str = ""  # of its weights; see fingerprint.py

    @property
    def layers(self) -> list[Layer]:
        """The layers of the last run, in the order they were computed."""
        return self.runs[-1].layers if self.runs else []

    def __getitem__(self, path: str | tuple[str, str]) -> Layer:
        return find(self.layers, path)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)


def find(layers: list[Layer], path: str | tuple[str, str]) -> Layer:
    """The one layer that `path` names: the whole path first, then any whole steps of it, then any part."""
    wanted, kind = path if isinstance(path, tuple) else (path, None)
    fitting = [layer for layer in layers if kind is None or layer.kind == kind]
    steps = f".{wanted}."
    for fits in (
        lambda name: name == wanted,
        lambda name: steps in f".{name}.",
        lambda name: wanted in name,
    ):
        found = [layer for layer in fitting if fits(layer.name)]
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(f"{layer.name} ({layer.kind})" for layer in found[:8])
            raise TraceError(f"{wanted!r} fits {len(found)} layers: {listed}; give more of the path, or the kind")
    listed = ", ".join(layer.name for layer in layers[:8]) or "none were seen"
    raise TraceError(f"no layer is called {path!r}; there are: {listed}")
