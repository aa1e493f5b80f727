"""From a trace to the words and arrays of its file."""

import hashlib
import math
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from regard.attention.axes.as_4d import add_leading_axes
from regard.attention.map import Computed
from regard.attention.map.blocks import BUDGET, walk_blocks
from regard.attention.map.source import Source
from regard.attention.map.stored import Stored
from regard.attention.mask import Mask, Sizes
from regard.attention.mask.bits import Bits
from regard.attention.mask.spans import SpanMask
from regard.attention.score.bias import Bias
from regard.errors import TraceError
from regard.positions.alibi import ALiBi
from regard.positions.buckets import Buckets
from regard.tokens import Tokens
from regard.trace.file.array import FileArray, unread
from regard.trace.file.manifest import VERSION
from regard.trace.file.stream import Writer
from regard.trace.record.compact import compact_any_mask, compact_mask, drop_expanded_axes
from regard.trace.record.diagonals import Diagonals
from regard.trace.record.even import WholeRows
from regard.trace.record.layer import Layer, ProofSample
from regard.trace.record.placement import Placement
from regard.trace.record.trace import Trace

HALVES = re.compile("[\ud800-\udfff]")
BY_DISTANCE = (ALiBi, Buckets)  # biases that are known to depend on nothing but key − query


def mask_of(source: Source) -> Mask | None:
    """What a map hides that has no mask of its own to say so, such as an edited one; small."""
    allowed = source.allowed()
    *lead, q, k = source.shape  # of a choice of heads the sizes are still those of all
    return None if allowed is None else compact_mask(add_leading_axes(allowed, 2), Sizes(tuple(lead), q, k))


