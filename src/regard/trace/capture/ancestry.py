"""Which entry of the batch each sequence that was kept stood in at every step: beams move between entries.

Keys say which entries an entry may have come from (`Match.origins`); with a sliding cache several can look alike. So
the text decides: a sequence that `generate` gave back is followed through the tokens that were fed. Two entries that
were fed the same text from the beginning have the same rows, and then it does not matter which is taken.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from regard.trace.capture.layer_capture import CapturedCall, LayerCapture
from regard.trace.capture.match import choose
from regard.trace.record.layer import Layer

ALIVE = "which entries of the batch were kept is not known, so all of the last step are shown"
UNKNOWN = "entries of the batch changed places, and which rows belong together is not certain"
STRANGE = "rows of different beams are mixed in it"
ELSEWHERE = "its rows are not the tokens that were generated, so some may stand at wrong places"
REPEATED = "its keys repeat, so where some of its rows stand is not certain"


@dataclass(frozen=True)
class BeamAncestry:
    """`BeamAncestry` says in which batch entry each sequence of a beam search stood, step by step."""

    entries: dict[int, Tensor]  # step → entries, one per kept sequence; −1 where the sequence had ended
    batch: int  # how many entries the steps had
    certain: bool = True  # whether it is certain which rows belong together
    text: Tensor | None = None  # the kept sequences; None where they are not known, and all of the last step are taken

    def of(self, block: CapturedCall) -> Tensor | None:
        """The entries to take of this block; None where it is from before the beams, or after the last one kept."""
        return self.entries.get(block.step) if block.sizes.lead[0] == self.batch else None

    def over(self, block: CapturedCall) -> bool:
        """Whether every kept sequence had ended before this step."""
        return block.sizes.lead[0] == self.batch and block.step > max(self.entries)

    def find_ended_rows(self, held: LayerCapture) -> Tensor:
        """(b, q): which rows come after the end of their sequence."""
        taken = [(self.of(block), block.sizes.q) for block in held.blocks if not self.over(block)]
        return torch.cat([entries[:, None].expand(-1, rows) < 0 for entries, rows in taken if entries is not None], 1)

    def pad_ids(self, held: LayerCapture, ids: Tensor) -> Tensor:
        """Token ids of all rows; after the end of a sequence those with which it was filled up."""
        if self.text is None or held.blocks[0].sizes.lead[0] != self.batch:
            return ids
        text = self.text[:, : ids.shape[1]]
        filled = torch.cat([text, torch.zeros_like(ids[:, text.shape[1] :])], 1)
        return torch.where(self.find_ended_rows(held), filled.to(ids), ids)


@dataclass(frozen=True)
class Feeding:
    """What was fed to all entries, and where each may have come from."""

    steps: Sequence[int]
    ids: dict[int, Tensor | None]  # step → (b, n) tokens; no item where a later step took its rows away
    rows: dict[int, int]
    queries: dict[int, Tensor]  # b h r d
    origins: dict[int, Tensor]
    lost: frozenset[int]  # steps at which no layer's keys say where an entry came from
    batch: int

    def links(self, step: int) -> Tensor:
        """(b, b): whether entry i of this step may continue entry j of the one before."""
        return self.origins.get(step, torch.eye(self.batch, dtype=torch.bool))

    def fits(self, sequence: Tensor, at: int) -> "Fits":
        """Which entries were fed the beginning of a sequence; its token `at` is the first that was fed."""
        found: dict[int, Tensor] = {}
        before, torn = None, False
        for step in self.steps:
            here = torch.ones(self.batch, dtype=torch.bool)
            if before is not None:
                here = (self.links(step) & before).any(1)
            if step in self.ids:
                ids = self.ids[step]
                if ids is None and step != self.steps[0]:
                    return Fits({}, True)
                if ids is not None:
                    if at + ids.shape[1] >= len(sequence):  # its last token is never fed
                        break
                    same = (ids == sequence[at : at + ids.shape[1]]).all(1)
                    torn = bool(same.any()) and not bool((same & here).any())
                    here = here & same
                    at += ids.shape[1]
            if not bool(here.any()):
                break
            found[step] = before = here
        return Fits(found, torn)

    def path(self, sequence: Tensor, likely: Iterable[int]) -> "Path":
        """The entry of each step in which a sequence was written; empty where its text is not to be found."""
        first = self.steps[0]
        starts = (0,) if self.ids.get(first) is not None else (0, self.rows[first])  # its prompt came as embeddings
        fits, torn = max((self.fits(sequence, start) for start in starts), key=lambda found: len(found.entries))
        if not fits or (self.ids.get(first) is None and len(fits) < 2):
            return Path({}, False)
        steps = list(fits)
        leaf = steps[-1]
        entry = next(i for i in (*likely, *range(self.batch)) if fits[leaf][i])
        certain = not torn and self.alike(leaf, entry, fits[leaf])
        found = {leaf: entry}
        for step, before in zip(reversed(steps), reversed(steps[:-1])):
            certain = certain and not (step in self.lost and int(fits[step].sum()) > 1)
            may = self.links(step)[entry] & fits[before]
            entry = entry if bool(may[entry]) else int(may.nonzero()[0])
            found[before] = entry
        return Path(found, certain)

    def alike(self, step: int, entry: int, others: Tensor) -> bool:
        """Whether entries that were fed the same text asked the same: else the text does not say which is meant."""
        q = self.queries.get(step)
        if q is None:
            return True
        return torch.allclose(q[others.to(q.device)], q[entry].expand(int(others.sum()), *q.shape[1:]), 1e-2, 1e-3)


class Fits(NamedTuple):
    """Which entries were fed the beginning of a sequence."""

    entries: dict[int, Tensor]  # step → (b,); steps after the last that fits are left out
    torn: bool  # whether the next token was fed as well, but to an entry that does not continue one of these


class Path(NamedTuple):
    """The way of a sequence through the batch."""

    entries: dict[int, int]  # step → entry
    certain: bool


def feeding(helds: Sequence[LayerCapture], origins: dict[int, Tensor], batch: int) -> Feeding:
    """What these layers, all of one batch, say of it. The last one is asked for tokens and queries."""
    blocks = helds[-1].blocks
    ids = {block.step: None if block.ids is None else block.ids.expand(batch, -1) for block in blocks}
    rows = {block.step: block.sizes.q for block in blocks}
    queries = {block.step: block.q for block in blocks if block.q is not None}
    every = {block.step for held in helds for block in held.blocks}
    changed = {b.step for held in helds for a, b in pairwise(held.blocks) if a.stretch != b.stretch}
    lost = frozenset(step for step in changed if step in origins and bool(origins[step].all()))
    return Feeding(sorted({*every, *origins}), ids, rows, queries, origins, lost, batch)


def ancestry(
    sequences: Tensor | None, origins: dict[int, Tensor], helds: Iterable[LayerCapture]
) -> BeamAncestry | None:
    """Follow the sequences that were given back through the beams; None where every entry stayed where it was."""
    own = [held for held in helds if held.kind != "cross"]
    batch = len(next(iter(origins.values()))) if origins else own[-1].blocks[0].sizes.lead[0] if own else 1
    own = [held for held in own if held.blocks[0].sizes.lead[0] == batch]
    own = [held for held in own if held.blocks[0].step == own[-1].blocks[0].step]  # no encoder that ran before
    if batch == 1 or not own or (sequences is None and not origins):
        return None
    fed = feeding(own, origins, batch)
    if sequences is None:
        return alive(fed)
    count = len(sequences)
    paths = [
        fed.path(sequence, [i] if count == batch else range(i * batch // count, (i + 1) * batch // count))
        for i, sequence in enumerate(sequences)
    ]
    stayed = count == batch and all(set(path.entries.values()) == {i} for i, path in enumerate(paths))
    if stayed and all(bool(fed.links(step).diagonal().all()) for step in fed.steps):
        return None
    if not origins and count == batch and not all(path.entries for path in paths):
        return None  # it gave back something else than what it fed
    if not all(path.entries and (path.certain or origins) for path in paths):
        return alive(fed)
    last = max(max(path.entries) for path in paths)
    entries = {step: torch.tensor([path.entries.get(step, -1) for path in paths]) for step in fed.steps if step <= last}
    return BeamAncestry(entries, batch, all(path.certain for path in paths), sequences)


def alive(fed: Feeding) -> BeamAncestry:
    """All entries of the last step, followed back by their keys alone."""
    certain, entry = True, torch.arange(fed.batch)
    entries = {}
    for step in reversed(fed.steps):
        entries[step] = entry
        if step in fed.origins and step != fed.steps[0]:
            links = fed.links(step)
            certain = certain and bool((links[entry].sum(1) == 1).all())
            entry = choose(links)[entry]
    return BeamAncestry(entries, fed.batch, certain)


def mixes_beams(held: LayerCapture, kept: BeamAncestry) -> bool:
    """Whether some row is shown with keys that it was not computed with.

    Each step of this layer found where its keys may have come from. Where that is not where the kept sequence stood,
    the keys themselves are compared, as far back as that step saw them.
    """
    blocks = [block for block in held.blocks if kept.of(block) is not None]
    for last, block in enumerate(blocks):
        if not last or block.stretch != blocks[last - 1].stretch or not block.first_new > block.column:
            continue
        now, before = kept.entries[block.step], kept.entries[blocks[last - 1].step]
        for entry, parent in zip(now.tolist(), before.tolist()):
            if entry < 0 or entry == parent or (block.origins is not None and bool(block.origins[entry, parent])):
                continue
            if not same_keys(blocks[: last + 1], entry, parent):
                return True
    return False


def same_keys(blocks: list[CapturedCall], entry: int, parent: int) -> bool:
    """Whether two entries held the same keys before the last of these blocks, as far back as it looked."""
    last = blocks[-1]
    mine = int(choose(last.origins)[entry]) if last.origins is not None else entry
    for block in reversed(blocks[:-1]):
        if block.stretch != last.stretch or mine == parent:
            return True
        if block.k is not None and block.k.shape[2]:
            seen = slice(max(0, last.column - block.first_new), None)
            if not torch.equal(block.k[mine, :, seen], block.k[parent, :, seen]):
                return False
        if block.origins is not None:
            links = choose(block.origins)
            mine, parent = int(links[mine]), int(links[parent])
    return True


def add_doubts(
    layer: Layer, held: LayerCapture, ids: Tensor | None, kept: BeamAncestry | None, sequences: Tensor | None
) -> None:
    """Tell a layer what speaks against its rows."""
    found = layer.doubts
    if kept is not None and held.blocks[0].sizes.lead[0] != kept.batch:  # an encoder, which knows no beams
        return
    if kept is not None and not kept.certain:
        found.append(UNKNOWN)
    elif kept is not None and kept.text is None:
        layer.notes.append(ALIVE)
    if kept is not None and mixes_beams(held, kept):
        found.append(STRANGE)
    told = None if held.kind == "cross" else text_fits(held, ids, kept, sequences)
    if told is False:
        found.append(ELSEWHERE)
    if held.doubt and told is None:
        found.append(REPEATED)


def text_fits(
    held: LayerCapture, ids: Tensor | None, kept: BeamAncestry | None, sequences: Tensor | None
) -> bool | None:
    """Whether the tokens of all rows are those that `generate` gave back; None where that cannot be compared."""
    if ids is None or sequences is None or len(held.blocks) < 2 or len(ids) != len(sequences):
        return None
    first, most = held.blocks[0].sizes.q, sequences.shape[1] - 1
    if first > most or not torch.equal(ids[:, :first], sequences[:, :first]):
        return None
    if ids.shape[1] < most and kept is None:
        return False
    size = min(ids.shape[1], most)
    wrong = ids[:, :size] != sequences[:, :size]
    if kept is not None:
        wrong = wrong & ~kept.find_ended_rows(held)[:, :size]
    return not bool(wrong.any())
