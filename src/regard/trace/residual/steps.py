"""What each operator of torch makes of terms: a sum, a projection, a scale, a norm, or the same numbers elsewhere."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from regard.trace.residual.kept import KeptTensor
from regard.trace.residual.known import MadeTensor, is_plain
from regard.trace.residual.recorder import AXES, ResidualRecorder, name_of
from regard.trace.residual.terms import (
    CastTerm,
    LinearTerm,
    MixTerm,
    MoveTerm,
    NormTerm,
    ScaleTerm,
    StepTerm,
    SumTerm,
    Term,
)

RESHAPES = ("view", "_unsafe_view", "reshape", "_reshape_alias")
LAYER_NORM_EPS = 1e-5  # of torch's layer norm, where nothing is said

Found = Term | MadeTensor | list[Term] | None
Step = Callable[[ResidualRecorder, Any, Any, Any, Any], Found]


def add(recorder: ResidualRecorder, function: Any, args: Any, named: Any, out: Tensor) -> Found:
    """Two tensors, or a tensor and a number, one of them times `alpha`."""
    left, right = args[:2]
    sign = -1.0 if function.__name__.startswith("sub") else 1.0
    factor = sign * float(named.get("alpha", args[2] if len(args) > 2 else 1.0))
    if not isinstance(right, Tensor) or right.ndim == 0:
        x = recorder.term(left)
        if x is None or (isinstance(right, Tensor) and right.device.type != "cpu"):
            return None
        return SumTerm(tuple(out.shape), [(x, 1.0)], factor * float(right))
    if not isinstance(left, Tensor) or not is_plain(left) or not is_plain(right):
        return None
    tracked = [recorder.term(x) is not None for x in (left, right)]
    if not any(tracked) and not may_begin(left, right, out):
        return None
    here = recorder.chain(sys._getframe(2))
    terms = [recorder.term_or_part(x, here) for x in (left, right)]
    if terms[0] is None or terms[1] is None:
        return None
    for term in terms:
        follow_mix(term)
    return SumTerm(tuple(out.shape), [(terms[0], 1.0), (terms[1], factor)])


def may_begin(left: Tensor, right: Tensor, out: Tensor) -> bool:
    """Whether a sum of two tensors of which nothing is known may be the beginning of a stream."""
    fits = all(x.ndim in AXES and x.shape[-1] == out.shape[-1] > 1 and x.is_floating_point() for x in (left, right))
    return fits and left.dtype == right.dtype


def follow_mix(term: Term | None) -> None:
    """Where what is added came of the heads of a layer alone, remember by which steps."""
    steps: list[Term] = []
    while term is not None and not isinstance(term, MixTerm):
        if not isinstance(term, StepTerm | MoveTerm) or len(term.inputs) != 1:
            return
        steps.append(term)
        term = term.inputs[0]
    if term is not None and not term.steps:
        term.steps = steps[::-1]


def multiply(recorder: ResidualRecorder, function: Any, args: Any, named: Any, out: Tensor) -> Found:
    """A term times a number, a number for each channel, or one for each row, as norms scale them."""
    left, right = args[:2]
    divides = function.__name__.startswith("div")
    if divides and (named.get("rounding_mode") or len(args) > 2):
        return None
    x, y = recorder.term(left), recorder.term(right)
    if x is None and y is None and (not isinstance(right, Tensor) or right.numel() == 1):
        made = recorder.known.of(left)  # an embedding times a number is still one
        return made if isinstance(made, MadeTensor) else None
    if (x is None) == (y is None) or (divides and x is None):
        return None
    term, by = (x, right) if x is not None else (y, left)
    assert term is not None
    shape = tuple(out.shape)
    if not isinstance(by, Tensor):
        return ScaleTerm(shape, term, float(by), divides)
    if not is_plain(by):
        return None
    owned = by.untyped_storage()._cdata in recorder.weights
    of_rows = by.numel() > 1 and by.shape[-1] == 1 < term.shape[-1]
    if not (owned or of_rows or by.numel() == 1 or (by.ndim == 1 and by.shape[0] == shape[-1])):
        return None
    place = recorder.chain(sys._getframe(2))[:1] if of_rows and not owned else ()
    kept = KeptTensor(by, weight=True) if owned else recorder.known.keep(by)
    return ScaleTerm(shape, term, kept, divides, place[0] if place else None)


def project(recorder: ResidualRecorder, function: Any, args: Any, named: Any, out: Tensor) -> Found:
    """A linear layer."""
    name = function.__name__.partition(".")[0]
    bias = None
    if name == "addmm":
        bias, x, weight = args[:3]
        if named.get("alpha", 1) != 1 or named.get("beta", 1) != 1:
            return None
    else:
        x, weight = args[:2]
        bias = args[2] if len(args) > 2 else named.get("bias")
    term = recorder.term(x)
    if name == "bmm" and weight.shape[0] == 1:  # what an einsum with a weight comes to
        weight = weight[0]
    if term is None or recorder.term(weight) is not None or not is_plain(weight) or weight.ndim != 2:
        return None
    kept = None if bias is None else KeptTensor(bias, weight=True)
    return LinearTerm(tuple(out.shape), term, KeptTensor(weight, weight=True), name == "linear", kept)


def norm(recorder: ResidualRecorder, function: Any, args: Any, named: Any, out: Any) -> Found:
    """A layer norm or an RMS norm over the last axis."""
    name = function.__name__.partition(".")[0]
    term = recorder.term(args[0])
    if term is None or len(args[1]) != 1:
        return None
    centred = "layer" in name
    given = [args[i] if len(args) > i else named.get(key) for i, key in ((2, "weight"), (3, "bias"))]
    weight, bias = (given[0], given[1] if centred else None)
    if isinstance(out, Tensor):
        at, usual = (4, LAYER_NORM_EPS) if centred else (3, None)
        eps = args[at] if len(args) > at else named.get("eps", usual)
        scale = scale_of(args[0], eps, centred=centred)
    else:
        scale = out[-1]
    first = out if isinstance(out, Tensor) else out[0]
    place = recorder.chain(sys._getframe(2))[:1]
    held = [None if w is None else KeptTensor(w, weight=True) for w in (weight, bias)]
    scale = scale.detach().reshape(term.shape[:-1]).clone()
    made = NormTerm(tuple(first.shape), term, scale, centred, held[0], held[1], place[0] if place else None)
    return made if isinstance(out, Tensor) else [made]


def scale_of(x: Tensor, eps: float | None, *, centred: bool) -> Tensor:
    """What a norm multiplies each row by."""
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    x = x.detach().to(torch.promote_types(x.dtype, torch.float32))
    size = x.var(-1, correction=0) if centred else x.square().mean(-1)
    return (size + eps).rsqrt()


def move(recorder: ResidualRecorder, function: Any, args: Any, named: Any, out: Any) -> Found:
    """Views, slices, joined tensors: the same numbers in other places."""
    many = isinstance(args[0], list | tuple)
    given = list(args[0]) if many else [args[0]]
    if not all(is_plain(x) for x in given):
        return None
    terms = [recorder.term(x) for x in given]
    if not any(terms):
        made = recorder.known.of(given[0])
        return made if isinstance(made, MadeTensor) and not many and not isinstance(out, list | tuple) else None
    if many:
        here = recorder.chain(sys._getframe(2))
        terms = [recorder.term_or_part(x, here) for x in given]
    known = [term for term in terms if term is not None]
    if len(known) < len(given):
        return None
    if isinstance(out, Tensor) and out.dtype != given[0].dtype:  # bytes read as numbers of another type
        return None
    rest = args[1:]
    reshapes = isinstance(out, Tensor) and name_of(function) in RESHAPES

    def again(xs: list[Tensor], at: int | None = None) -> Tensor:
        if reshapes:  # what goes through here lies otherwise in memory than what the model gave
            return xs[0].reshape(out.shape)
        found = function(xs if many else xs[0], *rest, **named)
        return found if at is None else found[at]

    if isinstance(out, Tensor):
        return MoveTerm(tuple(out.shape), known, again)
    return [MoveTerm(tuple(x.shape), known, partial(again, at=i)) for i, x in enumerate(out)]


def same(recorder: ResidualRecorder, function: Any, args: Any, named: Any, out: Any) -> Found:
    """The same numbers, perhaps in another type or place."""
    if not is_plain(args[0]) or not isinstance(out, Tensor) or not args[0].is_floating_point():
        return None
    found = recorder.known.of(args[0])
    if isinstance(found, Term) and out.dtype != args[0].dtype:
        return CastTerm(tuple(out.shape), found, out.dtype) if out.is_floating_point() else None
    return found


STEPS: dict[str, Step] = {
    **dict.fromkeys(("add", "sub"), add),
    **dict.fromkeys(("mul", "div"), multiply),
    **dict.fromkeys(("mm", "addmm", "linear", "matmul", "bmm"), project),
    **dict.fromkeys(("native_layer_norm", "layer_norm", "_fused_rms_norm", "rms_norm"), norm),
    **dict.fromkeys(
        ("clone", "_to_copy", "to", "contiguous", "detach", "alias", "lift_fresh", "type_as", "float", "double"), same
    ),
    **dict.fromkeys(
        (
            *(*RESHAPES, "flatten", "unflatten", "squeeze", "unsqueeze"),
            *("t", "transpose", "permute", "movedim", "swapaxes", "numpy_T", "expand", "expand_as", "flip", "roll"),
            *("slice", "select", "narrow", "index", "index_select", "cat", "concat", "stack"),
            *("split", "split_with_sizes", "chunk", "unbind"),
        ),
        move,
    ),
}
