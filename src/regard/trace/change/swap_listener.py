"""The listener of `swap`: answers each call of a model's attention by another mask or mechanism."""

from dataclasses import dataclass
from enum import StrEnum

from torch import Tensor, nn

from regard.attention.attend import Attended
from regard.attention.mask import Mask
from regard.attention.matrix_free.mechanism import Mechanism
from regard.errors import RegardError, WatchError
from regard.trace.change.aim import parts_of
from regard.trace.change.call_change import CallChange, as_it_is, edit_mix, source_4d
from regard.trace.change.cost import MeasuredCost, measure_cost
from regard.trace.change.listener import NOT_CALLED, CallName, ChangeListener, list_some
from regard.trace.change.request import Request, own_way, request_of
from regard.trace.doors.call_site import kind_of
from regard.trace.doors.compact_form import Memo
from regard.trace.doors.scope import Call


class SwapState(StrEnum):
    """What became of a layer."""

    SWAPPED = "swapped"
    NOT_NAMED = "not_named"
    CROSS = "cross"
    PERHAPS_CROSS = "perhaps_cross"
    UNREADABLE = "unreadable"  # what it computes cannot be told


REASONS = {
    SwapState.NOT_NAMED: "it is not among layers=",
    SwapState.CROSS: "it is cross-attention, whose keys are another text; name it in layers= to swap it too",
    SwapState.PERHAPS_CROSS: (
        "its keys are not its queries' own, so it may be cross-attention; name it in layers= to swap it too"
    ),
}


@dataclass(eq=False)
class LayerSwap:
    """What became of one attention layer in a swap, and what that took."""

    kind: str
    q: int
    k: int
    state: SwapState = SwapState.SWAPPED
    unreadable: str = ""  # why what it computes cannot be told
    path: str = ""  # how `attend` computed it
    own: MeasuredCost | None = None
    new: MeasuredCost | None = None
    matrix: int = 0  # bytes that the whole weights would take

    @property
    def swapped(self) -> bool:
        return self.state is SwapState.SWAPPED

    @property
    def why(self) -> str:
        """Why it was left as it is; empty where it was swapped."""
        return REASONS.get(self.state, self.unreadable)


class SwapListener(ChangeListener):
    """A listener for one model whose attention is swapped: it answers a call by another mask or mechanism."""

    def __init__(
        self, model: nn.Module, attention: Mask | Mechanism, layers: object = None, *, metered: bool = False
    ) -> None:
        super().__init__(model)
        self.attention, self.metered = attention, metered
        self.at = parts_of(layers, self.tree)
        self.memo, self.step = Memo(), self.counter.step
        self.layers: dict[str, LayerSwap] = {}

    def retract_call(self, name: CallName, why: str) -> None:
        """A softmax by hand was only part of something: such calls are never swapped, so nothing is to be undone."""
        self.layers.pop(name.layer, None)

    def release(self) -> None:
        super().release()
        self.memo, self.step = Memo(), None

    def change_call(self, call: Call, name: CallName) -> Tensor | None:
        if self.counter.step is not self.step:
            self.memo, self.step = Memo(), self.counter.step
        (q, k), kind = call.lengths, kind_of(call.place, *call.lengths, call.causal)
        call.cached = kind.cached
        layer = self.layers.setdefault(name.layer, LayerSwap(kind.name, q, k))
        layer.q, layer.k = max(layer.q, q), max(layer.k, k)
        layer.state = self.judge(kind.name, name)
        if not layer.swapped:
            return None
        request = request_of(call, self.memo)
        if isinstance(request, str):
            layer.state, layer.unreadable = SwapState.UNREADABLE, request
            return None
        wanted = request.under(self.attention)
        try:
            found = wanted.attended()
        except RegardError as error:
            raise WatchError(
                f"{name.layer} cannot be computed by {describe_attention(self.attention)}: {error}"
            ) from error
        layer.path = found.path
        if self.metered:
            self.measure(layer, call, request, wanted, found.mix)
        return exchange(call, wanted, found, describe_attention(self.attention))

    def judge(self, kind: str, name: CallName) -> SwapState:
        """Whether a layer is to be swapped, by its name and its kind."""
        if self.at is not None:
            return SwapState.SWAPPED if name.fits(self.at) else SwapState.NOT_NAMED
        return {"self": SwapState.SWAPPED, "cross": SwapState.CROSS}.get(kind, SwapState.PERHAPS_CROSS)

    def measure(self, layer: LayerSwap, call: Call, request: Request, wanted: Request, found: Tensor) -> None:
        """Time and memory of the call both ways, one after the other, on the same tensors."""
        device = request.q.device
        implied = call.map is not None and call.map.kind == "implied"  # its own way is not known here
        layer.own = None if implied else measure_cost(lambda: own_way(call, request), device)
        layer.new = measure_cost(lambda: wanted.attended().mix, device)
        layer.matrix = found.numel() // max(1, found.shape[-1]) * request.k.shape[-2] * found.element_size()

    # What came of it

    def finish(self) -> None:
        """The model ran: say so where nothing was swapped."""
        if any(layer.swapped for layer in self.layers.values()):
            return
        nowhere = f"{describe_attention(self.attention)} was swapped in nowhere"
        if self.at is not None and {layer.state for layer in self.layers.values()} == {SwapState.NOT_NAMED}:
            named = ", ".join(part.said for part in self.at)
            raise WatchError(
                f"{nowhere}: layers= names {named}, and the model has attention at {list_some(list(self.layers))}"
            )
        reasons = {name: layer.why for name, layer in self.layers.items()} | self.reasons()
        if reasons:
            name, why = next(iter(reasons.items()))
            more = f" (and {len(reasons) - 1} more layers were left as they are)" if len(reasons) > 1 else ""
            raise WatchError(f"{nowhere}; {name}: {why}{more}")
        raise WatchError(f"{nowhere}: {NOT_CALLED}")


def exchange(call: Call, request: Request, found: Attended, what: str) -> Tensor:
    """The new mix, (b, h, q, e), and the call told as if the model had made it; edits that came first go on top."""
    earlier = call.editing.edits if isinstance(call.editing, CallChange) else []
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
    call.editing = CallChange(mix, None, whole, [*earlier], found.weights)
    over = edit_mix(call) if earlier else None
    return mix if over is None else over


def describe_attention(attention: Mask | Mechanism) -> str:
    """What is swapped in, on one line."""
    return " ".join(repr(attention).split())
