"""`with edit(model) as e:` the same door as watching, to change instead of look."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.map import AttentionMap
from regard.errors import WatchError
from regard.trace.change.aim import LayerName, Named, format_positions, named_of, parts_of
from regard.trace.change.edit_listener import EditListener
from regard.trace.change.edits import HOW, Block, Edit, Force, HeadReference, Mute, Replace, Scale, Zero, describe_edit
from regard.trace.change.effect import Effect, compare_outputs
from regard.trace.change.module_edits import ModuleEdit, module_at, record_output, replace_by
from regard.trace.change.references import HeadRecorder, TraceReference, copy_inputs, make_feeder
from regard.trace.change.row_edits import MixHook, Patch
from regard.trace.doors.axes_hint import make_hints
from regard.trace.doors.handwritten import settle
from regard.trace.doors.install import listening, must_be_watchable
from regard.trace.doors.scope import SCOPE
from regard.trace.doors.tap import tap
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace

PARTS = ("mix", "residual", "mlp")  # what a hook may stand on


class Editor:
    """What to change about a model's attention. Edits hold until the block ends, in the order they were asked for.

    `path` is any part of a module's path that fits one attention layer, several such, or None for every layer;
    `path#2` is the second call of a module that is called several times. `heads` is one number, several, a slice, or
    None for all. `query` and `key` are positions, counted from 0 or from the end, several, a slice, or None for all;
    under a cache they count from the first token that was ever fed.

    Maps are edited first, then what the heads give: a muted head stays mute whatever is done to its map.

    >>> import regard, torch
    >>> layer = regard.MultiHead(8, 2)
    >>> with torch.no_grad(), edit(layer) as e:
    ...     e.force(query=2, key=0, weight=0.75)
    ...     e.block(query=2, key=1, heads=1)
    ...     weights = layer.attend(torch.zeros(1, 4, 8)).weights
    >>> e.edits, weights[0, :, 2]
    ([], tensor([[0.7500, 0.0833, 0.0833, 0.0833],
                 [0.8182, 0.0000, 0.0909, 0.0909]]))
    """

    def __init__(self, model: nn.Module, tokenizer: Any = None, read: Callable[[Any], Tensor] | None = None) -> None:
        self._model: Any = model  # None after the block: nothing keeps the model alive
        self._tokenizer, self._read = tokenizer, read
        self._listener = EditListener(model)
        self._taps = ExitStack()  # on modules whose output is edited, until the block ends

    def mute(self, path: Any = None, heads: Any = None, *, how: str = "zero", reference: Any = None) -> None:
        """Silence heads: their output is 0, or stands for nothing in particular.

        `how="mean"` gives the mean over the positions of the call, or of `reference`; `how="resample"` gives what the
        head gave for the next entry of the batch, or at the same place in `reference`. That is a trace or a layer of
        one, or inputs of the model (a mapping, a tuple, or a tensor), which then runs at once; for the mean also a
        list of such. Sources: Michel et al. 2019 (arXiv 1905.10650) for zero, Wang et al. 2022 (arXiv 2211.00593) for
        mean and resample.
        """
        if how not in HOW:
            raise WatchError(f"heads are muted by {', '.join(HOW)}, but how={how!r} came")
        at, those = self._aim(path, heads)
        known = None if reference is None else self._elsewhere(reference, at, how)
        if known is not None and how == "zero":
            raise WatchError("a head that is muted to zero needs no reference; leave it out, or say how='mean'")
        words = describe_edit("mute", path, those, how=None if how == "zero" else how)
        self._add(Mute(words, at, those, how, known))

    def scale(self, path: Any, heads: Any, factor: Any) -> None:
        """Multiply what heads give by a number."""
        at, those = self._aim(path, heads)
        self._add(Scale(describe_edit("scale", path, those, by=factor), at, those, number(factor, "factor")))

    def block(self, query: Any = None, key: Any = None, path: Any = None, heads: Any = None) -> None:
        """Hide keys from queries: −inf before softmax, so that the rest of the row grows.

        A query that then sees nothing gets nothing. Source: Geva et al. 2023 (arXiv 2304.14767).
        """
        self._add(Block(*self._edge("block", query, key, path, heads)))

    def zero(self, query: Any = None, key: Any = None, path: Any = None, heads: Any = None) -> None:
        """Set weights to 0 after softmax: the rest of the row stays as it is, and no longer adds to one."""
        self._add(Zero(*self._edge("zero", query, key, path, heads)))

    def force(self, query: Any = None, key: Any = None, weight: Any = 1.0, path: Any = None, heads: Any = None) -> None:
        """Give a key this weight; the other keys of the row share what is left, in their proportions.

        Several keys share `weight` evenly. The edge gets it even where the mask hid the key, as the future is hidden
        in a causal model; a row without other visible keys adds to `weight` alone.
        """
        amount = number(weight, "weight")
        if not 0.0 <= amount <= 1.0:
            raise WatchError(f"weight is {weight}, but it is a share of a row; give a number from 0 to 1")
        words, at, those, queries, keys = self._edge("force", query, key, path, heads, weight=weight)
        if keys is None:
            raise WatchError("an edge is forced to some key, but none was named; give key=")
        self._add(Force(words, at, those, queries, keys, amount))

    def replace(self, path: Any = None, heads: Any = None, by: Any = "uniform") -> None:
        """Put another map in place of heads' own.

        `by` is "uniform" (even over the keys that the mask lets a query see), a layer of a trace, an `AttentionMap`,
        or a tensor, (q, k), (h, q, k) or (b, h, q, k), used as it is.
        """
        at, those = self._aim(path, heads)
        self._add(Replace(describe_edit("replace", path, those), at, those, None, None, as_map(by)))

    def patch(
        self, path: Any = None, heads: Any = None, *, source: Any, queries: Any = None, source_queries: Any = None
    ) -> None:
        """Give heads what they gave in another run, at all queries or at some.

        `source` is a trace, a layer of one, or inputs of the model, which then runs at once. `queries` are positions
        of the call and, unless `source_queries` says otherwise, of the source: -1 is the last of each. Source: Wang et
        al. 2022 (arXiv 2211.00593), as path or activation patching.
        """
        at, those = self._aim(path, heads)
        known = self._elsewhere(source, at, "resample")
        rows, others = named_of(queries, "queries"), named_of(source_queries, "source_queries")
        words = describe_edit("patch", path, those, queries=None if rows is None else format_positions(rows))
        self._add(Patch(words, at, those, rows, known, others))

    def patch_residual(self, path: str, *, source: Any, at: Any = None, source_at: Any = None) -> None:
        """Give the residual stream after a block, or the output of another module, what it was in another run.

        `source` is a trace that kept it (`watch(residual=…)`), a tensor (b, n, m) of the source's stream, or inputs of
        the model as a mapping or a tuple, which then runs at once. `at` are positions, as in `patch`.
        """
        self._aim(None, None)
        name, module = module_at(path, self._listener.tree)
        if isinstance(source, Trace):
            other = source.residual(name)
        elif isinstance(source, Tensor) and source.is_floating_point():
            other = source
        else:
            with torch.no_grad(), torch.random.fork_rng(), self._listener.at_rest():
                other = record_output(make_feeder(self._model, source), module, self._listener)
        rows, others = named_of(at, "at"), named_of(source_at, "source_at")
        words = describe_edit("patch_residual", path, None, at=None if rows is None else format_positions(rows))
        self._tap(ModuleEdit(words, name, replace_by(other, rows, others, words), rows), module)

    def hook(
        self,
        path: Any,
        function: Callable[[Tensor], Tensor | None],
        *,
        part: str = "mix",
        heads: Any = None,
        at: Any = None,
    ) -> None:
        """Call a function of yours with what is there; what it returns goes on in its place, None leaves it.

        `part="mix"` is what the heads of an attention layer give, (b, h, q, e) of those heads and positions;
        "residual" is what the block at `path` gives, and "mlp" what the MLP there gives, (b, n, m): both are the
        output of that module.
        """
        if part not in PARTS or not callable(function):
            raise WatchError(
                f"a hook wants a function and a part of {', '.join(PARTS)}, but {function!r} and part={part!r} came"
            )
        rows = named_of(at, "at")
        words = describe_edit("hook", path, None, part=part, at=None if rows is None else format_positions(rows))
        if part == "mix":
            where, those = self._aim(path, heads)
            self._add(MixHook(words, where, those, rows, function))
            return
        if heads is not None:
            raise WatchError(f"{words} names heads, which only the mix has; leave heads= out, or say part='mix'")
        self._aim(None, None)
        name, module = module_at(path, self._listener.tree)
        self._tap(ModuleEdit(words, name, function, rows), module)

    def clear(self) -> None:
        """Take all edits back; the block goes on with the model as it is."""
        self._listener.edits.clear()
        self._listener.outputs.edits.clear()
        self._listener.reach.clear()

    @property
    def edits(self) -> list[str]:
        """What was asked for, in order."""
        return [*(edit.said for edit in self._listener.edits), *(edit.said for edit in self._listener.outputs.edits)]

    @property
    def notes(self) -> list[str]:
        """What could not be edited, one sentence each."""
        return self._listener.notes()

    def run(self, *args: Any, **inputs: Any) -> Effect:
        """Call the model as it is and under the edits, without gradients, and compare what comes out.

        Both runs draw the same random numbers, and each gets its own copy of a cache among the inputs.
        """
        listener = self._listener
        if not listener.tree:
            raise WatchError("the block of this edit is over; call run inside of it")
        with torch.no_grad():
            with torch.random.fork_rng(), listener.at_rest():
                before = self._model(*copy_inputs(args), **copy_inputs(inputs))
            after = self._model(*copy_inputs(args), **copy_inputs(inputs))
        scope = SCOPE.get()
        if scope is not None:
            settle(scope)
        listener.finish()
        notes = [*self.edits, *self.notes]
        return compare_outputs(before, after, inputs, self._tokenizer, self._read, notes, model=self._model)

    def _aim(self, path: Any, heads: Any) -> tuple[tuple[LayerName, ...] | None, Named]:
        if not self._listener.tree:
            raise WatchError("the block of this edit is over; ask for edits inside of it")
        return parts_of(path, self._listener.tree), named_of(heads, "heads")

    def _edge(
        self, verb: str, query: Any, key: Any, path: Any, heads: Any, **more: Any
    ) -> tuple[str, tuple[LayerName, ...] | None, Named, Named, Named]:
        at, those = self._aim(path, heads)
        queries, keys = named_of(query, "query"), named_of(key, "key")
        if queries is None and keys is None:
            raise WatchError(f"{verb} needs an edge, but neither query= nor key= came; give one or both")
        told = {"query": queries, "key": keys}
        words = {name: format_positions(named) for name, named in told.items() if named is not None}
        return describe_edit(verb, path, those, **words, **more), at, those, queries, keys

    def _elsewhere(self, given: Any, at: tuple[LayerName, ...] | None, how: str) -> HeadReference:
        if isinstance(given, Trace | Layer):
            return TraceReference(given)
        many = given if isinstance(given, list) else [given]
        if how != "mean" and len(many) != 1:
            raise WatchError(f"a head is resampled from one run, but {len(many)} inputs came; give one, or how='mean'")
        recorder = HeadRecorder(self._listener.tree, at, means=how == "mean")
        recorder.hints = self._listener.hints
        with torch.no_grad(), torch.random.fork_rng(), self._listener.at_rest(), listening(recorder):
            for one in many:
                make_feeder(self._model, one)()
        return recorder

    def _add(self, edit: Edit) -> None:
        self._listener.edits.append(edit)

    def _tap(self, edit: ModuleEdit, module: nn.Module) -> None:
        """An edit of what a module gives; the module is tapped once, until the block ends."""
        listener = self._listener
        if edit.path not in listener.outputs.tapped:
            taps = [(module, partial(listener.change_output, edit.path))]
            self._taps.enter_context(tap(taps, listener))
            listener.outputs.tapped.add(edit.path)
        listener.outputs.edits.append(edit)


def number(given: Any, what: str) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        raise WatchError(f"{what} is {given!r}; give a number") from None


def as_map(by: Any) -> AttentionMap | None:
    """The map to put in place, (b, h, q, k); None is uniform."""
    if isinstance(by, str) and by == "uniform":
        return None
    if isinstance(by, Layer):
        by = by.weights
    if isinstance(by, AttentionMap):
        if len(by.shape) == 4:
            return by
        by = by.dense() if len(by.shape) in (2, 3) else by
    if not isinstance(by, Tensor) or not by.is_floating_point() or not 2 <= by.ndim <= 4:
        what = f"{tuple(by.shape)} of {by.dtype}" if isinstance(by, Tensor) else repr(by)
        raise WatchError(
            f"a map is replaced by 'uniform', a layer of a trace, an AttentionMap or weights as (b, h, q, k), "
            f"(h, q, k) or (q, k), but {what} came"
        )
    if bool((by < 0).any()):
        raise WatchError("weights are shares, but some that came are below 0; give numbers from 0 on")
    return AttentionMap.stored(by.reshape((1,) * (4 - by.ndim) + tuple(by.shape)))


@contextmanager
def edit(
    model: Any,
    tokenizer: Any = None,
    *,
    read: Callable[[Any], Tensor] | None = None,
    heads: Any = None,
    layout: Any = None,
) -> Iterator[Editor]:
    """An `Editor` whose edits the model runs under while the block lasts; afterwards it is as it was.

    Heads are muted or scaled, edges blocked, zeroed or forced, maps replaced. Only the heads and rows that are named
    are computed again; with nothing asked for, the model stays bit for bit the same. Edits nest, and go with `watch`
    in either order: what is watched is the edited model. Only this context is edited: other threads are not.

    An edit that fell nowhere (a layer without attention, a position beyond the end) is an error when the block ends.
    `e.run(…)` calls the model without and with the edits and gives the change in its output, with tokens if a
    `tokenizer` is given; `read` picks the tensor to compare from what the model returns. `heads` and `layout` say how
    attention is to be read that merges batch and heads, as in `watch`.

    >>> import regard, torch
    >>> layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True)
    >>> x = torch.randn(1, 3, 8)
    >>> with torch.no_grad(), edit(layer) as e:
    ...     e.mute("self_attn")
    ...     muted = layer.self_attn(x, x, x)[0]
    >>> torch.equal(muted, layer.self_attn.out_proj.bias.expand(1, 3, 8))
    True
    """
    must_be_watchable(model)
    editor = Editor(model, tokenizer, read)
    editor._listener.hints = make_hints(heads, layout, (path for path, _ in editor._listener.tree.values()))
    try:
        with listening(editor._listener) as scope, editor._taps:
            yield editor
            settle(scope)
            editor._listener.finish()
    finally:
        editor._model = None
