"""The listener of `watch`: sorts attention calls into runs and layers, and captures what decides each map."""

from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from regard.trace.capture.ancestry import add_doubts, ancestry
from regard.trace.capture.assemble import assemble_layer
from regard.trace.capture.layer_capture import CapturedCall, LayerCapture
from regard.trace.capture.naming import Naming, ids_of
from regard.trace.capture.pictures import PictureTokens
from regard.trace.capture.placing import batch_given, find_placement
from regard.trace.capture.provenance import MIXED, Around, Origin, Provenance, look_at_source
from regard.trace.capture.retention import Retention
from regard.trace.capture.session import Session, result_of
from regard.trace.capture.stream_capture import StreamCapture
from regard.trace.doors.arguments import arguments_of
from regard.trace.doors.call_site import AttentionKind, CallSite, kind_of, place_of, tree_of
from regard.trace.doors.compact_form import Memo
from regard.trace.doors.dispatcher import DOORS
from regard.trace.doors.embedding import DERIVED
from regard.trace.doors.library import others_wait
from regard.trace.doors.listener import ModelListener
from regard.trace.doors.scope import Call
from regard.trace.doors.second_sum import NOTE as SECOND_SUM
from regard.trace.doors.stack import Stack, stack_of
from regard.trace.record.missed import MissedAttention, no_attention_error
from regard.trace.record.trace import Run

UNCOUNTED = (
    "in inference mode beside other threads torch.bmm cannot be intercepted, so attention written with it may be "
    "missing; run the model under torch.no_grad(), or ask regard.audit"
)


