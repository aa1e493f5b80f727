"""The capture of one attention layer during a run: a cache appends keys, each step adds rows.

Per step only the new rows and the new key columns are kept, after the keys before them were found unchanged, so that
`generate()` costs O(n · d). Positions follow from what the keys say: keys that continue the ones before are the next
positions, keys that repeat an earlier stretch replace what stood there (a rejected draft), keys of which the first
are gone are a sliding cache. Where nothing fits, a new stretch of keys begins, and rows remember whose they are.
Beams change places in a batch: each block remembers which entries its own may have come from.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.attention.axes.as_4d import broadcast_4d
from regard.attention.map import AttentionMap
from regard.attention.mask import Mask, Sizes
from regard.attention.score.bias import Bias
from regard.eager import version, versions
from regard.trace.capture.key_buffer import KeyBuffer
from regard.trace.capture.match import choose, match
from regard.trace.capture.provenance import Origin
from regard.trace.capture.retention import Retention
from regard.trace.change.edits import PlacedEdit
from regard.trace.doors.compact_form import CompactForm, Memo, ShiftedBias
from regard.trace.doors.rows import SAMPLED, row_numbers, sample_rows
from regard.trace.doors.scope import Call
from regard.trace.record.compact import compact_mask, dense_of
from regard.trace.record.findings import Findings, LayerState
from regard.trace.record.layer import Layer, ProofSample
from regard.trace.record.placement import Placement


@dataclass(eq=False)
class CapturedCall:
    """`CapturedCall` keeps q, the new keys and values, mask and bias of one call: its rows, and the keys it brought."""

    q: Tensor | None  # b h r d
    k: Tensor | None  # b g c d: the new columns only
    v: Tensor | None
    sizes: Sizes  # of the call, after keys that nobody sees at the end were cut off
    mask: Mask | None
    bias: Tensor | Bias | None
    uniform: bool  # a row that sees nothing is even, not 0
    row: int  # position of the first row
    column: int  # position of the call's first key
    first_new: int  # position of the first key of `k`
    stretch: int  # which stretch of keys
    seen: ProofSample
    ids: Tensor | None = None
    origins: Tensor | None = None  # b b: entry i may continue entry j of the step before; None: each itself
    weights: Tensor | None = None  # stored weights, b h r c
    map: AttentionMap | None = None
    gradient: Tensor | None = None
    versions: tuple[int | None, ...] = (None,) * 4  # of q, k, v and stored weights when they were kept
    rng: Tensor | None = None  # the random state before a call that dropped weights
    edits: list[PlacedEdit] = field(default_factory=list)  # what editors changed about the map
    step: int = 0  # which call of the model
    layer: Layer | None = None  # what was made of it, so that a later gradient finds it


@dataclass(eq=False)
class LayerCapture(Findings):
    """`LayerCapture` collects the calls of one attention layer during a run, and only what is new in each of them."""

    name: str
    kind: str
    door: str
    keeper: Retention
    blocks: list[CapturedCall] = field(default_factory=list)
    keys: KeyBuffer | None = None  # the keys of the last stretch as they stand, for comparing
    scale: float = 1.0
    softcap: float | None = None
    sink: Tensor | None = None
    dropout: float = 0.0
    rival: bool = False  # the call that was given its tokens was given others of the same length
    outermost: bool = False  # its tokens were given to the whole model, and to no part that it is in
    rows_from: Origin | None = None  # which ids the rows of its first call were embedded from, where that is known
    keys_from: Origin | None = None  # the same for keys that were handed to it
    stream: tuple[int, ...] | None = None  # the shape of what its module was handed, in a run with a picture
    placement: Placement | None = None  # where windows stand on the whole
    named_as: Tensor | None = None  # b n: the ids that the whole was embedded from
    doubt: bool = False  # keys stood at two places, so that where some rows stand was a choice

    def first(self, call: Call, memo: Memo, ids: Tensor | None) -> None:
        self.scale, self.softcap, self.dropout = call.scale, call.softcap, call.dropout
        self.sink = None if call.sink is None else call.sink.detach().clone()
        self.add(call, memo, ids, row=None, column=0, new=0, stretch=0)

    def add(
        self,
        call: Call,
        memo: Memo,
        ids: Tensor | None,
        *,
        row: int | None,
        column: int,
        new: int,
        stretch: int,
        origins: Tensor | None = None,
    ) -> CapturedCall:
        """Keep what is new in a call: its rows, and its keys from its `new`-th on."""
        shape = call.weights.shape if call.q is None and call.weights is not None else None
        if call.map is not None and call.q is None:
            shape = torch.Size(call.map.shape)
        if shape is not None:
            b, h, r, c = (1,) * (4 - len(shape)) + tuple(shape)
            sizes = Sizes((b, h), r, c)
            formed: CompactForm = CompactForm(None, None, False, c)
        else:
            assert call.q is not None
            assert call.k is not None
            b, h, r, _ = call.q.shape
            c = call.k.shape[2]
            sizes = Sizes((b, h), r, c)
            formed = memo.form(call, sizes)
            sizes = sizes if formed.keys == c else Sizes((b, h), r, formed.keys)
        if formed.padding_rows_empty:
            self.mark(LayerState.PADDING_ROWS_EMPTY)
        q = k = v = None
        if call.q is not None and call.k is not None:
            keys = slice(new, sizes.k)
            whole = new == 0 and sizes.k == c
            k_new = call.k if whole else call.k[:, :, keys]
            v_new = None if call.v is None else call.v if whole else call.v[:, :, keys]
            q, k, v = self.keeper.three(call.q, k_new, v_new, cached=call.cached)
        elif call.v is not None and self.keeper.values:
            v = self.keeper.keep(call.v)
        stored = None
        if call.q is None and call.weights is not None:
            stored = self.keeper.keep(call.weights)
        if row is None:
            row = sizes.k - sizes.q if self.kind == "self" and sizes.k > sizes.q and not call.causal else 0
        block = CapturedCall(
            q,
            k,
            v,
            sizes,
            formed.mask,
            formed.bias,
            formed.uniform,
            row,
            column,
            column + new,
            stretch,
            sample_call(call, sizes, formed.keys)
            if self.copies(origins, stretch)
            else ProofSample(dropout=call.dropout),
            ids,
            origins,
            stored,
            call.map if q is None or k is None or self.keeper.as_is else rebase_map(call.map, q, k),
        )
        block.rng = call.rng
        if call.editing is not None:
            block.edits = call.editing.of_map
        block.versions = versions((q, k, v, stored))
        self.blocks.append(block)
        return block

    def copies(self, origins: Tensor | None, stretch: int) -> bool:
        """Whether a step is copied for the proof: the first ones, then ever fewer; all where beams or keys changed."""
        step = len(self.blocks)
        few = step < 4 or step & (step - 1) == 0
        return few or origins is not None or stretch != self.blocks[-1].stretch

    def extend(self, call: Call, memo: Memo, ids: Tensor | None, *, same: bool) -> CapturedCall | None:
        """Take a later call into the same map, where its keys continue what is held; None where they do not.

        `same` says that both calls were made by one method of the model, such as `generate`.
        """
        last = self.blocks[-1]
        if call.q is None or call.k is None or last.q is None or call.q.shape[1] != last.q.shape[1]:
            return None
        if call.q.shape[-1] != last.q.shape[-1] or call.q.shape[0] != last.q.shape[0]:
            return None
        sizes = Sizes(tuple(call.q.shape[:2]), call.q.shape[2], call.k.shape[2])
        k = call.k.detach()[:, :, : memo.form(call, sizes).keys]
        k = k.to(self.store.kept.dtype)
        q_length, k_length, known = sizes.q, k.shape[2], len(self.store)
        begin = self.beginning
        base, before = begin.column, k_length - q_length
        grows = self.kind != "cross" and 0 < before == known  # fewer queries than keys: the others were remembered
        if not same and (self.kind == "cross" or not (call.cached or grows)):
            return None  # two inputs may begin alike; only a cache says that one goes on with the other
        if self.kind == "cross" or (same and k_length == known and q_length < k_length):
            if k_length == known and self.store.equals(k, 0, known):
                if self.asked_again(call.q, ids):
                    self.blocks = []
                    return self.add(call, memo, ids, row=0, column=0, new=0, stretch=0)
                row = last.row + last.sizes.q
                if self.kind == "self" and before and self.store.equals(k, known - before, before):
                    self.doubt = True  # or all keys are alike, and a cache slid by one
                return self.add(call, memo, ids, row=row, column=base, new=k_length, stretch=last.stretch)
            if self.kind == "cross":
                return None
        if before == 0 and same and known <= k_length and self.again(k, ids):  # everything fed again
            self.cut(0)
            self.keys = None
            return self.add(call, memo, ids, row=0, column=0, new=0, stretch=0)
        if before <= 0:
            return None
        slides, whole = last.column > base, last.stretch == 0
        found = match(self.store, k, before, same=same, cached=call.cached, slides=slides, whole=whole)
        if found is None and grows and not call.cached and self.store.near(k, before):
            return self.renew(call, memo, ids)
        if found is None:
            return self.another(call, memo, ids, k, before) if same and call.cached else None
        if not same and found.at + before < known:
            return None  # two continuations of one prefix: within one `generate` the first would be a rejected draft
        self.doubt = self.doubt or found.doubt
        column = base + found.at
        row, stretch, new = column + before, last.stretch, before
        if found.at + before < known:
            self.cut(row)
            if row <= begin.row:  # the call that brought the older keys is gone with its rows: take them from this one
                self.keys, stretch, new = None, stretch + 1, 0
        if found.origins is not None:
            self.store.reorder(choose(found.origins))
        if new:
            self.store.append(k[:, :, before:])
        return self.add(call, memo, ids, row=row, column=column, new=new, stretch=stretch, origins=found.origins)

    def looks_again(self, call: Call) -> bool:
        """Whether one more query asks the keys of a source that is held, as each step of a recurrent decoder does."""
        if self.kind == "self" or call.q is None or call.k is None or call.q.shape[2] != 1 or call.cached:
            return False
        last = self.blocks[-1]
        if last.q is None or last.sizes.q != 1 or call.q.shape != last.q.shape or call.k.shape[2] == 1:
            return False
        k = call.k.detach().to(self.store.kept.dtype)
        return k.shape[2] == len(self.store) and self.store.equals(k, 0, len(self.store))

    def next_row(self, call: Call, memo: Memo, ids: Tensor | None) -> None:
        last = self.blocks[-1]
        assert call.k is not None
        self.add(call, memo, ids, row=last.row + 1, column=0, new=call.k.shape[2], stretch=last.stretch)

    def again(self, k: Tensor, ids: Tensor | None) -> bool:
        """Whether a call without a cache was fed all that is held, and more: its tokens say so, else its keys."""
        told = self.fed_again(ids)
        return self.store.near(k, len(self.store)) if told is None else told

    def asked_again(self, q: Tensor, ids: Tensor | None) -> bool:
        """Whether a call asks all rows that are held once more, and perhaps further ones."""
        rows = sum(block.sizes.q for block in self.blocks)
        if q.shape[2] < max(2, rows):
            return False
        told = self.fed_again(ids)
        if told is not None:
            return told
        mine = torch.cat([block.q for block in self.blocks if block.q is not None], 2)
        return torch.allclose(q.detach()[:, :, :rows].to(mine), mine, rtol=1e-3, atol=1e-4)

    def fed_again(self, ids: Tensor | None) -> bool | None:
        """Whether these tokens begin with all that were fed; None where tokens are not known."""
        fed = [block.ids for block in self.blocks]
        if ids is None or any(part is None for part in fed):
            return None
        known = torch.cat([part for part in fed if part is not None], -1)
        return known.shape[0] == ids.shape[0] and torch.equal(ids[:, : known.shape[1]], known)

    def another(self, call: Call, memo: Memo, ids: Tensor | None, k: Tensor, before: int) -> CapturedCall:
        """Keys that changed since (a quantised cache): a new stretch begins at the same positions."""
        last = self.blocks[-1]
        row = last.row + last.sizes.q
        column = max(0, row - before)
        self.keys = None
        self.mark(LayerState.KEYS_CHANGED)
        b = k.shape[0]
        unknown = torch.ones(b, b, dtype=torch.bool) if b > 1 else None  # whose keys these were is not to be seen
        return self.add(call, memo, ids, row=row, column=column, new=0, stretch=last.stretch + 1, origins=unknown)

    def renew(self, call: Call, memo: Memo, ids: Tensor | None) -> CapturedCall:
        """The same keys, computed and rounded anew by a loop that remembers inputs: each row keeps its own."""
        last = self.blocks[-1]
        self.keys = None
        row, column = last.row + last.sizes.q, self.beginning.column
        return self.add(call, memo, ids, row=row, column=column, new=0, stretch=last.stretch + 1)

    def goes_on(self, call: Call) -> bool:
        """Whether a further call in the same step of the model is the next one of a decoding loop inside of it."""
        if self.kind == "cross" or call.q is None or call.k is None or self.blocks[-1].q is None:
            return False
        before = call.k.shape[2] - call.q.shape[2]
        return 0 < before == len(self.store) and self.store.near(call.k.detach().to(self.store.kept.dtype), before)

    def cut(self, position: int) -> None:
        """Forget rows and keys from this position on: they were fed again."""
        kept, base = [], self.beginning.column
        for block in self.blocks:
            if block.row >= position:
                continue
            over = block.row + block.sizes.q - position
            if over > 0:
                rows = block.sizes.q - over
                columns = min(block.sizes.k, position - block.column)
                fewer = Sizes(block.sizes.lead, rows, columns)
                dense = dense_of(block.mask, block.sizes)[:, :, :rows, :columns]
                block.q = None if block.q is None else block.q[:, :, :rows]
                new = position - block.first_new
                block.k = None if block.k is None else block.k[:, :, :new]
                block.v = None if block.v is None else block.v[:, :, :new]
                block.mask = compact_mask(dense, fewer)
                if isinstance(block.bias, Tensor):
                    block.bias = block.bias[..., : max(1, rows), : max(1, columns)]
                elif block.bias is not None:
                    shift = (block.sizes.k - block.sizes.q) - (columns - rows)
                    block.bias = ShiftedBias(block.bias, shift)
                block.ids = None if block.ids is None else block.ids[:, :rows]
                block.sizes = fewer
                block.seen = ProofSample()
            kept.append(block)
        self.blocks = kept
        if self.keys is not None:
            self.keys.shrink(position - base)

    def was_written(self, *which: str) -> bool:
        """Whether somebody wrote since to a kept reference: "q", "k", "v" or "weights"."""
        return any(
            was is not None and name in which and (x := getattr(block, name)) is not None and version(x) != was
            for block in self.blocks
            for name, was in zip(("q", "k", "v", "weights"), block.versions)
        )

    @property
    def beginning(self) -> CapturedCall:
        """The block with which the last stretch of keys begins."""
        return next(block for block in self.blocks if block.stretch == self.blocks[-1].stretch)

    @property
    def store(self) -> KeyBuffer:
        if self.keys is None:
            last = self.blocks[-1]
            same = [b for b in self.blocks if b.stretch == last.stretch and b.k is not None]
            parts = [b.k for b in same if b.k is not None]
            self.keys = KeyBuffer(torch.cat(parts, 2) if len(parts) > 1 else parts[0])
        return self.keys


def rebase_map(given: AttentionMap | None, q: Tensor, k: Tensor) -> AttentionMap | None:
    """The map that a call knows of itself, on what is kept of it: the tensors that it came with can be let go."""
    computed = None if given is None else given.source.computed
    if given is None or computed is None:
        return given
    return AttentionMap(computed.with_qk(q, k), tokens=given.tokens, dropped=given.dropped)


def sample_call(call: Call, sizes: Sizes, keys: int) -> ProofSample:
    """Copies for the proof: what the kernel got and gave at a few rows."""
    if call.mix is None or call.mix.shape[-2] != sizes.q:
        return ProofSample(dropout=call.dropout)
    rows = sample_rows(sizes.q, SAMPLED)
    if not call.mix.is_cpu:
        rows = rows.to(call.mix.device)
    taken = call.mix.index_select(2, rows)
    seen = ProofSample(row_numbers(sizes.q, SAMPLED), taken, dropout=call.dropout, keys=keys)
    if call.used is not None and call.used.shape[-2] == sizes.q:
        seen.used = call.used.index_select(2, rows)
    if call.raw is not None:
        mask, seen.causal, seen.scale = call.raw
        seen.facts = True
        if mask is not None:
            mask = broadcast_4d(mask.detach(), sizes)
            seen.allowed = (mask if mask.shape[-2] == 1 else mask.index_select(2, rows))[..., :keys].clone()
            if call.rows is not None:
                seen.allowed = seen.allowed & call.rows[:, None].index_select(2, rows)[..., None]
    if call.weights is not None and call.q is not None:
        seen.weights = call.weights[..., :keys]
    return seen
