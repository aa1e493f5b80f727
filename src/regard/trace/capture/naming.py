"""Which token each row and each column stands for."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import Tensor

from regard.errors import TraceError
from regard.tokens import Reader, Tokens, patches
from regard.trace.capture.ancestry import BeamAncestry
from regard.trace.capture.layer_capture import LayerCapture
from regard.trace.capture.windows import tell_windows
from regard.trace.record.findings import LayerState
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run

Named = tuple[Tokens, ...]
POSITIONS = "named by position"


class Naming:
    """Names for the rows and columns of a run, from token ids that went in and whatever reads them.

    `given` is a tokenizer, one list of strings, `Tokens`, or nothing: then ids name themselves.
    """

    def __init__(self, given: Any) -> None:
        self.fixed: Tokens | None = None
        self.read: Callable[[Any], Tokens] | None = None
        if isinstance(given, Tokens):
            self.fixed = given
        elif isinstance(given, Sequence) and not isinstance(given, str):
            self.fixed = Tokens.of(list(given))
        elif given is not None:
            self.read = Reader(given)
        self.known: dict[tuple[int, ...], Tokens] = {}
        self.inputs: set[tuple[int, ...]] = set()  # all that was fed, where strings were given that fit its length

    def read_inputs(self, helds: Collection[LayerCapture]) -> None:
        """Look through what all runs were fed: strings that were given name only one of them."""
        if self.fixed is not None:
            fed = [block.ids for held in helds if (block := held.blocks[0]).ids is not None]
            size = len(self.fixed)
            self.inputs = {
                tuple(line) for ids in fed if ids is not None and ids.shape[1] == size for line in ids.tolist()
            }

    def must_fit(self, lengths: Collection[tuple[int, int]]) -> None:
        """Raise where strings were given that fit no row and no column."""
        if self.fixed is None or not lengths or any(len(self.fixed) in pair for pair in lengths):
            return
        seen = ", ".join(sorted({f"{q} × {k}" for q, k in lengths})[:4])
        raise TraceError(
            f"{len(self.fixed)} tokens were given, but the maps are {seen} (queries × keys); "
            "give one token per position"
        )

    def name(
        self, run: Run, helds: Collection[LayerCapture], kept: BeamAncestry | None, pixels: tuple[int, ...] | None
    ) -> None:
        """Name rows and columns of every layer of a run, as far as they are known."""
        rows: list[Named | None] = []
        by_position: list[bool] = []
        tell_windows([layer for layer, held in zip(run.layers, helds) if reads_picture(layer, held)], pixels)
        for layer, held in zip(run.layers, helds):
            ids = ids_of(held, kept)
            found = None
            unsure = self.unsure(layer, held, run.layers, helds)
            by_position.append(bool(unsure))
            if unsure:
                layer.notes.append(f"{POSITIONS}: {unsure}")
            elif self.fixed is not None:
                found = (self.fixed,) * layer.batch if len(self.fixed) == layer.weights.shape[-2] else None
            elif ids is not None and ids.shape[-1] == layer.weights.shape[-2]:
                ids = ids.expand(layer.batch, -1) if ids.shape[0] == 1 else ids
                found = tuple(self.text(line) for line in ids.tolist()) if len(ids) == layer.batch else None
            elif pixels is not None and reads_picture(layer, held) and LayerState.PARTS_OF_PICTURE not in layer.states:
                found = self.picture(layer.weights.shape[-2], pixels, layer.batch)
            rows.append(found)
        for layer, named, unnamed in zip(run.layers, rows, by_position):
            layer.queries = named
            if unnamed:
                continue
            sources = self.sources(layer, named, rows)
            layer.keys = self.columns(layer.kind, layer.weights.shape, named, sources)
            if layer.kind == "cross" and layer.keys is None and len(sources) > 1:
                layer.notes.append(f"{POSITIONS}: several inputs are as long as its keys")

    def unsure(self, layer: Layer, held: LayerCapture, layers: Sequence[Layer], helds: Collection[LayerCapture]) -> str:
        """Why names of this length could be those of another input; empty where they cannot."""
        n = layer.weights.shape[-2]
        crossed = [one for one in layers if one.kind == "cross"]
        if self.fixed is not None:
            if len(self.fixed) == n and any(one.weights.shape[-2:] == (n, n) for one in crossed):
                return "source and target are equally long, and the tokens given could be of either"
            if len(self.fixed) == n and len(self.inputs) > 1:
                return f"{len(self.inputs)} different inputs are as long as the tokens given"
            return ""
        if held.rival and crossed:
            return "source and target are equally long, and which of them these are is not known"
        ids = held.blocks[0].ids
        handed = [one for one in helds if ids is not None and one.blocks[0].ids is ids and not one.outermost]
        if held.outermost and handed and crossed:
            return "the tokens of this length went to another part of the model"
        return ""

    @staticmethod
    def sources(layer: Layer, queries: Named | None, others: list[Named | None]) -> list[Named]:
        """The different names that other layers have for as many tokens as this one has keys."""
        b, k = layer.weights.shape[0], layer.weights.shape[-1]
        found: list[Named] = []
        for named in others:
            if named is not None and named != queries and len(named[0]) == k and b % len(named) == 0:
                found += [] if named in found else [named]
        return found

    def columns(self, kind: str, shape: tuple[int, ...], queries: Named | None, sources: list[Named]) -> Named | None:
        b, q, k = shape[0], shape[-2], shape[-1]
        if kind != "cross" and queries is not None and q == k:
            return queries
        if self.fixed is not None:
            return (self.fixed,) * b if len(self.fixed) == k else None
        if kind != "cross" and queries is not None and q < k:  # keys from before the watch began
            before = tuple(f"slot {i}" for i in range(k - q))
            return tuple(Tokens((*before, *tokens.shown)) for tokens in queries)
        if kind != "cross" or len(sources) != 1:
            return None
        return tuple(tokens for tokens in sources[0] for _ in range(b // len(sources[0])))  # beams share their source

    def text(self, ids: list[int]) -> Tokens:
        key = tuple(ids)
        if key not in self.known:
            if self.read is None:
                self.known[key] = Tokens(tuple(str(i) for i in ids), ids=key)
            else:
                self.known[key] = self.read(ids)
        return self.known[key]

    @staticmethod
    def picture(count: int, pixels: tuple[int, ...], batch: int) -> Named | None:
        """Image patches, where their number says how they lie."""
        height, width = pixels[-2:]
        for prefix in range(6):
            for side in range(1, min(height, width)):
                rows, columns = height // side, width // side
                if height % side == 0 and width % side == 0 and rows * columns + prefix == count > 4 + prefix:
                    return (patches(rows, columns, prefix=prefix),) * batch
        return None


def reads_picture(layer: Layer, held: LayerCapture) -> bool:
    """Whether its rows may be patches, in a run that was given a picture."""
    return held.blocks[0].ids is None and "decoder" not in layer.name


def ids_of(held: LayerCapture, kept: BeamAncestry | None) -> Tensor | None:
    """The ids of all rows, stitched as the rows are."""
    parts = []
    for block in held.blocks:
        if kept is not None and kept.over(block):
            continue
        if block.ids is None:
            return None
        ids, entries = block.ids, None if kept is None else kept.of(block)
        if entries is not None:
            ids = ids.expand(block.sizes.lead[0], -1).index_select(0, entries.clamp_min(0))
        parts.append(ids)
    if len({len(part) for part in parts}) != 1:
        return None
    ids = torch.cat(parts, -1)
    return ids if kept is None else kept.pad_ids(held, ids)
