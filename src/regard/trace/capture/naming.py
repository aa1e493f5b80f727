"""Which token each row and each column stands for."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.attention.map import AttentionMap
from regard.errors import Stale, TraceError
from regard.tokens import Reader, Tokens
from regard.trace.capture.ancestry import BeamAncestry
from regard.trace.capture.given_names import GivenNames, name_as_given
from regard.trace.capture.layer_capture import LayerCapture
from regard.trace.capture.pictures import PictureTokens, are_channels, grid_of
from regard.trace.capture.provenance import FLOATS, Origin
from regard.trace.capture.windows import tell_windows
from regard.trace.record.findings import LayerState
from regard.trace.record.layer import Layer
from regard.trace.record.placement import fits_grid
from regard.trace.record.trace import Run

Named = tuple[Tokens, ...]
POSITIONS = "named by position"
SOME = 32  # rows that are looked at


class Naming:
    """Names for the rows and columns of a run, from token ids that went in and whatever reads them.

    `given` is a tokenizer, one list of strings, `Tokens`, or nothing: then ids name themselves.
    """

    def __init__(self, given: Any, queries: Any = None, keys: Any = None) -> None:
        self.fixed: Tokens | None = None
        self.read: Callable[[Any], Tokens] | None = None
        if isinstance(given, Tokens):
            self.fixed = given
        elif isinstance(given, Sequence) and not isinstance(given, str):
            self.fixed = Tokens.of(list(given))
        elif given is not None:
            self.read = Reader(given)
        self.pictures: PictureTokens | None = None  # what the model says of pictures, once it was handed one
        self.known: dict[tuple[int, ...], Tokens] = {}
        self.queries = GivenNames("queries", queries, self.text)
        self.keys = GivenNames("keys", keys, self.text)
        self.inputs: set[tuple[int, ...]] = set()  # all that was fed, where strings were given that fit its length

    def read_inputs(self, helds: Collection[LayerCapture]) -> None:
        """Look through what all runs were fed: strings that were given name only one of them."""
        if self.fixed is not None:
            fed = [block.ids for held in helds if (block := held.blocks[0]).ids is not None]
            size = len(self.fixed)
            self.inputs = {
                tuple(line) for ids in fed if ids is not None and ids.shape[1] == size for line in ids.tolist()
            }

    def must_fit(self, helds: Collection[LayerCapture]) -> None:
        """Raise where strings were given that fit no row and no column."""
        self.queries.must_fit([(held.name, sum(block.sizes.q for block in held.blocks)) for held in helds])
        self.keys.must_fit([(held.name, max(block.column + block.sizes.k for block in held.blocks)) for held in helds])
        lengths = [(held.blocks[0].sizes.q, held.blocks[0].sizes.k) for held in helds]
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
        reasons: list[str] = []
        tell_windows([layer for layer, held in zip(run.layers, helds) if reads_picture(layer, held)], pixels)
        if self.has_own_order(helds, pixels):
            pixels = None  # the model puts its patches into an order of its own
        for layer, held in zip(run.layers, helds):
            unsure = self.unsure(layer, held, run.layers, helds)
            reasons.append(unsure)
            rows.append(None if unsure else self.rows_of(layer, held, kept, pixels))
        first = rows[0] if rows else None
        if pixels is not None and self.pictures is not None and first and self.pictures.selects(first[0], pixels):
            rows = [None if named is None or named[0].grid is not None else named for named in rows]
        rows = [self.without_latents(layer, named, run.layers, rows) for layer, named in zip(run.layers, rows)]
        for layer, held, named, unsure in zip(run.layers, helds, rows, reasons):
            layer.queries = named
            if layer.kind == "cross" and held.keys_from is not None and self.fixed is None:
                patches = [one for one in self.sources(layer, named, rows) if one[0].grid is not None]
                layer.keys = self.keys_of(layer, held.keys_from) or self.columns("cross", layer.weights, named, patches)
                if layer.keys is None and held.keys_from.ids is None:
                    layer.keys = self.locations(layer, pixels)
                unsure = unsure or ("" if layer.keys else held.keys_from.why)
            elif not unsure:
                sources = self.sources(layer, named, rows)
                layer.keys = self.columns(layer.kind, layer.weights, named, sources)
                if layer.kind == "cross" and len(sources) > 1:
                    unsure = "several inputs are as long as its keys"
            name_as_given(layer, self.queries, self.keys)
            self.name_whole(layer, held, pixels)
            if unsure and (layer.queries is None or layer.keys is None):
                layer.notes.append(f"{POSITIONS}: {unsure}")

    def has_own_order(self, helds: Collection[LayerCapture], pixels: tuple[int, ...] | None) -> bool:
        """Whether windows show that positions of a picture do not count row by row."""
        if pixels is None:
            return False
        found = [one for held in helds if (one := held.placement) is not None]
        grids = [(one, grid_of(one.size, pixels)) for one in found]
        return any(grid is not None and not fits_grid(one, grid) for one, grid in grids)

    def name_whole(self, layer: Layer, held: LayerCapture, pixels: tuple[int, ...] | None) -> None:
        """Name the positions of the whole that windows were cut from: the tokens it was embedded from, or patches."""
        found = layer.placement
        if found is None:
            return
        names: Named | None = None
        if self.fixed is not None:
            names = (self.fixed,) * len(found.entries) if len(self.fixed) == found.size else None
        elif held.named_as is not None:
            names = tuple(self.text(line) for line in held.named_as.tolist())
        elif pixels is not None and self.pictures is not None and self.pictures.reads(pixels):
            names = self.pictures.name(layer.name, found.size, pixels, len(found.entries))
            if names is not None and (names[0].grid is None or not fits_grid(found, names[0].grid)):
                names = None
        layer.placement = replace(found, names=names)

    def rows_of(
        self, layer: Layer, held: LayerCapture, kept: BeamAncestry | None, pixels: tuple[int, ...] | None
    ) -> Named | None:
        """Names of its rows: strings that were given, the ids that were fed, or the patches of a picture."""
        count, ids = layer.weights.shape[-2], ids_of(held, kept)
        if self.fixed is not None:
            return (self.fixed,) * layer.batch if len(self.fixed) == count else None
        if ids is not None and ids.shape[-1] == count:
            ids = ids.expand(layer.batch, -1) if ids.shape[0] == 1 else ids
            return tuple(self.text(line) for line in ids.tolist()) if len(ids) == layer.batch else None
        if pixels is None or self.pictures is None or not self.pictures.reads(pixels):
            return None
        if not reads_picture(layer, held) or {LayerState.PARTS_OF_PICTURE, LayerState.CHANNELS} & set(layer.states):
            return None
        if are_channels(count, layer.heads, held.stream):
            return None
        return self.pictures.name(layer.name, count, pixels, layer.batch)

    @staticmethod
    def without_latents(
        layer: Layer, named: Named | None, layers: Sequence[Layer], rows: list[Named | None]
    ) -> Named | None:
        """Names without those of patches for rows that look at another input, where no other layer has such patches.

        Learned queries, which gather what a picture shows, may be as many as its patches could be.
        """
        if named is None or named[0].grid is None or layer.kind != "cross":
            return named
        sure = (one[0].grid for other, one in zip(layers, rows) if one is not None and other.kind != "cross")
        return named if named[0].grid in sure else None

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
        if held.rows_from is not None:
            return held.rows_from.why if held.rows_from.why != FLOATS else ""
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

    def columns(self, kind: str, weights: AttentionMap, queries: Named | None, sources: list[Named]) -> Named | None:
        b, q, k = weights.shape[0], weights.shape[-2], weights.shape[-1]
        if kind != "cross" and queries is not None and q == k:
            return queries
        if self.fixed is not None:
            return (self.fixed,) * b if len(self.fixed) == k else None
        if kind == "self" and queries is not None and q < k and end_with_rows(weights):  # from before the watch began
            before = tuple(f"slot {i}" for i in range(k - q))
            return tuple(Tokens((*before, *tokens.shown)) for tokens in queries)
        if kind != "cross" or len(sources) != 1:
            return None
        return tuple(tokens for tokens in sources[0] for _ in range(b // len(sources[0])))  # beams share their source

    def locations(self, layer: Layer, pixels: tuple[int, ...] | None) -> Named | None:
        """Names of keys that were made of the picture alone: its locations, where the model speaks of patches."""
        if pixels is None or self.pictures is None or not self.pictures.patches:
            return None
        return self.pictures.name(layer.name, layer.weights.shape[-1], pixels, layer.batch)

    def keys_of(self, layer: Layer, origin: Origin) -> Named | None:
        """Names of keys that were handed to a layer; beams share those of their entry."""
        if origin.ids is None:
            return None
        ids = origin.ids[None] if origin.ids.ndim == 1 else origin.ids
        if ids.shape[-1] != layer.weights.shape[-1] or layer.batch % len(ids):
            return None
        return tuple(self.text(line) for line in ids.tolist() for _ in range(layer.batch // len(ids)))

    def text(self, ids: list[int]) -> Tokens:
        key = tuple(ids)
        if key not in self.known:
            if self.read is None:
                self.known[key] = Tokens(tuple(str(i) for i in ids), ids=key)
            else:
                self.known[key] = self.read(ids)
        return self.known[key]


def end_with_rows(weights: AttentionMap) -> bool:
    """Whether the last keys of a map are its rows, so that the others came before: no row sees one after its own."""
    q, k = weights.shape[-2:]
    rows = torch.arange(0, q, max(1, q // SOME)) if q > 1 else torch.tensor([0])
    try:
        seen = weights[0, 0, rows] != 0
    except Stale:  # a cache that was written to later: who asks for the map is told, its names are not known
        return False
    own = rows + k - q
    after = torch.arange(k) > own[:, None]
    return bool(seen.gather(1, own[:, None]).any()) and not bool((seen & after).any())


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
