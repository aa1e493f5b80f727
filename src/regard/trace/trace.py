"""What one watch saw: runs of the model, each with its attention layers in the order they were computed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regard.errors import TraceError
from regard.trace.layer import Layer

if TYPE_CHECKING:
    from regard.trace.verify import Proofs

Path = str | int | tuple[str, str]


@dataclass
class Run:
    """One top-level call of the model, or one `generate()`, stitched."""

    layers: list[Layer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __getitem__(self, path: Path) -> Layer:
        return find(self.layers, path)


class Trace:
    """What a model attended to. `runs` are its calls; `layers` are those of the last one.

    `trace["layer.3"]` finds a layer by any unambiguous part of its path, `trace["layer.3", "cross"]` tells kinds
    apart, `trace[2]` counts. `notes` says what was refused or could not be seen, one sentence each.
    """

    def __init__(
        self, runs: list[Run] | None = None, *, notes: list[str] | None = None, model: str = "", fingerprint: str = ""
    ) -> None:
        self._runs = [] if runs is None else runs
        self._live: Callable[[], list[Run]] | None = None  # what a watch has seen, until it is asked for
        self._over = True  # whether no watch fills the trace any more
        self.notes = [] if notes is None else notes
        self.model = model  # the class of the model
        self.fingerprint = fingerprint  # of its weights

    @property
    def runs(self) -> list[Run]:
        """Every top-level call, in order. What is read while the watch still runs is what it has seen so far."""
        if self._live is not None:
            self._runs = self._live()
            if self._over:
                self._live = None
        return self._runs

    def over(self) -> None:
        """The watch has ended: what it saw is put together when somebody asks, once."""
        self._over = True

    @property
    def layers(self) -> list[Layer]:
        """The layers of the last run, in the order they were computed."""
        runs = self.runs
        return runs[-1].layers if runs else []

    def __getitem__(self, path: Path) -> Layer:
        return find(self.layers, path)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def verify(self) -> "Proofs":
        """The proof of every layer of the last run: proven, unproven or refused, and how the map was obtained."""
        from regard.trace.verify import Proofs, verify

        runs = self.runs
        return verify(runs[-1]) if runs else Proofs()

    def __repr__(self) -> str:
        layers = self.layers
        if not layers:
            return f"Trace ({self.model or 'no model'}, nothing seen)"
        runs = len(self._runs)
        kinds = ", ".join(
            f"{sum(layer.kind == kind for layer in layers)} {kind}"
            for kind in ("self", "cross", "unknown")
            if any(layer.kind == kind for layer in layers)
        )
        b, h, q, k = layers[-1].weights.shape
        many = f"{runs} runs, the last with " if runs > 1 else ""
        return f"Trace ({self.model}, {many}{len(layers)} layers: {kinds}; the last b {b}, h {h}, q {q}, k {k})"


def find(layers: list[Layer], path: Path) -> Layer:
    """The one layer that `path` names: the whole path first, then any whole steps of it, then any part."""
    if isinstance(path, int):
        if not -len(layers) <= path < len(layers):
            raise TraceError(f"layer {path} was asked for, but there are {len(layers)}; count from 0")
        return layers[path]
    wanted, kind = path if isinstance(path, tuple) else (path, None)
    fitting = [layer for layer in layers if kind is None or layer.kind == kind]
    steps = f".{wanted}."
    rules: list[Callable[[str], bool]] = [
        lambda name: name == wanted,
        lambda name: steps in f".{name}.",
        lambda name: wanted in name,
    ]
    for fits in rules:
        found = [layer for layer in fitting if fits(layer.name)]
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(f"{layer.name} ({layer.kind})" for layer in found[:8])
            raise TraceError(f"{wanted!r} fits {len(found)} layers: {listed}; give more of the path, or the kind")
    listed = ", ".join(layer.name for layer in layers[:8]) or "none were seen"
    raise TraceError(f"no layer is called {path!r}; there are: {listed}")
