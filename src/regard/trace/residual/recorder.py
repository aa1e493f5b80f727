"""The recorder of the residual stream: a dispatch mode that hears each operator below autograd, and changes nothing.

It stands in a watch with `residual=True` only. Whatever is added up is noted with what it was made of, by the memory
that tensors lie in: no name of a module or of a weight says what belongs to the stream.
"""

import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from regard.trace.doors.call_site import CALL, Tree
from regard.trace.residual.kept import KeptTensor
from regard.trace.residual.known import KnownTensors, MadeTensor, is_plain, weights_of
from regard.trace.residual.terms import MixTerm, PartTerm, Term

VIEWS = torch._C.DispatchKey.ADInplaceOrView
AXES = (2, 3)  # of a stream, and of what is added to it
LINEAR = ("addmm", "mm", "linear", "matmul", "bmm")
KEEP_KIND = ("mul", "div", "native_layer_norm", "layer_norm", "rms_norm", "_fused_rms_norm", "cat", "add")


class ResidualRecorder(TorchDispatchMode):
    """A mode that notes which tensors are sums, projections, norms and views of others, while a model runs."""

    supports_higher_order_operators = True

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self.tree = tree
        self.known = KnownTensors()
        self.weights = weights_of(tree)
        self.attending: Counter[str] = Counter()  # paths of modules whose attention gave something that is not marked

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), named: Any = None) -> Any:
        from regard.trace.residual.steps import STEPS

        named = named or {}
        if torch._C._current_graph_task_id() != -1 or not self.tree:  # a backward pass, or all is over
            return run(function, args, named)
        name = name_of(function)
        step = STEPS.get(name.rstrip("_"))
        places = written_places(function)
        if not places:
            out = run(function, args, named)
            self.note(step, function, args, named, out, name)
            return out
        target = args[places[0]] if places[0] < len(args) else None
        term = None
        if isinstance(target, Tensor) and is_plain(target) and name.endswith("_") and step is not None:
            term = step(self, function, args, named, target)
        for x in (*(args[i] for i in places if i < len(args)), named.get("out")):
            if isinstance(x, Tensor) and is_plain(x):
                self.known.note_write(x)
        out = run(function, args, named)
        if isinstance(term, Term) and isinstance(target, Tensor):
            self.known.bind(target, term)
        return out

    def note(self, step: Any, function: Any, args: Any, named: Any, out: Any, name: str) -> None:
        """Remember what an operator made."""
        made = out if isinstance(out, list | tuple) else (out,)
        if not made or not is_plain(made[0]) or not made[0].is_floating_point():
            return
        found = None if step is None else step(self, function, args, named, out)
        if found is None:
            # What is known by now was handed on as it is, as dropout does, or was marked by a door inside.
            if made[0].ndim in AXES and self.known.of(made[0]) is None:
                self.known.bind(made[0], MadeTensor(name, self.chain(sys._getframe(2)), self.kind(name, args)))
        elif isinstance(found, list):
            for x, one in zip(made, found):
                self.known.bind(x, one)
        else:
            self.known.bind(made[0], found)

    def kind(self, name: str, args: Any) -> str:
        """What a tensor that is no term seems to be."""
        if name == "embedding":
            return name
        linear = name in LINEAR
        for x in args:
            known = self.known.of(x) if is_plain(x) else None
            if isinstance(known, MadeTensor) and known.kind == "attention":
                return known.kind
            if not isinstance(known, MadeTensor) or known.kind != "embedding":
                continue
            if known.operator == "embedding" or (name in KEEP_KIND and not linear):
                return known.kind
        return "mlp" if linear else "module"

    def chain(self, frame: FrameType | None) -> tuple[str, ...]:
        """The modules that are running, innermost first."""
        found = []
        while frame is not None:
            if frame.f_code is CALL:
                inside = self.tree.get(id(frame.f_locals.get("self")))
                if inside is not None:
                    found.append(inside[0])
                    if not inside[0]:
                        break
            frame = frame.f_back
        return tuple(found)

    # Terms

    def term(self, x: Any) -> Term | None:
        """The term that a tensor is, where it is one."""
        found = self.known.of(x) if is_plain(x) else None
        return found if isinstance(found, Term) else None

    def term_or_part(self, x: Tensor, here: tuple[str, ...]) -> Term | None:
        """The term that a tensor is; what else was added becomes a part. `here` are the modules that add it."""
        known = self.known.of(x)
        if isinstance(known, Term):
            return known
        owner = self.weights.get(x.untyped_storage()._cdata)
        if owner is not None:
            kind = "bias" if x.numel() == x.shape[-1] else "embedding"
            return PartTerm(tuple(x.shape), KeptTensor(x, weight=True), owner, kind)
        if x.ndim > max(AXES):
            return None
        if known is None:
            name, kind = "input", "input"
        else:
            name, kind = name_part(known.chain, here), known.kind
            if any(f"{name}.".startswith(f"{path}.") for path in +self.attending):
                kind = "attention"
        term = PartTerm(tuple(x.shape), self.known.keep(x), name or "the model", kind)
        self.known.bind(x, term)
        return term

    def mark(self, mix: Tensor, to_bhqe: Callable[[Tensor], Tensor], layer: str) -> MixTerm | None:
        """From here on this tensor is what the heads of a layer gave."""
        if not is_plain(mix):
            return None
        term = MixTerm(tuple(mix.shape), layer, to_bhqe)
        self.known.bind(mix, term)
        return term

    def mark_whole(self, mix: Tensor) -> MadeTensor | None:
        """This is what the heads of a layer gave, but which of them gave what is not known from its map."""
        if not is_plain(mix):
            return None
        made = MadeTensor("attention", self.chain(sys._getframe(1)), "attention")
        self.known.bind(mix, made)
        return made

    def alias(self, x: Tensor, made: Tensor) -> None:
        """`x` came of one native operator, and `made` is the same, computed step by step."""
        found = self.term(made)
        if found is not None and is_plain(x) and x.shape == made.shape:
            self.known.bind(x, found)

    def release(self) -> None:
        """Let go of the model and of every tensor that no term keeps."""
        self.tree, self.known, self.weights, self.attending = {}, KnownTensors(), {}, Counter()


