"""Who puts another attention in the place of a model's own: a listener that answers every call with another mix."""

from dataclasses import dataclass

from torch import Tensor, nn

from regard.attention.attend import Attended
from regard.attention.map import AttentionMap
from regard.attention.mask import Mask
from regard.attention.matrix_free.mechanism import Mechanism
from regard.errors import RegardError, WatchError
from regard.trace.change.aim import LISTED, parts_of
from regard.trace.change.cost import Spent, spent
from regard.trace.change.edited import Editing, edited, source_4d
from regard.trace.change.elsewhere import Counting, name_of
from regard.trace.change.request import Request, own_way, request_of
from regard.trace.doors.call_site import CallSite, kind_of, tree_of
from regard.trace.doors.compact_form import Memo
from regard.trace.doors.listener import ModelListener
from regard.trace.doors.scope import Call

CROSS = "it is cross-attention, whose keys are another text; name it in layers= to swap it too"
UNKNOWN = "its keys are not its queries' own, so it may be cross-attention; name it in layers= to swap it too"
NOT_NAMED = "it is not among layers="


@dataclass(eq=False)
class Met:
    """What became of one attention layer."""

    kind: str
    q: int
    k: int
    why: str = ""  # why it was left as it is; empty where it was swapped
    path: str = ""  # how `attend` computed it
    own: Spent | None = None
    new: Spent | None = None
    matrix: int = 0  # bytes that the whole weights would take


@dataclass(eq=False)
class Exchanged(Editing):
    """A call whose attention was swapped; editors of the same call go on from there."""

    swapped: AttentionMap | None = None

    def map(self, whole: AttentionMap, row: int = 0, column: int = 0) -> AttentionMap:
        return super().map(whole if self.swapped is None else self.swapped, row, column)


class Exchanging(ModelListener):
    """A listener for one model whose attention is swapped."""

    def __init__(
        self, model: nn.Module, attention: Mask | Mechanism, layers: object = None, *, metered: bool = False
    ) -> None:
        super().__init__(tree_of(model))
        self.attention, self.metered = attention, metered
        self.at = parts_of(layers, self.tree)
        self.counting, self.memo = Counting(self.tree), Memo()
        self.met: dict[str, Met] = {}
        self.refused: dict[str, str] = {}

    # A listener

    def refuse(self, place: CallSite | None, why: str) -> None:
        path = self.path(place)
        self.refused.setdefault(path or "the model", why)

    def retract(self, place: CallSite) -> None:
        """A softmax by hand was only part of something: such calls are never swapped, so nothing is to be undone."""
        path = self.path(place)
        self.met.pop(name_of(place, path, self.counting.counts.get(path, 1)), None)
        self.refused.setdefault(path or "the model", "its call has several softmaxes, so no single map can be told")

    def release(self) -> None:
        """Let go of the model and of every frame."""
        self.tree, self.counting, self.memo = {}, Counting({}), Memo()

    def change(self, call: Call) -> Tensor | None:
        path, step = self.path(call.place), self.counting.step
        count = self.counting(call.place, path)
        if self.counting.step is not step:
            self.memo = Memo()
        name = name_of(call.place, path, count)
        (q, k), kind = call.lengths, kind_of(call.place, *call.lengths, call.causal)
        call.cached = kind.cached
        met = self.met.setdefault(name, Met(kind.name, q, k))
        met.q, met.k = max(met.q, q), max(met.k, k)
        met.why = self.why_not(kind.name, path, count)
        request = met.why or request_of(call, self.memo)
        if isinstance(request, str):
            met.why = request
            return None
        wanted = request.under(self.attention)
        try:
            found = wanted.attended()
        except RegardError as error:
            raise WatchError(f"{name} cannot be computed by {shown(self.attention)}: {error}") from error
        met.path = found.path
        if self.metered:
            self.measure(met, call, request, wanted, found.mix)
        return exchanged(call, wanted, found, shown(self.attention))

    def why_not(self, kind: str, path: str, count: int) -> str:
        """Why a layer is left alone; empty where it is swapped."""
        if self.at is not None:
            return "" if any(part.fits(path, count) for part in self.at) else NOT_NAMED
        return {"self": "", "cross": CROSS}.get(kind, UNKNOWN)

    def measure(self, met: Met, call: Call, request: Request, wanted: Request, found: Tensor) -> None:
        """Time and memory of the call both ways, one after the other, on the same tensors."""
        device = request.q.device
        implied = call.map is not None and call.map.kind == "implied"  # its own way is not known here
        met.own = None if implied else spent(lambda: own_way(call, request), device)
        met.new = spent(lambda: wanted.attended().mix, device)
        met.matrix = found.numel() // max(1, found.shape[-1]) * request.k.shape[-2] * found.element_size()

    # What came of it

    def finish(self) -> None:
        """The model ran: say so where nothing was swapped."""
        if any(not met.why for met in self.met.values()):
            return
        what = shown(self.attention)
        reasons = {name: met.why for name, met in self.met.items()} | self.refused
        if self.at is not None and self.met and all(met.why == NOT_NAMED for met in self.met.values()):
            known = list(self.met)
            more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
            named = ", ".join(part.said for part in self.at)
            raise WatchError(
                f"{what} was swapped in nowhere: layers= names {named}, and the model has attention at "
                f"{', '.join(known[:LISTED])}{more}"
            )
        if reasons:
            name, why = next(iter(reasons.items()))
            more = f" (and {len(reasons) - 1} more layers were left as they are)" if len(reasons) > 1 else ""
            raise WatchError(f"{what} was swapped in nowhere; {name}: {why}{more}")
        raise WatchError(
            f"{what} was swapped in nowhere: the model was not called in this thread inside the block, it ran under "
            "torch.func or as an exported program, or it has no attention"
        )


def exchanged(call: Call, request: Request, found: Attended, what: str) -> Tensor:
    """The new mix, (b, h, q, e), and the call told as if the model had made it; edits that came first go on top."""
    earlier = call.editing.edits if isinstance(call.editing, Editing) else []
    lead = 4 - found.mix.ndim
    mix = found.mix[(None,) * lead]
    source, computed = found.weights.source, found.weights.source.computed
    call.map = found.weights
    call.edits.append(f"swap({what})")
    call.raw = call.used = call.weights = call.mask = call.bias = call.alive = None
    call.q, call.k = (None if computed is None else x[(None,) * lead] for x in (request.q, request.k))
    call.v = request.v[(None,) * lead]
    call.raw_mix, call.to_bhqe = mix, as_it_is
    whole = source if computed is None else source_4d(call)
    call.editing = Exchanged(mix, None, whole, [*earlier], found.weights)
    over = edited(call) if earlier else None
    return mix if over is None else over


def as_it_is(x: Tensor) -> Tensor:
    return x


def shown(attention: Mask | Mechanism) -> str:
    """What is swapped in, on one line."""
    return " ".join(repr(attention).split())
