"""What one watch saw: runs of the model, each with its attention layers in the order they were computed."""

import pathlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from regard.errors import TraceError
from regard.trace.record.changes import edited_line
from regard.trace.record.layer import Layer
from regard.trace.record.missed import MissedAttention, incomplete_line

if TYPE_CHECKING:
    from anywidget import AnyWidget
    from matplotlib.figure import Figure

    from regard.trace.measure.gradient import SideBySide
    from regard.trace.measure.measure import Measures
    from regard.trace.measure.rollout import Flow
    from regard.trace.measure.sampled_flow import SampledFlow
    from regard.trace.measure.summary import Summary
    from regard.trace.proof.verify import Proofs
    from regard.trace.residual.attribution import Attribution
    from regard.trace.residual.stream import ResidualStream

Path = str | int | tuple[str, str]


@dataclass
class Run:
    """One forward pass of the model, or one `generate()` with all its steps, as layers."""

    layers: list[Layer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # layers that have no map, and why
    changes: list[str] = field(default_factory=list)  # edits, also those of layers that are not kept
    missed: list[MissedAttention] = field(default_factory=list)  # attention that ran and was not heard
    residual: "ResidualStream | None" = None  # beyond attention, of a watch with residual=

    @property
    def edits(self) -> list[str]:
        """What was changed about the model in this run, as calls of `regard.edit` and `regard.swap`, each once."""
        return list(dict.fromkeys([*self.changes, *(edit for layer in self.layers for edit in layer.edits)]))

    def sentences(self) -> list[str]:
        """What could not be seen, for people to read."""
        refused = [f"{name} was refused: {why}" for name, why in self.refused.items()]
        return [*refused, *(f"incomplete: {one}" for one in self.missed), *self.notes]

    def __getitem__(self, path: Path) -> Layer:
        return find(self.layers, path)


class Trace:
    """`Trace` holds what a model attended to: `runs` are its calls, `layers` the attention layers of the last one.

    `trace["layer.3"]` finds a layer by any unambiguous part of its path, `trace["layer.3", "cross"]` tells kinds
    apart, `trace[2]` counts. `notes` says what could not be seen, one sentence each; `edits` what was changed about
    the model.

    >>> import regard, torch
    >>> layer = regard.MultiHead(8, heads=2)
    >>> with regard.watch(layer) as trace:
    ...     _ = layer(torch.ones(1, 3, 8))
    >>> trace
    Trace (MultiHead, 1 layer: 1 self; b 1, h 2, q 3, k 3)
    """

    def __init__(
        self, runs: list[Run] | None = None, *, notes: list[str] | None = None, model: str = "", fingerprint: str = ""
    ) -> None:
        self._runs = [] if runs is None else runs
        self._live: Callable[[], list[Run]] | None = None  # what a watch has seen, until it is asked for
        self._over = True  # whether no watch fills the trace any more
        self._print = fingerprint
        self._prints: Callable[[], str] | None = None  # makes the fingerprint, where it is not known yet
        self.notes = [] if notes is None else notes
        self.model = model  # the class of the model

    @property
    def fingerprint(self) -> str:
        """Of the model's weights; empty where they are not known, or have changed since the watch."""
        if not self._print and self._prints is not None:
            self._print, self._prints = self._prints(), None
        return self._print

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

    @property
    def edits(self) -> list[str]:
        """What was changed about the model in the last run; empty where it ran as it is."""
        runs = self.runs
        return runs[-1].edits if runs else []

    @property
    def missed(self) -> list[MissedAttention]:
        """Attention of the last run that is known to have run and was not heard; `verify()` is then false."""
        runs = self.runs
        return runs[-1].missed if runs else []

    def __getitem__(self, path: Path) -> Layer:
        return find(self.layers, path)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    # What can be known of it. The arithmetic stands in files of its own; each function there says all it takes.

    def verify(self) -> "Proofs":
        """Whether the map of each layer of the last run is verified, unverified or refused, and why."""
        from regard.trace.proof.verify import Proofs, verify

        runs = self.runs
        return verify(runs[-1]) if runs else Proofs()

    def measures(self) -> "list[Measures]":
        """Entropy, distance and shares (first, self, previous, …) of every head, layer by layer."""
        from regard.trace.measure.measure import measures

        return measures(self.layers)

    def summary(self, batch: int | None = None) -> "Summary":
        """The measures of all heads as one table: sortable, and records for pandas and polars."""
        from regard.trace.measure.summary import summarise

        return summarise(self, batch)

    def rollout(
        self,
        token: int,
        *,
        residual: float = 0.5,
        heads: str | Sequence[int] = "mean",
        by: str = "weights",
        batch: int = 0,
        layers: str | Sequence[int] | None = None,
    ) -> Tensor:
        """How much of each input reaches `token` at each depth (attention rollout), (layers + 1, n).

        `residual` is the share that the residual stream keeps, `heads` is "mean", "max" or the heads to take the mean
        of, `by="values"` weighs by the norm of values; `layers` are part of a path or numbers, `batch` the entry.
        """
        from regard.trace.measure.rollout import rollout

        return rollout(self, token, residual=residual, heads=heads, by=by, batch=batch, layers=layers)

    def flow(
        self,
        token: int,
        *,
        residual: float = 0.5,
        heads: str | Sequence[int] = "mean",
        by: str = "weights",
        batch: int = 0,
        layers: str | Sequence[int] | None = None,
    ) -> "Flow":
        """`rollout` also for encoder–decoders: to the target's tokens and to the source's."""
        from regard.trace.measure.rollout import flow

        return flow(self, token, residual=residual, heads=heads, by=by, batch=batch, layers=layers)

    def sample_flow(self, token: int, *, draws: int = 4096, seed: int = 0, **how: Any) -> "SampledFlow":
        """`flow` through long maps by so many draws of rows in each layer, with a bound; `how` is what `flow` takes."""
        from regard.trace.measure.sampled_flow import sample_flow

        return sample_flow(self, token, draws=draws, seed=seed, **how)

    def spread(
        self,
        token: int,
        *,
        residual: float = 0.5,
        heads: str | Sequence[int] = "mean",
        by: str = "weights",
        batch: int = 0,
        layers: str | Sequence[int] | None = None,
    ) -> Tensor:
        """How much of one input token is in every token after each layer, (layers + 1, n): `rollout` by columns."""
        from regard.trace.measure.rollout import spread

        return spread(self, token, residual=residual, heads=heads, by=by, batch=batch, layers=layers)

    def side_by_side(
        self,
        token: int,
        *,
        layer: str | int | None = None,
        head: int | None = None,
        batch: int = 0,
        residual: float = 0.5,
        by: str = "weights",
    ) -> "SideBySide":
        """Raw attention, rollout and gradient × attention of one query, because raw weights alone mislead."""
        from regard.trace.measure.gradient import side_by_side

        return side_by_side(self, token, layer=layer, head=head, batch=batch, residual=residual, by=by)

    def residual(self, path: str, at: int | Sequence[int] | None = None, *, batch: int | None = None) -> Tensor:
        """What a module gave in the last run, (b, n, m): the residual stream after a block, or the output of an MLP.

        After `watch(residual=…)`, which says what is kept. `at` are positions, `batch` picks an entry.
        """
        from regard.trace.residual.stream import module_output

        runs = self.runs
        return module_output(runs[-1].residual if runs else None, path, at, batch)

    def attribution(
        self, token: Any = None, position: int = -1, *, batch: int = 0, against: Any = None
    ) -> "Attribution":
        """What the embedding, each head, each MLP and the biases add to a logit; after `watch(residual=True)`.

        `token` is an id or a text of one token, the strongest unless given; `against` is one whose logit is taken off.
        """
        from regard.trace.residual.attribution import attribute

        return attribute(self, token, position=position, batch=batch, against=against)

    # Keeping it

    def save(
        self, to: str | PathLike[str], *, layers: str | Sequence[str] | None = None, budget: int = 1 << 30
    ) -> None:
        """Write it to one safetensors file; `regard.load` opens it again.

        `layers` are parts of paths: only layers with one of them are written. `budget` is how many bytes of maps are
        written that can only be kept as weights.
        """
        from regard.trace.file import save

        save(self, to, layers=layers, budget=budget)

    def check(self, model: nn.Module) -> None:
        """Raise `TraceError` where `model` has other weights than the model that was watched."""
        from regard.trace.file.fingerprint import check

        check(self, model)

    # Looking at it

    def figure(
        self,
        layer: Any = None,
        head: int | None = None,
        *,
        rows: Any = None,
        cols: Any = None,
        batch: int = 0,
        to: str | pathlib.Path | None = None,
        words: bool = False,
        title: str | None = None,
        exact: bool | None = None,
    ) -> "Figure":
        """A picture: one head, a layer, or all; `to="x.svg"` (png, pdf) writes it.

        `rows` and `cols` take a slice, places or a sentence ("A"); `words` merges word pieces. Very long maps are
        sampled, which the picture says, with a bound; `exact=True` looks at every weight.
        """
        from regard.views.static.trace_figure import figure

        some = {"rows": rows, "cols": cols, "batch": batch, "words": words}
        return figure(self, layer, head, **some, to=to, title=title, exact=exact)

    def print(
        self,
        layer: Any = None,
        head: int | None = None,
        *,
        batch: int = 0,
        rows: Any = None,
        cols: Any = None,
        words: bool = False,
        width: int | None = None,
        colour: bool | None = None,
        file: Any = None,
    ) -> None:
        """Write it to the terminal, or to `file`: one head, a layer, or what there is."""
        from regard.views.static.trace_terminal import print_trace

        print_trace(
            self, layer, head, batch=batch, rows=rows, cols=cols, words=words, width=width, colour=colour, file=file
        )

    def see(self, layer: Path | None = None, head: int | None = None, *, height: int = 560) -> "AnyWidget":
        """The explorer in a notebook, opened at a layer and head; `height` is in pixels. Needs `regard[notebook]`."""
        from regard.views.explorer.widget import see

        return see(self, layer, head, height=height)

    def page(
        self,
        to: str | PathLike[str] | None = None,
        *,
        precision: str = "float16",
        values: bool | None = None,
        layers: Any = None,
        name: str = "",
        language: str | None = None,
    ) -> str | None:
        """One HTML file with the explorer and the numbers, offline; its text without `to`.

        `precision` is what q and k are held in, "float16" or "float32"; `values` whether v is held too (None: while
        the page stays small); `layers` are parts of paths.
        """
        from regard.views.explorer.page import page

        return page(self, to, precision=precision, values=values, layers=layers, name=name, language=language)

    def _repr_html_(self) -> str:
        from regard.views.static.trace_notebook import trace_html

        return trace_html(self)

    def __repr__(self) -> str:
        layers = self.layers
        if not layers:
            return f"Trace ({self.model or 'no model'}, nothing seen)"
        runs = len(self._runs)
        counts = [(sum(layer.kind == kind for layer in layers), kind) for kind in ("self", "cross", "unknown")]
        kinds = ", ".join(f"{count} {kind}" for count, kind in counts if count)
        b, h, q, k = layers[-1].weights.shape
        many = f"{runs} runs, the last with " if runs > 1 else ""
        count = f"{len(layers)} layer{'s' if len(layers) > 1 else ''}: {kinds}"
        last = "the last " if len(layers) > 1 else ""
        edits = self.edits
        changed = f"{edited_line(edits)}; " if edits else ""
        missed = f"; {incomplete_line(self.missed)}" if self.missed else ""
        return f"Trace ({self.model or 'a model'}, {changed}{many}{count}; {last}b {b}, h {h}, q {q}, k {k}{missed})"


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