def name_part(made: tuple[str, ...], here: tuple[str, ...]) -> str:
    """The outermost module that gave a part, among those that made it and not those that add it."""
    inner = [path for path in made if path not in here]
    return inner[-1] if inner else (made or here or ("",))[0]


def run(function: Any, args: Any, named: Any) -> Any:
    """What the operator gives without a mode.

    In inference mode composite operators come here whole, and a mode stands below the key that makes views: there a
    transposed weight would need no gradient any more, by which torch chooses between two products of other bits.
    """
    if not torch.is_inference_mode_enabled() or not is_composite(function):
        return function(*args, **named)
    before = torch._C._dispatch_tls_is_dispatch_key_excluded(VIEWS)
    torch._C._dispatch_tls_set_dispatch_key_excluded(VIEWS, False)
    try:
        return function(*args, **named)
    finally:
        torch._C._dispatch_tls_set_dispatch_key_excluded(VIEWS, before)


@cache
def is_composite(function: Any) -> bool:
    """Whether torch writes an operator with others."""
    can = getattr(function, "_can_decompose", None)
    return can is not None and bool(can())


@cache
def name_of(function: Any) -> str:
    """The name of an operator without its overload: "add", "add_"."""
    return str(function.__name__).partition(".")[0]


@cache
def written_places(function: Any) -> tuple[int, ...]:
    """Which arguments an operator writes to."""
    schema = getattr(function, "_schema", None)
    if schema is None or not schema.is_mutable:
        return ()
    return tuple(i for i, one in enumerate(schema.arguments) if one.alias_info is not None and one.alias_info.is_write)
