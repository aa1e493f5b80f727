"""The calls of modules around an attention call: where its step and its run begin, and what each of them was given."""

from types import FrameType
from typing import NamedTuple

from torch import Tensor

from regard.trace.doors.arguments import CallArguments, arguments_of, names_of
from regard.trace.doors.call_site import CALL, WRAPPED, CallSite, Tree, first_argument


class CallInputs(NamedTuple):
    """What calls of modules were given that names their rows."""

    ids: tuple[Tensor, ...] = ()  # integer inputs, those of the innermost call first
    rivals: tuple[bool, ...] = ()  # for each: whether its call was given other integers of the same length
    pixels: tuple[int, ...] | None = None  # shape of the picture that went in


class Stack(NamedTuple):
    """The frames around a call, as far as they belong to the watched model."""

    step: FrameType  # the outermost call of a module
    session: FrameType  # the outermost method of a module: `generate`, or the same as step
    outermost: CallInputs  # what the step was given
    given: CallInputs  # what it and the calls in it, around this one, were given
    calls: tuple[FrameType, ...] = ()  # calls of modules around this one, innermost first, and the session
    handed: tuple[CallArguments, ...] = ()  # what each of these was given, as far as it was read: the first ones
    rows: Tensor | None = None  # the ids that its rows were embedded from


def stack_of(place: CallSite, tree: Tree, known: Stack | None) -> Stack:
    """Walk outwards from a call. The known stack of an earlier call in the same step ends the walk early."""
    calls: list[FrameType] = []
    frame: FrameType | None = place.call
    if known is not None:
        step, session = known.step, known.session
        while frame is not None and frame is not step:
            if frame.f_code is CALL:
                calls.append(frame)
            frame = frame.f_back
        if frame is not None:
            handed = tuple([arguments_of(call) for call in calls])
            return Stack(
                step, session, known.outermost, given_to(handed, known.outermost),
                unite_calls([*calls, step], session), handed,
            )  # fmt: skip
    outer_call = outer_method = place.call
    calls, frame = [], place.call
    while frame is not None:
        code = frame.f_code
        if code.co_argcount and (owner := tree.get(id(first_argument(frame)))) is not None:
            if code is CALL:
                outer_call = frame
                calls.append(frame)
            if hasattr(type(owner[1]), code.co_name):  # a method, no function that happens to take the model
                outer_method = frame
        frame = frame.f_back
    handed = tuple([arguments_of(call) for call in calls])
    outermost = given_to(handed[-1:], CallInputs())
    around = unite_calls(calls or [outer_call], outer_method)
    return Stack(outer_call, outer_method, outermost, given_to(handed[:-1], outermost), around, handed)


def unite_calls(calls: list[FrameType], session: FrameType) -> tuple[FrameType, ...]:
    """Calls of modules, innermost first, and the method around all of them where that is another."""
    return tuple(calls) if session in calls or session.f_code is WRAPPED else (*calls, session)


def given_to(calls: tuple[CallArguments, ...], around: CallInputs) -> CallInputs:
    """Token ids, and the shape of a picture, among what these calls of modules were given, and those around them."""
    ids: list[Tensor] = []
    rivals: list[bool] = []
    pixels: tuple[int, ...] | None = None
    for given in calls:
        for found in inputs_of(given):
            if found.is_floating_point():
                pixels = tuple(found.shape)
            else:
                ids.append(found)
                rivals.append(has_rival(found, given))
    if not ids and pixels is None:
        return around
    pixels = pixels if around.pixels is None else around.pixels
    return CallInputs((*ids, *around.ids), (*rivals, *around.rivals), pixels)


def inputs_of(given: CallArguments) -> list[Tensor]:
    """The tensors that may be tokens or a picture among the arguments of a module's call."""
    found: list[Tensor] = []
    if given.named:
        for name in names_of(given.named).inputs:
            value = given.named[name]
            if isinstance(value, Tensor) and names_rows(value):
                found.append(value)
    if given.args:
        first = given.args[0]
        if isinstance(first, Tensor) and names_rows(first):
            found.append(first)
    return found


def has_rival(ids: Tensor, given: CallArguments) -> bool:
    """Whether a call was given other integers that are as long, such as a target beside a source."""
    others: list[object] = list(given.args)
    others += [x for name, x in given.named.items() if not any(word in name for word in ("mask", "position", "type"))]
    alike = [x for x in others if isinstance(x, Tensor) and x is not ids and x.shape == ids.shape and x.numel()]
    return any(not x.is_floating_point() and names_rows(x) and int(x.max()) > 1 for x in alike)  # ≤ 1: a mask


def names_rows(x: Tensor) -> bool:
    """Whether this may be token ids, or a picture."""
    if x.is_floating_point():
        return x.ndim == 4
    return x.ndim in (1, 2) and x.element_size() >= 4 and not x.is_complex()
