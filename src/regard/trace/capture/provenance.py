"""Which ids the rows and the keys of a call were embedded from: told by what was handed to whom, never by a length.

The stream of a module is the first tensor that it was handed. Where a module embeds ids itself, its rows are these;
where it was handed its stream, the stream is followed outwards to the module that made it. Keys that were handed to a
module beside its stream were made outside of it. What stays open is unknown, and says why.
"""

from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

import torch
from torch import Tensor, nn

from regard.trace.capture.order import is_moved
from regard.trace.doors.arguments import CallArguments, arguments_of
from regard.trace.doors.call_site import CALL, AttentionKind, Tree, first_argument
from regard.trace.doors.scope import Call

UNKNOWN = "what its keys were made from is not known"
MIXED = "there are other rows of this length, which are no tokens"
MOVED = "its rows were put into another order after they were embedded"
FLOATS = "its rows were made from a tensor of numbers, not from tokens"


class Around(NamedTuple):
    """The calls of modules that stand around a call, innermost first, and the method around all."""

    frames: tuple[FrameType, ...]
    tree: Tree
    handed: tuple[CallArguments, ...] = ()  # what the first of these were given, where that was read

    def arguments(self, place: int) -> CallArguments:
        """What a call was given."""
        return self.handed[place] if place < len(self.handed) else arguments_of(self.frames[place])

    def path(self, place: int) -> str:
        """The path of the module that a call is of."""
        known = self.tree.get(id(first_argument(self.frames[place])))
        return "?" if known is None else known[0]

    def streams(self, until: tuple[FrameType, ...]) -> list[Tensor]:
        """What the calls up to one of these work on, innermost first, as long as it is the stream of the one before."""
        found: list[Tensor] = []
        for place, frame in enumerate(self.frames):
            if frame.f_code is not CALL or frame in until:
                break
            handed = self.arguments(place)
            stream = handed.stream()
            if stream is None or (found and stream is not found[-1] and handed.holds(found[-1])):
                break
            found.append(stream)
        return found


class Origin(NamedTuple):
    """Where rows or keys came from."""

    ids: Tensor | None  # (b, n) or (n,); None where they are not known
    why: str = ""  # why tokens of the same length are not theirs
    followed: bool = False  # whether every tensor from the embedding to the attention was seen


@dataclass(eq=False)
class EmbeddedIds:
    """Ids that were embedded in this run, and the tensors that are known to be made of them."""

    ids: Tensor
    vocabulary: int
    frames: tuple[FrameType, ...]  # calls of modules around it, innermost first, and the method around all
    given: bool  # whether some module was handed them, and they are no positions
    step: int
    number: int  # how many attention calls came before it
    followed: bool = False  # whether all that is made of them is heard
    out: Tensor | None = None  # what they became, as long as the model works on them
    orders: dict[str, "Order"] = field(default_factory=dict)  # by modules that were handed what was made of that


class Order(NamedTuple):
    """Whether a module was handed rows in another order than that in which they were embedded."""

    path: str
    stream: ReferenceType[Tensor]
    moved: bool


class AttendedRows(NamedTuple):
    """An attention of this run whose rows have an origin."""

    path: str
    rows: int
    origin: Origin | None
    step: int


