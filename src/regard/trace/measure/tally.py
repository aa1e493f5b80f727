"""One walk over the maps of a layer, from which all measures follow: sums over rows, and over how many rows.

The walk is block by block, so it holds O(n) numbers beside one small block, whatever the length.

Which rows count: those that see anything and are not padding. A token is padding where no query of any head may see
it as a key; a mask that lets nobody see itself tells nothing of padding, and then all rows count. Whoever knows better
says so by `rows`. Of stored weights without a mask is taken to be hidden: a key that no query gave any weight, and,
where no query gave any to a later key, everything later (causal).
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.map.blocks import MapBlock, walk_blocks
from regard.attention.map.source import Source
from regard.attention.map.statistics import soften
from regard.attention.mask.base import Cells
from regard.errors import TraceError
from regard.trace.record.layer import Layer

BAND = 128  # offsets up to here are told apart, those beyond are one
EVEN = 1e-5  # a map whose distances from even, squared, stay below this share of its squares has only rounding in them
PLACES = {"itself": 0, "previous": 1, "next": -1}  # how far before the query
POSITIONAL = ("distance", *PLACES)
REPEATS = ("duplicate", "induction")
SPECIAL = "to "  # before the text of a special token


class Unknown(NamedTuple):
    """What is not known of a layer, so that some measures of it have no meaning."""

    what: Literal["sequence", "ids"]
    kind: str = ""

    def sentence(self, name: str) -> str:
        """In words, for a layer of this name."""
        if self.what == "ids":
            return f"the token ids of {name} are not known"
        return f"rows and columns of {name} are not known to be one sequence (kind {self.kind!r})"


@dataclass
class Tally:
    """Sums over the rows that count, each (b, h, …) in float64; `rows` says over how many. Never a map.

    What has no sum is explained in `missing`.
    """

    sums: dict[str, Tensor]
    rows: dict[str, Tensor]
    missing: dict[str, Unknown] = field(default_factory=dict)

    def mean(self, name: str) -> Float[Tensor, "b h"]:
        """The mean of one measure, (b, h); NaN where no row counts."""
        if name not in self.sums:
            return torch.full_like(self.rows["rows"], torch.nan)
        return self.sums[name] / self.rows[name].masked_fill(self.rows[name] == 0, torch.nan)


class BatchEntry(NamedTuple):
    """One entry of a batch: its maps, and what is known of its tokens."""

    number: int
    source: Source  # h q k
    chained: bool  # whether rows and columns are the same sequence
    place: Int[Tensor, " q"]  # the column at which each row stands, ends aligned
    counted: Bool[Tensor, " q"]
    hidden: Bool[Tensor, " k"]  # the keys that nobody sees
    causal: bool  # whether later keys are hidden, of weights without a mask
    first: int  # the first key that anybody sees
    query_ids: Int[Tensor, " q"] | None
    key_ids: Int[Tensor, " k"] | None
    special: dict[str, Int[Tensor, " n"]]  # text → columns
    rare: Bool[Tensor, " k"] | None


class BlockRows(NamedTuple):
    """The rows of one block, made ready: shares, entropies, who may be seen, and who counts."""

    weights: Float[Tensor, "*h r c"]
    entropy: Float[Tensor, "*h r"]
    visible: Bool[Tensor, "..."]  # broadcasts to the weights
    blind: Bool[Tensor, "*h r"]
    place: Int[Tensor, " r"]  # relative to the first column of the block


@torch.no_grad()
def tally(layer: Layer, *, rows: Tensor | None = None, rare: Tensor | None = None, offsets: bool = False) -> Tally:
    """All sums of one layer by one walk over its maps.

    `rows` (b, q) is True for the rows that count. `rare` (b, k) is True for the keys that are rare words: gives the
    sums "rare", what they get, and "fair", what they would get if each row gave alike to all it sees.
    `offsets` adds what `positional` needs.
    """
    b, h, q, k = layer.weights.shape
    for name, given, wanted in (("rows", rows, (b, q)), ("rare", rare, (b, k))):
        if given is not None and tuple(given.shape) != wanted:
            raise TraceError(f"{name} has shape {tuple(given.shape)}, but {layer.name} needs {wanted}")
    found = Tally({}, {name: torch.zeros(b, h, dtype=torch.float64) for name in ("rows", "blind")})
    if layer.kind != "self":
        found.missing |= dict.fromkeys((*POSITIONAL, *REPEATS), Unknown("sequence", layer.kind))
    for index in range(b):
        entry = entry_of(layer, index, rows, rare)
        if entry.chained and entry.key_ids is None:
            found.missing |= dict.fromkeys(REPEATS, Unknown("ids"))
        for block in walk_blocks(entry.source):
            add(found, entry, block, offsets=offsets)
    return found


def entry_of(layer: Layer, index: int, rows: Tensor | None, rare: Tensor | None) -> BatchEntry:
    source: Source = layer.weights.source.pick((index,))
    q, k = source.shape[-2:]
    chained = layer.kind == "self"
    device = source.device
    hidden, padded = unseen(source, chained=chained)
    counted = ~padded if rows is None else rows[index].to(device, torch.bool)
    keys = None if layer.keys is None else layer.keys[index]
    queries = None if layer.queries is None else layer.queries[index]
    ids: list[Tensor | None] = [
        None if some is None or some.ids is None or len(some.ids) != size else torch.tensor(some.ids, device=device)
        for some, size in ((queries, q), (keys, k))
    ]
    if not chained or ids[0] is None or ids[1] is None:
        ids = [None, None]
    special: dict[str, list[int]] = {}
    if keys is not None and keys.special is not None:
        for column, (shown, is_special) in enumerate(zip(keys.shown, keys.special)):
            if is_special and column < k and not hidden[column]:
                special.setdefault(SPECIAL + shown, []).append(column)
    return BatchEntry(
        index,
        source,
        chained,
        torch.arange(q, device=device) + k - q,
        counted,
        hidden,
        chained and maskless(source) and looks_back(source),
        int((~hidden).int().argmax()) if k else 0,
        ids[0],
        ids[1],
        {name: torch.tensor(columns, device=device) for name, columns in special.items()},
        None if rare is None else rare[index].to(device),
    )


def unseen(source: Source, *, chained: bool) -> tuple[Bool[Tensor, " k"], Bool[Tensor, " q"]]:
    """The keys that no query of any head may see, and the rows that stand at such keys.

    A key that its own query sees is seen, so the diagonal, O(n), answers for most masks without a walk.
    """
    q, k = source.shape[-2:]
    seen = torch.zeros(k, dtype=torch.bool, device=source.device)
    nobody = torch.zeros(q, dtype=torch.bool, device=source.device)
    if source.computed is not None and source.mask is None:
        return ~torch.ones_like(seen), nobody
    own = diagonal(source) if chained and k >= q else None
    if own is not None:
        seen[k - q :] = own
    for block in walk_blocks(source):
        if bool(seen.all()):
            break
        allowed = block.part.allowed(block.rows, block.columns)
        if allowed is None:
            allowed = block.part.weights(block.rows, block.columns) > 0
        across = allowed.any(-2).flatten(0, -2).any(0) if allowed.ndim > 2 else allowed.any(-2)
        seen[block.columns] |= across
    if not chained or k < q or (own is not None and not bool(own.any())):
        return ~seen, nobody
    return ~seen, ~seen[k - q :]


def maskless(source: Source) -> bool:
    """Whether nothing says who may be seen, though somebody may have been hidden."""
    return source.computed is None and source.mask is None


def looks_back(source: Source) -> bool:
    """Whether no query gave any weight to a later key."""
    q, k = source.shape[-2:]
    for block in walk_blocks(source):
        weights = block.part.weights(block.rows, block.columns)
        if bool((weights.triu(block.rows.start + k - q + 1 - block.columns.start) > 0).any()):
            return False
    return True


def diagonal(source: Source) -> Bool[Tensor, " q"] | None:
    """Whether each query may see itself, in any head; None where that cannot be told without a walk."""
    q, k = source.shape[-2:]
    mask, stored = source.mask, source.stored
    if mask is not None:
        lead = source.leading_index()
        i = torch.arange(q, device=source.device)
        own = mask.cell(Cells(lead.b[..., None], lead.h[..., None], i, i + k - q), source.sizes)
    elif stored is not None:
        own = stored.kept.diagonal(k - q, -2, -1) > 0
    else:
        return None
    return own.expand(*own.shape[:-1], q).flatten(0, -2).any(0) if own.ndim > 1 else own.expand(q)


def rows_of(block: MapBlock, entry: BatchEntry) -> BlockRows:
    """Weights and entropies of a block with one computation of its scores, and one of its mask."""
    part = block.part
    height, width = block.shape[-2:]
    allowed = part.allowed(block.rows, block.columns)
    computed = part.computed
    if computed is not None and computed.is_softmax:
        scores = computed.scores_into(block.room("scores"), block.rows, block.columns)
        scores = scores if allowed is None else scores.masked_fill_(~allowed, -torch.inf)
        shifted, _, extra, blind = soften(block, scores)
        powers = torch.exp(shifted, out=block.room("powers"))
        seen = powers.sum(-1, keepdim=True)
        total = (seen + extra).masked_fill_(blind, 1.0)
        entropy = (seen * total.log() - shifted.mul_(powers).sum(-1, keepdim=True)) / total  # Σ w (log Z − s)
        weights = powers.div_(total).masked_fill_(blind, 0.0)
        entropy, blind = entropy.squeeze(-1), blind.squeeze(-1)
    else:
        weights = part.weights(block.rows, block.columns).expand(block.shape)
        entropy, blind = torch.special.entr(weights).sum(-1), weights.sum(-1) == 0
    place = entry.place[block.rows] - block.columns.start
    if allowed is None:
        allowed = ~entry.hidden[None, block.columns]
        if entry.causal:
            allowed = allowed & (torch.arange(width, device=part.device) <= place[:, None])
    return BlockRows(weights, entropy, allowed.expand(*allowed.shape[:-2], height, width), blind, place)


def add(found: Tally, entry: BatchEntry, block: MapBlock, *, offsets: bool) -> None:
    """Add one block to the sums."""
    here = (entry.number, *block.lead)
    rows = rows_of(block, entry)
    counts = entry.counted[block.rows] & ~rows.blind  # … r
    found.rows["blind"][here] += rows.blind.sum(-1).cpu()
    found.rows["rows"][here] += counts.sum(-1).cpu()
    if not rows.weights.shape[-1]:
        return

    def put(name: str, values: Tensor, where: Tensor | None = None) -> None:
        """Add one number per row, over the rows that count and, where given, have something to look at."""
        used = counts if where is None else counts & where
        for kept, what in ((found.sums, values.double() * used), (found.rows, used)):
            if name not in kept:
                kept[name] = torch.zeros_like(found.rows["rows"])
            kept[name][here] += what.sum(-1).cpu()

    put("entropy", rows.entropy)
    put("sink", at(rows.weights, torch.full_like(rows.place, entry.first - block.columns.start)))
    for name, columns in entry.special.items():
        inside = columns[(columns >= block.columns.start) & (columns < block.columns.stop)] - block.columns.start
        put(name, rows.weights.index_select(-1, inside).sum(-1))
    if entry.chained:
        put("distance", distance(rows, block))
        for name, before in PLACES.items():
            column = rows.place - before
            put(name, at(rows.weights, column), None if not before else at(rows.visible, column))
        if entry.query_ids is not None and entry.key_ids is not None:
            pairs = alike(entry.query_ids[block.rows], entry.key_ids, block)
            other = pairs[:, pairs[1] != rows.place[pairs[0]]]
            put("duplicate", *gather(rows, other))
            earlier = pairs[:, pairs[1] < rows.place[pairs[0]]]
            put("induction", *gather(rows, torch.stack([earlier[0], earlier[1] + 1])))
    if entry.rare is None and not offsets:
        return
    keys = rows.visible.sum(-1).clamp_min(1)  # … r: how many keys each row sees
    if entry.rare is not None:
        rare = entry.rare[block.columns].to(rows.weights.dtype)
        put("rare", rows.weights @ rare)
        put("fair", (rows.visible.to(rare.dtype) @ rare) / keys)
    if offsets and entry.chained:
        add_offsets(found, here, rows, counts, keys)


def at(values: Tensor, column: Int[Tensor, " r"]) -> Tensor:
    """One column of each row, (…, r); 0 or False where it lies outside of the block."""
    height, width = values.shape[-2:]
    inside = (column >= 0) & (column < width)
    index = torch.arange(height, device=values.device)
    return values[..., index, column.clamp(0, max(width - 1, 0))] * inside


def distance(rows: BlockRows, block: MapBlock) -> Float[Tensor, "*h r"]:
    """Mean |i − j| of each row under its weights."""
    weights = rows.weights
    far = block.scratch("far", tuple(weights.shape[-2:]), weights.dtype, weights.device)
    keys = torch.arange(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    torch.sub(rows.place.to(weights.dtype)[:, None], keys, out=far).abs_()
    away = torch.mul(weights, far, out=block.room("away")).sum(-1)
    total = weights.sum(-1)
    return away / total.masked_fill(total == 0, 1.0)


def alike(query_ids: Int[Tensor, " r"], key_ids: Int[Tensor, " k"], block: MapBlock) -> Int[Tensor, "two n"]:
    """Row and column of every query and key with the same token; columns relative to the block.

    One more column before the block is looked at, because the key after it may be inside.
    """
    before = min(1, block.columns.start)
    keys = key_ids[block.columns.start - before : block.columns.stop]
    found = (query_ids[:, None] == keys).nonzero().T
    return torch.stack([found[0], found[1] - before])


def gather(rows: BlockRows, pairs: Int[Tensor, "two n"]) -> tuple[Tensor, Tensor]:
    """What each row gives to its pairs, (…, r), and whether it may see any of them."""
    height, width = rows.weights.shape[-2:]
    row, column = pairs[:, (pairs[1] >= 0) & (pairs[1] < width)]
    given = rows.weights.new_zeros((*rows.weights.shape[:-2], height))
    given.index_add_(-1, row, rows.weights[..., row, column])
    visible = rows.visible[..., row, column].to(given.dtype)
    seen = given.new_zeros((*visible.shape[:-1], height)).index_add_(-1, row, visible)
    return given, seen > 0


def add_offsets(found: Tally, here: tuple[int, ...], rows: BlockRows, counts: Tensor, keys: Tensor) -> None:
    """How far each weight lies from an even share, by the offset of the key: sums, cells, and sums of squares."""
    weights, (height, width) = rows.weights, rows.weights.shape[-2:]
    device = weights.device
    even = 1.0 / keys.double()  # … r
    column = rows.place[:, None] - torch.arange(-BAND, BAND + 1, device=device)  # r n
    inside = (column >= 0) & (column < width)
    column = column.clamp(0, width - 1)
    index = torch.arange(height, device=device)[:, None]
    near = rows.visible[..., index, column] & inside & counts[..., None]  # … r n
    away = (weights[..., index, column].double() - even[..., None]) * near
    total = weights.sum(-1).double()
    squares = torch.linalg.vector_norm(weights, dim=-1).double().square()
    spread = (squares - 2 * even * total + even) * counts
    cells, sums = near.double().sum(-2), away.sum(-2)  # … n
    far_cells = (keys * counts).sum(-1) - cells.sum(-1)
    far_sums = ((total - 1) * counts).sum(-1) - sums.sum(-1)
    for name, values in (
        ("offset sums", torch.cat([sums, far_sums[..., None]], -1)),
        ("offset cells", torch.cat([cells, far_cells[..., None]], -1)),
        ("spread", spread.sum(-1)),
        ("even", (even * counts).sum(-1)),
    ):
        if name not in found.sums:
            shape = (*found.rows["rows"].shape, *values.shape[counts.ndim - 1 :])
            found.sums[name] = torch.zeros(shape, dtype=torch.float64)
        found.sums[name][here] += values.cpu()


def positional(sums: dict[str, Tensor]) -> Float[Tensor, "*b"]:
    """The share of what sets a map apart from even attention that the offset of the key alone explains, 0 to 1.

    A weight's distance from an even share, 1 / (keys that its row sees), is split as in an analysis of variance:
    Σ over offsets of (Σ distance)² / cells, over Σ distance². 1 for a head that looks a fixed way back whatever the
    text, near 0 for one that looks for content, 0 for an even one; sums over many texts make it what is common to them.
    """
    cells = sums["offset cells"]
    explained = (sums["offset sums"].square() / cells.clamp_min(1)).sum(-1)
    spread, least = sums["spread"], EVEN * sums["even"]
    return torch.where(spread > least, explained / spread.clamp_min(1e-300), 0.0).clamp(0, 1)