class ManifestWriter:
    """Puts the arrays of a trace into a file and keeps the words about them; what is shared is written once."""

    def __init__(self, writer: Writer, *, budget: int) -> None:
        self.writer, self.left, self.budget = writer, budget, budget
        self.names: dict[int, str] = {}
        self.taken: set[str] = set()
        self.tokens: dict[Tokens, int] = {}
        self.masks: dict[tuple[int, Sizes], tuple[Mask, Mask | None]] = {}
        self.small: dict[bytes, Mask] = {}
        self.biases: dict[tuple[int, Sizes], tuple[Any, Tensor | Diagonals]] = {}
        self.where = ""

    def trace(self, trace: Trace) -> dict[str, Any]:
        """The manifest."""
        runs = []
        for number, run in enumerate(trace.runs):
            layers = []
            for layer in run.layers:
                self.where = f"{number}/{layer.name}"
                layers.append(self.layer(layer))
            refused = [{"name": name, "why": why} for name, why in run.refused.items()]
            missed = [{"name": one.name, "what": one.what, "count": one.count} for one in run.missed]
            words = {"layers": layers, "notes": list(run.notes), "refused": refused, "missed": missed}
            runs.append({**words, "edits": list(run.changes)})
        return {
            "version": VERSION,
            "model": trace.model,
            "fingerprint": trace.fingerprint,
            "tokens": [tokens_words(tokens) for tokens in self.tokens],
            "runs": runs,
            "notes": list(trace.notes),
        }

    def layer(self, layer: Layer) -> dict[str, Any]:
        if len(layer.weights.shape) != 4:
            raise TraceError(f"the map of {layer.name} has shape {layer.weights.shape}; a file keeps (b, h, q, k)")
        notes = list(layer.notes)
        parts = self.parts(layer, notes)
        dropped = layer.weights.dropped
        return {
            "name": layer.name,
            "kind": layer.kind,
            "door": layer.door,
            "shape": list(layer.weights.shape),
            "parts": parts,
            "q": self.array("q", unread(layer, "q")),
            "k": self.array("k", unread(layer, "k")),
            "v": self.array("v", unread(layer, "v")),
            "gradient": self.array("gradient", unread(layer, "gradient")),
            "queries": self.number_sequences(layer.queries),
            "keys": self.number_sequences(layer.keys),
            "seen": None if layer.seen is None else self.write_proof_sample(layer.seen),
            "place": None if layer.placement is None else self.place(layer.placement),
            "dropped": None if dropped is None else {"p": float(dropped.p), "seed": dropped.seed},
            "notes": notes,
            "states": list(layer.states),
            "doubts": list(layer.doubts),
            "edits": list(layer.edits),
        }

    def parts(self, layer: Layer, notes: list[str]) -> list[dict[str, Any]]:
        """The map: computed rows by q and k, all others by their weights."""
        source = layer.weights.source
        b, h, q, k = layer.weights.shape
        pieces = source.pieces()
        if pieces and all(is_plain(piece.source) for piece in pieces):
            return [
                {"rows": ends(piece.rows), "columns": ends(piece.columns)} | self.computed(piece.source)
                for piece in pieces
            ]
        whole = {"rows": [0, q], "columns": [0, k]}
        stored = source.stored
        if stored is not None:
            mask = self.mask(stored.mask, stored.sizes) if is_whole(stored) else None
            return [whole | {"weights": self.array("weights", unread(stored, "kept")), "mask": mask}]
        size = math.prod(layer.weights.shape) * source.dtype.itemsize
        self.left -= size
        if self.left < 0:
            raise TraceError(
                f"the map of {layer.name} can only be kept as weights, {size} bytes, and the budget for such maps is "
                f"{self.budget} bytes; save fewer layers with layers=, or raise budget="
            )
        notes.append(f"the map was {describe(source)} and is kept in the file as weights")
        index = self.writer.put_blocks(in_order(source), (b, h, q, k), source.dtype)
        return [whole | {"weights": self.name(index, "weights"), "mask": self.small_mask(mask_of(source))}]

    def computed(self, source: Computed) -> dict[str, Any]:
        source.check_fresh()
        sink = None if source.sink is None else drop_expanded_axes(add_leading_axes(source.sink, 2))
        return {
            "q": self.array("q", with_lead(unread(source, "q"))),
            "k": self.array("k", with_lead(unread(source, "k"))),
            "scale": float(source.scale),
            "softcap": None if source.softcap is None else float(source.softcap),
            "sink": self.array("sink", sink),
            "weigh": "softmax" if source.is_softmax else "even",
            "mask": self.mask(source.mask, source.sizes),
            "bias": self.bias(unread(source, "bias"), source.sizes),
        }

    def mask(self, mask: Mask | None, sizes: Sizes) -> dict[str, Any] | None:
        mask = mask.inner if isinstance(mask, WholeRows) else mask
        if mask is None:
            return None
        key = (id(mask), sizes)
        if key not in self.masks:
            self.masks[key] = (
                mask,
                compact_any_mask(mask, sizes),
            )  # the mask itself is held so that its id stays its own
        return self.small_mask(self.masks[key][1])

    def small_mask(self, small: Mask | None) -> dict[str, Any] | None:
        if small is not None:
            small = self.small.setdefault(digest(small), small)  # layers often make equal masks of their own
        if isinstance(small, SpanMask):
            return {"start": self.array("mask/start", small.start), "stop": self.array("mask/stop", small.stop)}
        return {"bits": self.array("mask/bits", unread(small, "bits"))} if isinstance(small, Bits) else None

    def bias(self, bias: Tensor | FileArray | Bias | None, sizes: Sizes) -> dict[str, Any] | None:
        if bias is None:
            return None
        if isinstance(bias, FileArray):
            return {"tensor": self.array("bias", bias)}
        key = (id(bias), sizes)
        if key not in self.biases:
            small = (
                drop_expanded_axes(add_leading_axes(bias, 2)) if isinstance(bias, Tensor) else by_distance(bias, sizes)
            )
            self.biases[key] = bias, small
        found = self.biases[key][1]
        if isinstance(found, Diagonals):
            return {"diagonals": self.array("bias/diagonals", unread(found, "values"))}
        return {"tensor": self.array("bias", found)}

    def write_proof_sample(self, seen: ProofSample) -> dict[str, Any]:
        return {
            "rows": [int(row) for row in seen.rows],
            "mix": self.array("seen/mix", unread(seen, "mix")),
            "allowed": self.array("seen/allowed", unread(seen, "allowed")),
            "weights": self.array("seen/weights", unread(seen, "weights")),
            "causal": bool(seen.causal),
            "scale": None if seen.scale is None else float(seen.scale),
            "dropout": float(seen.dropout),
            "keys": None if seen.keys is None else int(seen.keys),
        }

    def place(self, placement: Placement) -> dict[str, Any]:
        """Where windows stand on a whole."""
        arrays = {name: getattr(placement, name).to(torch.int32) for name in ("entries", "rows", "columns")}
        found: dict[str, Any] = {name: self.array(name, x.contiguous()) for name, x in arrays.items()}
        grid = None if placement.grid is None else list(placement.grid)
        return found | {"size": placement.size, "grid": grid, "names": self.number_sequences(placement.names)}

    def number_sequences(self, tokens: tuple[Tokens, ...] | None) -> list[int] | None:
        """The numbers of these sequences in the manifest."""
        return None if tokens is None else [self.tokens.setdefault(one, len(self.tokens)) for one in tokens]

    def array(self, what: str, tensor: Tensor | FileArray | None) -> str | None:
        """The name of the array that holds these numbers."""
        if tensor is None:
            return None
        if isinstance(tensor, FileArray):
            return self.name(self.writer.put(tensor), what)
        tensor = tensor.detach()
        if tensor.ndim == 4 and tensor.shape[0] > 1 and tensor.stride(0) == 0:
            tensor = tensor[:1]  # the same for all of a batch
        return self.name(self.writer.put(tensor), what)

    def name(self, index: int, what: str) -> str:
        if index not in self.names:
            wanted = text(f"{self.where}/{what}")
            name, count = wanted, 1
            while name in self.taken:
                count += 1
                name = f"{wanted}#{count}"
            self.taken.add(name)
            self.names[index] = name
        return self.names[index]