@dataclass(eq=False)
class Provenance:
    """`Provenance` follows the ids of one run from where they are embedded to the attention calls they reach."""

    embedded: list[EmbeddedIds] = field(default_factory=list)
    attended: list[AttendedRows] = field(default_factory=list)
    made: dict[int, tuple[ReferenceType[Tensor], tuple[EmbeddedIds, ...]]] = field(default_factory=dict)
    sources: dict[int, tuple[ReferenceType[Tensor], Origin | None]] = field(default_factory=dict)
    step: FrameType | None = None
    session: FrameType | None = None
    steps: int = 0
    number: int = 0  # of attention calls
    strangers: int = 0  # of those whose rows are no tokens that are known
    answers: dict[tuple[int, int, int], tuple[FrameType, tuple[int, int], Origin]] = field(default_factory=dict)
    embedding: frozenset[FrameType] = frozenset()  # the calls in which something was embedded

    # What is heard

    def enter(self, step: FrameType, session: FrameType) -> None:
        """A call of the model begins, or goes on; of those before, in the same run, only the ids are remembered."""
        if step is self.step:
            return
        if session is not self.session:
            self.embedded, self.attended = [], []
        self.sources, self.answers = {}, {}
        self.made = {key: (to, of) for key, (to, of) in self.made.items() if to() is not None}
        self.step, self.session, self.steps = step, session, self.steps + 1
        for one in self.embedded:
            one.frames, one.out = one.frames[-1:], None
        del self.embedded[:-REMEMBERED]
        self.embedding = frozenset(frame for one in self.embedded for frame in one.frames)
        del self.attended[:-REMEMBERED]

    def embed(self, ids: Tensor, vocabulary: int, out: Tensor, frames: list[FrameType]) -> bool:
        """Ids were embedded. Gives whether other ids could be mixed up with them, so that more must be heard."""
        outer = frames[1:] if isinstance(first_argument(frames[0]), nn.Embedding) else frames
        around = [arguments_of(frame) for frame in outer]
        holding = [any(shares(ids, x) for x in handed.integers()) for handed in around]
        given = any(holding) and (holding[-1] or not counts_up(ids))
        text = not given and not counts_up(ids) and self.is_text(vocabulary)
        if not given and around and (stream := around[0].stream()) is not None and stream.ndim == 3:
            return False  # positions or distances, made inside a module that works on a stream
        one = EmbeddedIds(ids, vocabulary, tuple(frames), given or text, self.steps, self.number)
        rivals = [x for handed in around for x in handed.integers() if x.shape[-1:] == ids.shape[-1:]]
        rivals += [other.ids for other in self.embedded if other.given and other.ids.shape[-1:] == ids.shape[-1:]]
        one.followed = one.given and not all(shares(ids, x) for x in rivals)
        one.out = out.detach() if ids.shape[-1] > 1 else None
        self.embedded.append(one)
        self.embedding = self.embedding.union(one.frames)
        self.mark(out, (one,))
        return one.followed

    def is_text(self, vocabulary: int) -> bool:
        """Whether ids that nobody handed over are a text, such as a target made of the source: one has its table."""
        return any(one.given and one.vocabulary == vocabulary and one.step == self.steps for one in self.embedded)

    def mark(self, x: Tensor, of: tuple[EmbeddedIds, ...]) -> None:
        self.made[id(x)] = (ref(x), of)

    def derive(self, inputs: tuple[Any, ...], out: Tensor) -> None:
        """A tensor was made of these."""
        of = [one for x in inputs if isinstance(x, Tensor) for one in self.made_of(x)]
        if of:
            self.mark(out, tuple(dict.fromkeys(of)))

    def made_of(self, x: Tensor) -> tuple[EmbeddedIds, ...]:
        """What a tensor, or the one that it is a view of, was made of, where that was heard."""
        known = self.made.get(id(x))
        if known is not None and known[0]() is x:
            return known[1]
        base = x._base
        known = None if base is None else self.made.get(id(base))
        return known[1] if known is not None and known[0]() is base else ()

    # What is asked

    def rows(self, around: Around, batch: int, n: int) -> Origin | None:
        """The origin of the n rows of a call; None where nothing speaks of it."""
        origin = self.find_rows(around, batch, n)
        if origin is None or origin.ids is None:
            return origin
        one = next((one for one in reversed(self.embedded) if one.ids is origin.ids), None)
        if one is None:
            return origin
        return Origin(None, MOVED) if self.is_moved(around, one) else origin

    def is_moved(self, around: Around, one: EmbeddedIds) -> bool:
        """Whether what a module was handed has the embedded rows in another order; a list of blocks is asked once."""
        streams = around.streams(one.frames)
        if one.out is None or not streams:
            return False
        path = around.path(len(streams) - 1)
        stack = ".".join(part for part in path.split(".") if not part.isdigit())
        known = one.orders.get(stack)
        if known is None or (known.path == path and known.stream() is not streams[-1]):
            known = one.orders[stack] = Order(path, ref(streams[-1]), is_moved(streams, one.out))
        return known.moved

    def find_rows(self, around: Around, batch: int, n: int) -> Origin | None:
        """The ids that became the rows, in whatever order they stand. The way leads outwards."""
        stream: Tensor | None = None
        own = False
        embedding = self.embedding  # calls in which something was
        for place, frame in enumerate(around.frames):
            handed = around.arguments(place)
            here = handed.stream() if frame.f_code is CALL else None
            own = stream is not None and (here is stream or handed.holds(stream))
            if not own and frame in embedding and (origin := self.inside(around, place, batch, n)) is not None:
                return origin
            if frame.f_code is not CALL:
                return None
            if not own:
                stream = here
            if self.made and stream is not None and (origin := self.origin_of(stream, batch, n)) is not None:
                return origin
        return Origin(None, FLOATS) if own else None

    def inside(self, around: Around, place: int, batch: int, n: int) -> Origin | None:
        """The origin of rows that this call embedded itself; the layers of a stack share the answer."""
        frame = around.frames[place]
        facts = (len(self.embedded), self.strangers)
        known = self.answers.get((id(frame), batch, n))
        if known is not None and known[0] is frame and known[1] == facts:
            return known[2]
        origin = choose(self.near(around, place, batch, n), n)
        if origin is None:
            return None
        if self.doubt(around, place, n):
            return Origin(None, MIXED)
        if origin.ids is None:
            return self.beside(around, place, n, origin)
        self.answers[id(frame), batch, n] = (frame, facts, origin)
        return origin

    def origin_of(self, x: Tensor, batch: int, n: int) -> Origin | None:
        """The origin of a tensor that was followed from its embedding."""
        made = self.made_of(x)
        of = [one for one in made if one.given and fits_rows(one.ids, batch, n)] if made else []
        if not of:
            return None
        if any(one.out is not None and shares(x, one.out) for one in of):  # nothing was added to it yet
            return Origin(of[0].ids, followed=True) if len(of) == 1 else None
        first = min(one.number for one in of)
        missed = [
            one for one in self.embedded
            if one.given and not one.followed and one.step == self.steps and one.number == first
            and one not in of and fits_rows(one.ids, batch, n)
        ]  # fmt: skip
        origin = choose([*of, *missed], n, together=not missed)
        return None if origin is None else origin._replace(followed=True)

    def doubt(self, around: Around, place: int, n: int) -> bool:
        """Whether inside this call other rows of this length were no tokens, so that these may be none either."""
        return any(
            one.rows == n and one.step == self.steps and one.origin is not None and one.origin.ids is None
            for one in self.attended if is_under(one.path, around.path(place))
        )  # fmt: skip

    def near(self, around: Around, place: int, batch: int, n: int) -> list[EmbeddedIds]:
        """What was embedded inside this call, but not inside the one that it made, with so many rows."""
        frame, inner = around.frames[place], around.frames[place - 1] if place else None
        return [
            one
            for one in self.embedded
            if frame in one.frames
            and inner not in one.frames
            and fits_rows(one.ids, batch, n)
            and (one.step == self.steps or not any(one.step <= other.step < self.steps for other in self.attended))
        ]

    def beside(self, around: Around, place: int, n: int, origin: Origin) -> Origin:
        """Instead of one that is not known, what all blocks before this one, in the same list of modules, share."""
        parent, _, number = around.path(place - 1).rpartition(".") if place else ("", "", "")
        if not number.isdigit():
            return origin
        same = [one for one in self.attended if one.rows == n and one.step == self.steps and is_under(one.path, parent)]
        return common_origin([one.origin for one in same]) or origin

    def keys(self, around: Around, source: Tensor | None, batch: int, n: int) -> Origin | None:
        """The origin of the n keys of a call that looks at `source`; None where nothing speaks of it."""
        if source is None:
            return None
        known = self.sources.get(id(source))
        if known is not None and known[0]() is source:  # all layers of a decoder look at the same
            return known[1]
        origin = self.origin_of(source, batch, n) or self.made_outside(around, source, batch, n)
        self.sources[id(source)] = (ref(source), origin)
        return origin

    def made_outside(self, around: Around, source: Tensor, batch: int, n: int) -> Origin | None:
        """The origin of a tensor that the calls around were handed: something made it in the one outside of them."""
        holding = [place for place in range(len(around.frames)) if around.arguments(place).holds(source)]
        if not holding:
            return None
        last = holding[-1] + 1
        outside = last == len(around.frames) or around.frames[last].f_code is not CALL
        under = around.path(last - 1)
        if outside:  # an earlier call of the same run made it
            others = [one.origin for one in self.attended if one.rows == n and one.step < self.steps]
        else:
            same = [one for one in self.attended if one.rows == n and one.step == self.steps]
            same = [one for one in same if is_under(one.path, around.path(last))]
            others = [one.origin for one in same if not is_under(one.path, under)]
        if others:
            return common_origin(others) or Origin(None, UNKNOWN)
        near = [] if last == len(around.frames) else self.near(around, last, batch, n)
        return choose(near, n) or Origin(None, UNKNOWN)

    def attend(self, path: str, rows: int, origin: Origin | None) -> None:
        self.attended.append(AttendedRows(path, rows, origin, self.steps))
        self.number += 1
        self.strangers += origin is not None and origin.ids is None