class Watcher(ModelListener):
    """A listener that captures the attention calls of one watched model."""

    def __init__(
        self,
        model: nn.Module,
        keeper: Retention,
        naming: Naming,
        *,
        layers: tuple[str, ...] | None = None,
        gradients: bool = False,
        budget: int = 1 << 30,
    ) -> None:
        super().__init__(tree_of(model))
        self.keeper, self.naming, self.chosen = keeper, naming, layers
        self.gradients, self.budget, self.stored = gradients, budget, 0
        self.sessions: list[Session] = []
        self.stack: Stack | None = None  # of the last call
        self.counts: dict[str, int] = {}
        self.memo = Memo()
        self.provenance = Provenance()
        self.origins: tuple[Origin | None, Origin | None] = (None, None)  # of the rows and keys of the last call
        self.closely: Callable[[], None] | None = None  # how to stop following what is made of an embedding
        self.notes: list[str] = []
        self.missed: list[tuple[str, str]] = []  # in a run that no layer has begun yet
        self.changes: list[str] = []  # of a run that no layer which is kept has begun yet
        self.stream: StreamCapture | None = None  # what is kept beyond attention

    # A listener

    def refuse(self, place: CallSite | None, why: str) -> None:
        path = self.path(place)
        if self.stream is not None:
            self.stream.attend(path)
        if not self.wants(path):
            return
        if not self.sessions:
            self.sessions.append(Session(None))
        self.sessions[-1].refused.setdefault(path or "the model", why)

    def miss(self, place: CallSite, what: str) -> None:
        path = self.path(place)
        if self.stream is not None:
            self.stream.attend(path)
        if not self.wants(path):
            return
        same = self.stack is not None and stack_of(place, self.tree, self.stack).step is self.stack.step
        self.missed.append((path or type(place.module).__name__, what))
        if same:
            self.keep_missed()

    def keep_missed(self) -> None:
        """What was missed so far belongs to the last run."""
        missed, self.missed = self.missed, []
        if missed and not self.sessions:
            self.sessions.append(Session(None))
        for one in missed:
            self.sessions[-1].missed[one] = self.sessions[-1].missed.get(one, 0) + 1

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def wants(self, path: str) -> bool:
        return self.chosen is None or any(f".{part}." in f".{path}." for part in self.chosen)

    def hear(self, call: Call) -> None:
        path = self.path(call.place)
        if torch._C._current_graph_task_id() != -1:  # activation checkpointing computes it again for the backward pass
            self.compare(path, call)
            return
        if self.stream is not None:
            self.stream.attend(path)
        if not self.wants(path):
            self.note_edits(call.place, call.edits)
            return
        if not DOORS.hears_inference and torch.is_inference_mode_enabled():
            self.note(UNCOUNTED)
        stack = stack_of(call.place, self.tree, self.stack)
        kind = look_at_source(call, kind_of(call.place, *call.lengths, call.causal))
        call.cached = kind.cached
        stack = self.trace_rows(stack, path, call, kind)
        held, occurrence = self.enter(stack, path, call)
        if self.missed:
            self.keep_missed()
        session = self.sessions[-1]
        session.pixels = session.pixels or stack.given.pixels
        if session.pixels is not None and self.naming.pictures is None:
            self.naming.pictures = PictureTokens(self.tree.values())
        if self.changes or call.edits:
            session.changes |= dict.fromkeys([*self.changes, *call.edits])
            self.changes.clear()
        ids = self.ids_of(stack, call)
        if held is None:
            if not self.affordable(path, call):
                return
            name = path or type(call.place.module).__name__
            name = name if occurrence == 1 else f"{name}#{occurrence}"
            held = LayerCapture(name, kind.name, call.door, self.keeper)
            held.take_findings(call)
            held.first(call, self.memo, ids)
            stream = None if session.pixels is None else arguments_of(call.place.call).stream()
            held.stream = None if stream is None else tuple(stream.shape)
            held.rows_from, held.keys_from = (None if of is None else self.as_now(of) for of in self.origins)
            self.place(held, call, stack)
            session.held[path, occurrence] = held
        at = self.which(stack, call) if held.rows_from is None else None
        if at is not None:
            held.rival = held.rival or stack.given.rivals[at]
            held.outermost = at >= len(stack.given.ids) - len(stack.outermost.ids)
        block = held.blocks[-1]
        block.step = session.steps
        if block.origins is not None:
            known = session.origins.get(session.steps)
            session.origins[session.steps] = block.origins if known is None else known & block.origins
        elif held.kind != "cross" and len(held.blocks) > 1:
            session.stayed.add(session.steps)
        if self.gradients and call.raw_mix is not None and call.raw_mix.requires_grad:
            follow(call, block)
        if self.stream is not None:
            self.stream.hear(call, path, held, session)

    def place(self, held: LayerCapture, call: Call, stack: Stack) -> None:
        """Find out where windows stand on the whole, and what that was embedded from."""
        if self.memo.batch is None:
            self.memo.batch = batch_given(stack.step)
        held.placement = find_placement(call, self.memo.batch, self.owns)
        if held.placement is not None:
            size = (len(held.placement.entries), held.placement.size)
            origin = self.provenance.rows(Around(stack.calls, self.tree), *size)
            held.named_as = None if origin is None or origin.ids is None else self.memo.copy(origin.ids)

    def follow_native(self, rest: Callable[[], Tensor], out: Tensor) -> None:
        """What a native operator gave is also known as what its parts, computed one by one, make of the mix."""
        if self.stream is not None and self.stream.recorder is not None:
            self.stream.recorder.alias(out, rest())

    def note_edits(self, place: CallSite, edits: list[str]) -> None:
        """What is not kept was edited, a layer or the output of a module: its run is told, which may not have begun."""
        if not edits:
            return
        same = self.stack is not None and stack_of(place, self.tree, self.stack).step is self.stack.step
        if same and self.sessions:
            self.sessions[-1].changes |= dict.fromkeys(edits)
        else:
            self.changes += edits

    def compare(self, path: str, call: Call) -> None:
        """A recomputation is no new call, but it must be the old one: otherwise say so."""
        first = [
            held.blocks[0].q for session in self.sessions for (name, _), held in session.held.items() if name == path
        ]
        if call.q is None or any(q is None or (q.shape == call.q.shape and torch.equal(q, call.q)) for q in first):
            return
        self.note(
            f"{path} came out otherwise when it was computed again for the backward pass; the first time is shown"
        )

    def enter(self, stack: Stack, path: str, call: Call) -> tuple[LayerCapture | None, int]:
        """Which layer of which run a call belongs to: (what is held of it and was extended, or None; occurrence)."""
        session = self.sessions[-1] if self.sessions else None
        before = self.stack
        if before is None or stack.step is not before.step:
            self.stack = stack._replace(calls=(), handed=())
        if session is not None and before is not None and stack.step is before.step:
            known = session.held.get((path, self.counts.get(path, 0)))
            if known is not None and known.looks_again(call):  # a recurrent decoder asks once per step
                known.next_row(call, self.memo, self.ids_of(stack, call))
                return known, self.counts[path]
            if known is not None and known.goes_on(call):
                known.extend(call, self.memo, self.ids_of(stack, call), same=True)
                return known, self.counts[path]
            self.counts[path] = occurrence = self.counts.get(path, 0) + 1
            held = session.held.get((path, occurrence))
            if held is None:
                return None, occurrence
            if held.extend(call, self.memo, self.ids_of(stack, call), same=True) is not None:
                return held, occurrence
            self.begin(stack, occurrence, path)
            return None, occurrence
        same = session is not None and session.frame is stack.session
        self.counts, self.memo = {path: 1}, Memo()
        held = None if session is None else session.held.get((path, 1))
        if session is not None and held is not None:
            session.steps += 1
            if held.extend(call, self.memo, self.ids_of(stack, call), same=same) is not None:
                session.frame = stack.session
                return held, 1
            session.steps -= 1
        elif session is not None and same:
            session.steps += 1
            return None, 1
        self.begin(stack, 1, path)
        return None, 1

    def retract(self, place: CallSite) -> None:
        path = self.path(place)
        if self.sessions and self.sessions[-1].held.pop((path, self.counts.get(path, 0)), None) is not None:
            self.counts[path] -= 1

    def sum_again(self, place: CallSite) -> None:
        path = self.path(place)
        held = self.sessions[-1].held.get((path, self.counts.get(path, 0))) if self.sessions else None
        if held is not None and SECOND_SUM not in held.notes:
            held.notes.append(SECOND_SUM)

    def begin(self, stack: Stack, occurrence: int, path: str) -> None:
        self.settle()
        if self.sessions and self.sessions[-1].frame is None and not self.sessions[-1].held:
            self.sessions[-1].frame = stack.session  # only refusals so far
        else:
            self.sessions.append(Session(stack.session))
        self.counts = {path: occurrence}

    def settle(self) -> None:
        """The last session may be over: learn what its method gave back, as long as its frame is still at hand."""
        if self.sessions:
            session = self.sessions[-1]
            if session.frame is not None:
                session.sequences = result_of(session.frame)

    def affordable(self, path: str, call: Call) -> bool:
        """Whether weights that must be stored fit the budget."""
        if call.q is not None or call.weights is None or self.keeper.writer is not None:
            return True
        self.stored += call.weights.numel() * call.weights.element_size()
        if self.stored <= self.budget:
            return True
        self.refuse_later(path, call)
        return False

    def refuse_later(self, path: str, call: Call) -> None:
        assert call.weights is not None
        self.sessions[-1].refused.setdefault(
            path or "the model",
            f"its map of shape {tuple(call.weights.shape)} must be stored as seen, which is beyond the budget of "
            f"{self.budget >> 20} MB; watch fewer layers with layers=, or write to a file with to=",
        )

    def ids_of(self, stack: Stack, call: Call) -> Tensor | None:
        """The token ids that its rows stand for."""
        return None if stack.rows is None else self.memo.copy(stack.rows)

    def trace_rows(self, stack: Stack, path: str, call: Call, kind: AttentionKind) -> Stack:
        """Find out which ids the rows and the keys of a call were embedded from; they stay beside its stack.

        Where nothing speaks of it, rows are the ids that went in around it, if they are as many.
        """
        self.provenance.enter(stack.step, stack.session)
        self.follow_no_more()
        around = Around(stack.calls, self.tree, stack.handed)
        (q, k), b = call.lengths, call.batch
        rows = self.provenance.rows(around, b, q)
        keys = self.provenance.keys(around, kind.source, b, k)
        if rows is not None and keys is not None and rows.ids is keys.ids is not None and not rows.followed:
            rows = Origin(None, MIXED)  # queries that look at these tokens are others, such as learned ones
        self.provenance.attend(path, q, rows)
        self.origins = rows, keys
        if rows is not None:
            return stack._replace(rows=rows.ids)
        at = self.which(stack, call)
        return stack if at is None else stack._replace(rows=stack.given.ids[at])

    def as_now(self, origin: Origin) -> Origin:
        """The same with a copy of its ids, which somebody may write to later."""
        return origin if origin.ids is None else Origin(self.memo.copy(origin.ids), origin.why, origin.followed)

    def hear_embedding(self, weight: Tensor, ids: Tensor, out: Tensor, frame: FrameType) -> None:
        """Ids become the rows of something: remember which, and listen more closely where others are as many."""
        place = place_of(frame)
        if place is None or not self.owns(place.module) or torch._C._current_graph_task_id() != -1:
            return
        if ids.ndim not in (1, 2) or not ids.numel() or ids.dtype not in (torch.int64, torch.int32):
            return
        stack = stack_of(place, self.tree, self.stack)
        self.provenance.enter(stack.step, stack.session)
        rivals = self.provenance.embed(ids, weight.shape[0], out, list(stack.calls))
        if rivals and self.closely is None and others_wait():
            DERIVED.open()
            self.closely = DERIVED.close

    def hear_derived(self, inputs: tuple[Any, ...], out: Tensor) -> None:
        if self.closely is not None:
            self.provenance.derive(inputs, out)

    def follow_no_more(self) -> None:
        if self.closely is not None:
            closely, self.closely = self.closely, None
            closely()

    @staticmethod
    def which(stack: Stack, call: Call) -> int | None:
        q_length, _ = call.lengths
        return next((i for i, ids in enumerate(stack.given.ids) if ids.shape[-1] == q_length), None)

    # What came of it

    def runs(self) -> list[Run]:
        """All that was seen, as runs of layers."""
        self.settle()
        self.keep_missed()
        if self.stream is not None:
            self.stream.settle()
        found = []
        self.naming.read_inputs([held for session in self.sessions for held in session.held.values() if held.blocks])
        for session in self.sessions:
            helds = [held for held in session.held.values() if held.blocks]
            kept = ancestry(session.sequences, session.links(), helds)
            run = Run([assemble_layer(held, kept) for held in helds])
            for layer, held in zip(run.layers, helds):
                add_doubts(layer, held, ids_of(held, kept), kept, session.sequences)
                for block in held.blocks:
                    block.layer = layer
            run.refused, run.changes = dict(session.refused), list(session.changes)
            missed = [MissedAttention(name, what, count) for (name, what), count in session.missed.items()]
            run.missed = [one for one in missed if one.name not in run.refused]
            run.residual = session.residual
            if run.residual is not None:
                for layer in run.layers:
                    layer.mix_term = run.residual.mixes.get(layer.name)
            self.naming.name(run, helds, kept, session.pixels)
            found.append(run)
        return found

    def finish(self) -> None:
        """The block is over without an error: say so where there was nothing to see."""
        helds = [held for session in self.sessions for held in session.held.values() if held.blocks]
        self.naming.must_fit(helds)
        missed = [*self.missed, *(one for session in self.sessions for one in session.missed)]
        if not helds and not self.notes and not any(session.refused for session in self.sessions):
            called = [
                path for path, module in self.tree.values() if path and "attention" in type(module).__name__.lower()
            ]
            raise no_attention_error([MissedAttention(name, what) for name, what in missed], called)

    def release(self) -> None:
        """Let go of the model and of every frame."""
        self.settle()
        self.follow_no_more()
        self.tree, self.stack = {}, None
        self.provenance, self.origins = Provenance(), (None, None)
        self.memo = Memo()
        for session in self.sessions:
            session.frame = None


def follow(call: Call, block: CapturedCall) -> None:
    """Keep how the loss changes with the mix, when a backward pass comes by."""
    to_bhqe, raw_mix = call.to_bhqe, call.raw_mix
    assert to_bhqe is not None
    assert raw_mix is not None

    def gradient(arrived: Tensor) -> None:
        block.gradient = to_bhqe(arrived.detach())
        if block.layer is not None:
            block.layer.gradient = block.gradient

    raw_mix.register_hook(gradient)
