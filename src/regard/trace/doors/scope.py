"""The listeners of this context, the call that they hear of, and what is only half seen yet."""

import threading
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from regard.attention.axes.layout import Layout
from regard.attention.map import AttentionMap
from regard.trace.doors.axes_hint import AxesHint
from regard.trace.doors.call_site import CallSite
from regard.trace.doors.ledger import Ledger, ScoreProduct
from regard.trace.record.findings import Findings


@dataclass(slots=True, eq=False)
class Call(Findings):
    """One attention call, as a door saw it: everything that decides the weights, nothing computed from it.

    Shapes are (b, h, q, d), (b, g, k, d), (b, g, k, e). `mask` is bool (True may look) or float (to be added).
    Where the map cannot be asked, `weights` holds what was seen; `map` is a map that already knows itself.
    """

    place: CallSite
    door: str
    q: Tensor | None = None
    k: Tensor | None = None
    v: Tensor | None = None
    scale: float = 1.0
    mask: Tensor | None = None
    causal: bool = False  # aligned to the first key, as the kernel's flag is
    bias: Tensor | None = None
    softcap: float | None = None
    sink: Tensor | None = None  # (h,)
    dropout: float = 0.0
    mix: Tensor | None = None  # b h q e
    raw_mix: Tensor | None = None  # the tensor whose gradient is the gradient of the mix, before reshaping
    handed_on: Tensor | None = None  # what editors put in the place of the mix
    weights: Tensor | None = None  # b h q k: the softmax that was seen
    map: AttentionMap | None = None
    raw: tuple[Tensor | None, bool, float | None] | None = None  # mask, causal flag and scale as the kernel got them
    cached: bool = False  # whether the module was handed a cache, whose last slots may be empty room
    rng: Tensor | None = None  # the random state before a call that drops weights
    used: Tensor | None = None  # b h q k: the weights after dropout, where they were seen
    refused: str = ""  # why there is no map of it
    rows: Tensor | None = None  # b q: which rows were computed, where a kernel leaves out those of padding
    to_bhqe: Callable[[Tensor], Tensor] | None = None  # how `raw_mix` becomes b h q e
    alive: Tensor | None = None  # b h q k: stored weights with their graph, for who computes with them
    editing: Any = None  # what editors change about this call (trace/change/call_change.py)

    @property
    def lengths(self) -> tuple[int, int]:
        """How many queries and keys it has."""
        if self.q is not None and self.k is not None:
            return self.q.shape[-2], self.k.shape[-2]
        shape = self.map.shape if self.map is not None else (0, 0) if self.weights is None else self.weights.shape
        return shape[-2], shape[-1]

    @property
    def batch(self) -> int:
        """How many batch entries it has."""
        known = self.map if self.map is not None else self.q if self.q is not None else self.weights
        assert known is not None
        return known.shape[0] if len(known.shape) == 4 else 1


@runtime_checkable
class Listener(Protocol):
    """What a door announces attention calls to; it may answer with another mix."""

    def owns(self, module: nn.Module) -> bool: ...

    def hint(self, place: CallSite) -> AxesHint:
        """What was said about the axes of attention there."""
        ...

    def modules(self) -> Iterable[nn.Module]:
        """Every module that is listened to."""
        ...

    def hear(self, call: Call) -> None: ...

    def refuse(self, place: CallSite | None, why: str) -> None: ...

    def miss(self, place: CallSite, what: str) -> None:
        """Something there computed attention in a way that is not heard."""
        ...

    def retract(self, place: CallSite) -> None:
        """The last call told from there was only part of something else."""
        ...

    def sum_again(self, place: CallSite) -> None:
        """The weights of the last call told from there weigh values of each query's own, too."""
        ...

    def release(self) -> None: ...

    def change(self, call: Call) -> Tensor | None:
        """Another mix (b, h, q, e) instead of the model's, which is `call.to_bhqe(call.raw_mix)`; None leaves it."""
        ...


@dataclass(slots=True, eq=False)
class Pending:
    """A call of the registry that is running: the kernel inside tells it what finally arrived there."""

    module: nn.Module
    kernels: list[tuple[Tensor | None, bool, float | None, float, int, torch.dtype]] = field(default_factory=list)
    softmaxes: list[Tensor] = field(default_factory=list)
    flex: bool = False


@dataclass(slots=True, eq=False)
class Candidate:
    """A softmax that may be attention: it is, when its output meets values."""

    place: CallSite
    outer: CallSite | None  # the module around, in which softmax and product may be modules of their own
    weights: Tensor
    version: int | None  # of the weights when softmax gave them
    met: bool = False
    again: bool = False  # whether it has met further values, such as some of each query's own
    changed: ScoreProduct | None = None  # what came of the values, where other numbers of its sizes met them
    notes: list[str] = field(default_factory=list)


@dataclass(eq=False)
class ListenerScope:
    """`ListenerScope` holds the listeners of one context, and what their doors have seen half of."""

    listeners: tuple[Listener, ...]
    pending: Pending | None = None
    candidates: list[Candidate] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)  # products that may be attention
    above: bool = False  # whether batched products of inference tensors are heard as matmul and einsum only
    paused: int = 0  # while we ourselves compute
    axes: dict[Any, Any] = field(default_factory=dict)  # which axes the calls of a module have (doors/axes.py)
    sums: Any = None  # of keys over positions, in a module that may be linear attention (doors/features.py)
    layouts: dict[Any, Layout] = field(default_factory=dict)  # the last layout that was found for a module
    around: Callable[[], None] | None = None  # how to stop intercepting what stands around products by hand
    products: Callable[[], None] | None = None  # how to stop intercepting products, while one is waited for

    def quiet(self, *, over: bool = False) -> None:
        """No product is waited for any more; beside other threads the door stays open until all is over."""
        if self.products is not None and (over or threading.active_count() == 1):
            self.products()
            self.products = None
        if over and self.around is not None:
            self.around()
            self.around = None

    def modules(self) -> list[nn.Module]:
        """All modules that are listened to, as long as nobody knows where their parameters stand in memory."""
        if self.ledger.fixed is not None:
            return []
        return [module for listener in self.listeners for module in listener.modules()]

    def owners(self, module: nn.Module) -> list[Listener]:
        return [listener for listener in self.listeners if listener.owns(module)]


SCOPE: ContextVar[ListenerScope | None] = ContextVar("regard_scene", default=None)


def current_scope() -> ListenerScope | None:
    """The scope of this context, where somebody listens and it makes sense to."""
    scope = SCOPE.get()
    if scope is None or scope.paused or torch.compiler.is_compiling():
        return None
    return scope


class paused:  # noqa: N801 - reads as a statement: `with paused(scope):`
    """While we compute something ourselves, no door tells of it."""

    def __init__(self, scope: ListenerScope) -> None:
        self.scope = scope

    def __enter__(self) -> None:
        self.scope.paused += 1

    def __exit__(self, *_: object) -> None:
        self.scope.paused -= 1