REMEMBERED = 256  # of earlier steps


def common_origin(origins: list[Origin | None]) -> Origin | None:
    """The one that all of these are; None where they differ, or some are not known."""
    known = [one for one in origins if one is not None and one.ids is not None]
    if not known or len(known) < len(origins):
        return None
    first = known[0].ids
    assert first is not None
    return known[0] if all(one.ids is not None and shares(first, one.ids) for one in known) else None


def choose(of: list[EmbeddedIds], n: int, *, together: bool = False) -> Origin | None:
    """The ids that name rows, among those that were embedded into them: the text, not its positions or its types.

    `together` says that all of these were added up, so that the largest vocabulary is that of the text.
    """
    handed = [one for one in of if one.given]
    texts = different(handed or [one for one in of if not counts_up(one.ids)])
    if len(texts) > 1 and together:
        most = max(one.vocabulary for one in texts)
        texts = [one for one in texts if one.vocabulary == most]
    if len(texts) == 1:
        return Origin(texts[0].ids)
    if not texts:
        return None
    return Origin(None, f"{len(texts)} inputs of {n} tokens were embedded, and which of them these are is not known")


def different(of: list[EmbeddedIds]) -> list[EmbeddedIds]:
    found: list[EmbeddedIds] = []
    for one in of:
        if not any(shares(one.ids, other.ids) and one.vocabulary == other.vocabulary for other in found):
            found.append(one)
    return found


