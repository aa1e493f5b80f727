"""From the words and arrays of a file to its trace: every array is found, fits the others and holds what it may."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from regard.attention.map import AttentionMap, DropoutRecord
from regard.attention.map.placed import NOWHERE
from regard.attention.map.source import MapPiece, Source
from regard.attention.map.stitched import StitchedSource
from regard.attention.mask import Mask, Sizes
from regard.attention.mask.spans import SpanMask
from regard.attention.weigh.softmax import softmax
from regard.errors import TraceError
from regard.tokens import Tokens
from regard.trace.file.array import FileArray
from regard.trace.file.container import Container, open_container
from regard.trace.file.header import parse_json
from regard.trace.file.layers import FileLayer, FileSeen
from regard.trace.file.manifest import (
    BiasWords,
    LayerWords,
    Manifest,
    MaskWords,
    PartWords,
    PlaceWords,
    SeenWords,
    TokensWords,
    manifest_of,
)
from regard.trace.file.maps import FileBits, FileComputed, FileDiagonals, FileStored
from regard.trace.record.even import WholeRows, even_softmax
from regard.trace.record.findings import LayerState
from regard.trace.record.layer import Layer
from regard.trace.record.missed import MissedAttention
from regard.trace.record.placement import Placement
from regard.trace.record.trace import Run, Trace

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SMALL = 1 << 26  # cells of maps that any file may have
NARROWEST = 1 << 8  # a byte of the file may stand for its size divided by this: heads of 4 channels in half precision
MOST = 1 << 14  # and for so many at most: a million tokens in heads of 32 channels
Side = int | tuple[int, ...] | None  # what an axis may be: one size, one of some, any


class Axes(NamedTuple):
    """The sizes of a map."""

    b: int
    h: int
    q: int
    k: int


def read_trace(path: Path, *, known_as: Path | None = None) -> Trace:
    """The trace of a file that was found to be sound from the first word to the last; `known_as` is its later name."""
    file = open_container(path)
    if "regard" not in file.metadata:
        raise TraceError(
            f"{path} is a safetensors file, but no trace: it has no manifest; give a file from trace.save"
        ).with_code("file.bare")
    words = parse_json(path, file.metadata["regard"], at_most=max(1 << 18, file.size >> 4))
    manifest = manifest_of(path, words)
    _ = file.digests  # without them nothing else is believed
    trace = TraceReader(file, manifest).trace()
    file.path = known_as or path
    return trace


class TraceReader:
    """Reads one file; each array, mask and bias that layers share is made once."""

    def __init__(self, file: Container, manifest: Manifest) -> None:
        self.file, self.manifest, self.path = file, manifest, file.path
        self.where = "the manifest"
        self.left = max(SMALL, file.size * min(MOST, file.size // NARROWEST))  # cells that there may still be
        self.arrays: dict[str, FileArray] = {}
        self.masks: dict[tuple[MaskWords, Axes], Mask | None] = {}
        self.biases: dict[tuple[BiasWords, Axes], FileArray | FileDiagonals] = {}
        self.tokens = [self.tokens_of(words) for words in manifest.tokens]

    def wrong(self, what: str) -> TraceError:
        return TraceError(f"{self.path} is damaged at {self.where:.120}: {what}").with_code(
            "file.damaged", where=f"{self.where:.120}"
        )

    def trace(self) -> Trace:
        runs = []
        for number, run in enumerate(self.manifest.runs):
            layers = []
            for words in run.layers:
                self.where = f"run {number}, {words.name}"
                layers.append(self.layer(words))
            refused = {one.name: one.why for one in run.refused}
            missed = [MissedAttention(one.name, one.what, one.count) for one in run.missed]
            runs.append(Run(layers, list(run.notes), refused, list(run.edits), missed))
        said = self.manifest
        return Trace(runs, notes=list(said.notes), model=said.model, fingerprint=said.fingerprint)

    def spend(self, *sizes: int) -> None:
        """Raise where all maps together are more work than a file of this size can justify; sizes of 0 count as 1."""
        self.left -= math.prod(max(1, size) for size in sizes)
        if self.left < 0:
            raise TraceError(
                f"{self.path} has {self.file.size} bytes, too few for its maps (at {self.where:.120}: {sizes}); it is "
                "damaged or was made to do harm"
            ).with_code("file.greedy")

    def layer(self, words: LayerWords) -> Layer:
        b, h, q, k = axes = Axes(*words.shape)
        if max(axes) > self.file.size:
            raise self.wrong(f"a map of {tuple(axes)} does not come from a file of {self.file.size} bytes")
        self.spend(*axes)
        dropped = None if words.dropped is None else DropoutRecord(words.dropped.p, words.dropped.seed)
        weights = AttentionMap(self.map(words.parts, axes), dropped=dropped)
        found = FileLayer(
            words.name,
            words.kind,
            weights,
            door=words.door,
            queries=self.sequences_of(words.queries, b, q),
            keys=self.sequences_of(words.keys, b, k),
            seen=None if words.seen is None else self.read_proof_sample(words.seen, axes),
            notes=list(words.notes),
            states=[LayerState(state) for state in words.states],
            doubts=list(words.doubts),
            edits=list(words.edits),
        )
        found.placement = None if words.place is None else self.place(words.place, axes)
        found.q = self.array(words.q, (1, b), None, q, None)
        found.k = self.array(words.k, (1, b), None, None, None)
        found.v = self.array(words.v, (1, b), None, None, None)
        found.gradient = self.array(words.gradient, (1, b), h, q, None)
        return found

    def place(self, words: PlaceWords, axes: Axes) -> Callable[[], Placement]:
        """Where windows stand on a whole, read and checked when somebody asks."""
        b, _, q, k = axes
        entries = self.sure(words.entries, None, None, kinds=(torch.int32,))
        batch, windows = entries.shape
        if batch * windows != b or words.size > windows * q:
            raise self.wrong(f"{batch} × {windows} windows of {q} rows make no whole of {words.size} from {b} entries")
        rows = self.sure(words.rows, windows, q, kinds=(torch.int32,))
        columns = self.sure(words.columns, windows, k, kinds=(torch.int32,))
        grid = None if words.grid is None else (words.grid[0], words.grid[1])
        names = self.sequences_of(words.names, batch, words.size)

        def read() -> Placement:
            found = Placement(
                entries.tensor().long(), rows.tensor().long(), columns.tensor().long(), words.size, grid, names
            )
            whole = torch.equal(found.entries.flatten().sort().values, torch.arange(b))
            outside = any(bool(((x < NOWHERE) | (x >= words.size)).any()) for x in (found.rows, found.columns))
            if not whole or outside:
                raise self.wrong("windows are placed where the whole has no position")
            return found

        return read

    def map(self, parts: list[PartWords], axes: Axes) -> Source:
        """The map of all parts: stored weights stand alone, computed rows stand one below the other."""
        if parts[0].weights is not None:
            return self.stored(parts, axes)
        stitches, at = [], 0
        for part in parts:
            (first, stop), (left, right) = part.rows, part.columns
            if first != at or stop < first or not left <= right <= axes.k:
                raise self.wrong(f"rows {first} to {stop} with keys {left} to {right} are no part of {tuple(axes)}")
            stitches.append(MapPiece(self.computed(part, Axes(axes.b, axes.h, stop - first, right - left)), left))
            at = stop
        if at != axes.q:
            raise self.wrong(f"its parts have {at} rows, but the map has {axes.q}")
        if len(stitches) == 1 and stitches[0].source.sizes.k == axes.k:
            return stitches[0].source
        return StitchedSource(stitches, width=axes.k)

    def stored(self, parts: list[PartWords], axes: Axes) -> FileStored:
        (part,), (b, h, q, k) = parts[:1], axes
        if len(parts) > 1 or part.rows != [0, q] or part.columns != [0, k] or part.q is not None or part.k is not None:
            raise self.wrong("stored weights are all of a map, and nothing stands beside them")
        return FileStored(self.sure(part.weights, b, h, q, k), self.mask(part.mask, axes))

    def computed(self, part: PartWords, axes: Axes) -> FileComputed:
        b, h, rows, columns = axes
        q = self.sure(part.q, (1, b), (1, h), rows, None)
        k = self.sure(part.k, (1, b), None, columns, q.shape[-1])
        heads = k.shape[1]
        if not q.shape[-1] and rows and columns:
            raise self.wrong("q and k have no channels, so they decide no map")
        if not heads or (heads != h and (h % heads or q.shape[1] != h)) or b not in (q.shape[0], k.shape[0]):
            raise self.wrong(f"q of shape {tuple(q.shape)} and k of shape {tuple(k.shape)} do not make {tuple(axes)}")
        if part.weights is not None:
            raise self.wrong("a part has q and k, or weights, not both")
        sink = self.array(part.sink, (1, b), (1, h), (1, rows), 1)
        if sink is not None and part.weigh != "softmax":
            raise self.wrong("a sink belongs to softmax")
        mask = self.mask(part.mask, axes)
        return FileComputed(
            q,
            k,
            Sizes((b, h), rows, columns),
            scale=part.scale,
            mask=WholeRows(mask) if mask is not None and part.weigh == "even" else mask,
            bias=self.bias(part.bias, axes),
            softcap=part.softcap,
            sink=sink,
            weigh=softmax if part.weigh == "softmax" else even_softmax,
        )

    def mask(self, words: MaskWords | None, axes: Axes) -> Mask | None:
        if words is None:
            return None
        if (words, axes) not in self.masks:
            self.masks[words, axes] = self.bits(words, axes) if words.start is None else self.spans(words, axes)
        return self.masks[words, axes]

    def spans(self, words: MaskWords, axes: Axes) -> SpanMask:
        b, h, q, k = axes
        start = self.sure(words.start, (1, b), (1, h), (1, q), kinds=(torch.int32,)).tensor()
        stop = self.sure(words.stop, *start.shape, kinds=(torch.int32,)).tensor()
        inside = not start.numel() or (int(start.min()) >= 0 and bool((start <= stop).all()) and int(stop.max()) <= k)
        if words.bits is not None or not inside:
            raise self.wrong(f"a run of keys does not lie within the {k} keys")
        return SpanMask(start, stop)

    def bits(self, words: MaskWords, axes: Axes) -> FileBits:
        b, h, q, k = axes
        if words.stop is not None:
            raise self.wrong("a mask says where runs of keys stop, but not where they start")
        return FileBits(self.sure(words.bits, (1, b), (1, h), (1, q), -(-k // 8), kinds=(torch.uint8,)))

    def bias(self, words: BiasWords | None, axes: Axes) -> FileArray | FileDiagonals | None:
        if words is None:
            return None
        if (words, axes) not in self.biases:
            b, h, q, k = axes
            if (words.tensor is None) == (words.diagonals is None):
                raise self.wrong("a bias is a tensor or diagonals")
            if words.tensor is not None:
                found: FileArray | FileDiagonals = self.sure(words.tensor, (1, b), (1, h), (1, q), (1, k))
            else:
                found = FileDiagonals(self.sure(words.diagonals, (1, h), q + k - 1), keys=k, heads=h)
            self.biases[words, axes] = found
        return self.biases[words, axes]

    def read_proof_sample(self, words: SeenWords, axes: Axes) -> FileSeen:
        b, h, q, k = axes
        rows, keys = len(words.rows), {k, words.keys or k}
        if any(row >= q for row in words.rows) or max(keys) > self.file.size:
            raise self.wrong(f"rows were seen that the map of {q} rows does not have")
        self.spend(b, h, rows, max(keys))
        found = FileSeen(
            tuple(words.rows), causal=words.causal, scale=words.scale, dropout=words.dropout, keys=words.keys
        )
        found.mix = self.array(words.mix, (1, b), h, rows, None)
        found.allowed = self.array(words.allowed, (1, b), (1, h), (1, rows), (1, *keys), kinds=(torch.bool, *FLOATS))
        found.weights = self.array(words.weights, (1, b), (1, h), rows, tuple(keys))
        return found

    def sequences_of(self, numbers: list[int] | None, batch: int, length: int) -> tuple[Tokens, ...] | None:
        """The tokens of every batch entry."""
        if numbers is None:
            return None
        if len(numbers) != batch or any(number >= len(self.tokens) for number in numbers):
            raise self.wrong(f"{len(numbers)} sequences of tokens are named for a batch of {batch}")
        found = tuple(self.tokens[number] for number in numbers)
        if any(len(one) != length for one in found):
            raise self.wrong(f"tokens are named that are not {length}")
        return found

    def tokens_of(self, words: TokensWords) -> Tokens:
        offsets = (
            None if words.offsets is None else tuple(None if at is None else (at[0], at[1]) for at in words.offsets)
        )
        end = math.inf if words.text is None else len(words.text)
        if offsets is not None and any(at is not None and not at[0] <= at[1] <= end for at in offsets):
            raise self.wrong("a token lies outside of its text")
        if words.grid is not None and not 0 < words.grid[0] * words.grid[1] <= len(words.shown):
            raise self.wrong(f"{len(words.shown)} tokens are no grid of {words.grid[0]} × {words.grid[1]}")
        try:
            return Tokens(
                tuple(words.shown),
                None if words.ids is None else tuple(words.ids),
                offsets,
                None if words.special is None else tuple(words.special),
                None if words.words is None else tuple(words.words),
                words.text,
                None if words.grid is None else (words.grid[0], words.grid[1]),
            )
        except TraceError as error:
            raise self.wrong(str(error)) from error

    def array(self, name: str | None, *shape: Side, kinds: tuple[torch.dtype, ...] = FLOATS) -> FileArray | None:
        """The array of this name, if its shape and kind are among those wanted; None for no name."""
        return None if name is None else self.sure(name, *shape, kinds=kinds)

    def sure(self, name: str | None, *shape: Side, kinds: tuple[torch.dtype, ...] = FLOATS) -> FileArray:
        """The same where there has to be one."""
        info = None if name is None else self.file.infos.get(name)
        if name is None or info is None:
            raise self.wrong(f"there is no array {name!r:.80}")
        fits = len(info.shape) == len(shape) and all(map(one_of, info.shape, shape))
        if not fits or info.dtype not in kinds:
            raise self.wrong(f"the array {name!r:.80} of shape {info.shape} and {info.dtype} is not what belongs there")
        if name not in self.arrays:
            self.arrays[name] = self.file[name]
        return self.arrays[name]


def one_of(size: int, side: Side) -> bool:
    return side is None or size == side or (isinstance(side, tuple) and size in side)