def ends(where: slice) -> list[int]:
    return [where.start, where.stop]


def is_plain(source: Computed) -> bool:
    """Whether q, k and a few words say all: a product, softmax, and nothing that was picked out of a larger map."""
    if not source.is_dot or len(source.sizes.lead) != 2 or not is_whole(source):
        return False
    return source.is_softmax or source.weigher == "even_softmax"


def is_whole(source: Computed | Stored) -> bool:
    """Whether the map's batch and heads are those that its mask and bias count."""
    lead = source.lead
    if lead is None:
        return True
    if len(source.sizes.lead) != 2 or lead.shape != source.sizes.lead:
        return False
    b, h = lead.shape
    return lead.b.flatten().tolist() == list(range(b)) and lead.h.flatten().tolist() == list(range(h))


def describe(source: Source) -> str:
    """How a map came to be, in the notes of what keeps its weights."""
    computed = source.computed
    if computed is None:
        return source.kind
    score = "a product" if computed.score is None else type(computed.score).__name__
    return f"computed by {score} under {computed.weigher}"


def in_order(source: Source) -> Iterator[Tensor]:
    """All weights in the order in which they stand in memory, a few rows at a time."""
    b, h, _, k = source.shape
    for entry in range(b):
        for head in range(h):
            one = source.pick((entry, head))
            for block in walk_blocks(one, BUDGET):
                yield one.weights(block.rows).detach().expand(block.rows.stop - block.rows.start, k)


def with_lead(x: Tensor | FileArray) -> Tensor | FileArray:
    """`x` with an axis for the batch and one for the heads; what is in a file has both."""
    return x if isinstance(x, FileArray) else add_leading_axes(x, 2)


def digest(mask: Mask) -> bytes:
    """The same for two small masks that say the same."""
    found = hashlib.blake2b()
    for part in (
        (mask.start, mask.stop) if isinstance(mask, SpanMask) else (mask.bits,) if isinstance(mask, Bits) else ()
    ):
        found.update(f"{part.dtype} {tuple(part.shape)}".encode())
        found.update(part.detach().cpu().contiguous().numpy().data)
    return found.digest()


@torch.no_grad()
def by_distance(bias: Bias, sizes: Sizes) -> Tensor | Diagonals:
    """One number per diagonal where that says it all, else every number, (1, h, q, k)."""
    q, k = sizes.q, sizes.k
    if isinstance(bias, Diagonals) and bias.keys == k and bias.values.shape[1] == q + k - 1:
        return bias
    queries, keys = torch.arange(q) + sizes.offset, torch.arange(k)
    if not q or not k:
        return torch.zeros(1, 1, 1, 1)
    after, before = bias.block(queries[:1], keys)[:, 0], bias.block(queries[1:], keys[:1])[..., 0]  # h k, h q−1
    found = Diagonals(torch.cat([before.flip(-1), after], -1), keys=k)
    if isinstance(bias, (*BY_DISTANCE, Diagonals)):
        return found
    height = max(1, BUDGET // max(1, bias.heads * k))
    if all(bias.block(rows, keys).equal(found.block(rows, keys)) for rows in queries.split(height)):
        return found
    return bias.block(queries, keys)[None]


def tokens_words(tokens: Tokens) -> dict[str, Any]:
    return {
        "shown": [text(one) for one in tokens.shown],
        "ids": None if tokens.ids is None else [int(one) for one in tokens.ids],
        "offsets": None if tokens.offsets is None else [None if one is None else list(one) for one in tokens.offsets],
        "special": None if tokens.special is None else [bool(one) for one in tokens.special],
        "words": None if tokens.words is None else [None if one is None else int(one) for one in tokens.words],
        "text": None if tokens.text is None else text(tokens.text),
        "grid": None if tokens.grid is None else list(tokens.grid),
    }


def text(given: str) -> str:
    """The same text as a file can hold it: half a surrogate pair is no character, one mark stands for each."""
    return given if given.isascii() else HALVES.sub("\N{REPLACEMENT CHARACTER}", given)