def counts_up(ids: Tensor) -> bool:
    """Whether these are positions: each one more than the one before it, in every line."""
    return ids.shape[-1] > 1 and bool((ids.diff(dim=-1) == 1).all())


def fits_rows(ids: Tensor, batch: int, n: int) -> bool:
    """Whether ids have one for each of n rows of so many batch entries, which beams may share."""
    lead = 1 if ids.ndim == 1 else ids.shape[0]
    return ids.shape[-1] == n and batch % max(1, lead) == 0 and (ids.ndim == 2 or batch == 1)


def shares(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same numbers in memory."""
    return a is b or (a.data_ptr() == b.data_ptr() and a.numel() == b.numel())


def is_under(path: str, module: str) -> bool:
    return not module or path == module or path.startswith(f"{module}.")


def look_at_source(call: Call, kind: AttentionKind) -> AttentionKind:
    """The kind of a call whose module was handed queries and a source apart, which may still end in the queries.

    That is how a loop of one's own remembers what went in before: the module looks at itself.
    """
    if kind.name != "cross":
        return kind
    handed, axis, source = arguments_of(call.place.call), 1, kind.source
    if isinstance(call.place.module, nn.MultiheadAttention):  # its method turns the axes
        found = handed.named.get("key", handed.args[1] if len(handed.args) > 1 else None)
        source = found if isinstance(found, Tensor) else None
        axis = 1 if call.place.module.batch_first else 0
    stream = handed.stream()
    if source is None or stream is None or stream is source or source.ndim != 3 or stream.ndim != 3:
        return kind._replace(source=source)
    n, gap = stream.shape[axis], source.shape[axis] - stream.shape[axis]
    if gap < 0 or source.shape[2] != stream.shape[2] or source.shape[1 - axis] != stream.shape[1 - axis]:
        return kind._replace(source=source)
    with torch.no_grad():
        ends = source.narrow(axis, gap, n)
        same = torch.equal(ends.select(axis, n - 1), stream.select(axis, n - 1)) and torch.equal(ends, stream)
    return AttentionKind("self", kind.cached) if same else kind._replace(source=source)
