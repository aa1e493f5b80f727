"""Where in the model a call stands, read from the running frames: no hook is needed for a name."""

from types import FrameType
from typing import NamedTuple

from torch import Tensor, nn

CALL = nn.Module._call_impl.__code__
WRAPPED = nn.Module._wrapped_call_impl.__code__

Tree = dict[int, tuple[str, nn.Module]]  # path and module, by the module's id


def tree_of(model: nn.Module) -> Tree:
    """Every module under `model` by its id, with the first path that leads to it."""
    found: Tree = {id(model): ("", model)}

    def walk(module: nn.Module, path: str) -> None:
        inner = f"{path}." if path else ""
        for name, child in module._modules.items():
            if child is None or id(child) in found:
                continue
            here = path if name == "_orig_mod" else inner + name  # a compiled module stands for what it wraps
            found[id(child)] = (here, child)
            if child._modules:
                walk(child, here)

    walk(model, "")
    return found


class CallSite(NamedTuple):
    """The innermost module that is running, the frame of its method, and the outermost frame of this very call."""

    module: nn.Module
    method: FrameType
    call: FrameType
    here: dict[str, object]  # what the method's names stood for: reading the locals of a frame takes a while


def first_argument(frame: FrameType) -> object:
    """What a frame's function got as its first argument."""
    code = frame.f_code
    if not code.co_argcount:
        return None
    return frame.f_locals.get(code.co_varnames[0])


TOOLS = (nn.Softmax, nn.Dropout, nn.Identity)  # modules that stand for a function, and name no place of their own


def place_of(frame: FrameType | None) -> CallSite | None:
    """The innermost frame whose first argument is a module decides."""
    while frame is not None:
        code = frame.f_code
        if code.co_argcount:
            here = frame.f_locals
            module = here.get(code.co_varnames[0])
            if isinstance(module, nn.Module) and not isinstance(module, TOOLS):
                return CallSite(module, frame, whole_call(frame, module), here)
        frame = frame.f_back
    return None


def around(place: CallSite) -> CallSite | None:
    """The module call in which this one was made."""
    frame = place.call.f_back
    while frame is not None and first_argument(frame) is place.module:
        frame = frame.f_back
    return place_of(frame)


def modules_near(place: CallSite) -> tuple[int, ...]:
    """A product and the next may stand in modules of their own, inside of one that calls both."""
    outer = around(place)
    return (id(place.module),) if outer is None else (id(place.module), id(outer.module))


def is_mapped(frame: FrameType | None) -> bool:
    """Whether this runs inside of `torch.vmap`, which puts an axis of its own among batch and heads."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "torch._functorch.vmap":
            return True
        frame = frame.f_back
    return False


def whole_call(frame: FrameType, module: nn.Module) -> FrameType:
    """The outermost frame that still belongs to this call of the module: `forward` stands inside `__call__`."""
    found, above = frame, frame.f_back
    if above is not None and above.f_code is CALL:  # the usual case
        return above
    while above is not None:
        code = above.f_code
        if code is CALL or code is WRAPPED:
            return above if above.f_locals.get("self") is module else found
        owner = first_argument(above)
        if isinstance(owner, nn.Module):
            if owner is not module:
                return found
            found = above
        above = above.f_back
        if above is not None and above.f_code.co_name == "<module>":
            return found
    return found


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
    rows: Tensor | None = None  # the ids that its rows were embedded from


def stack_of(place: CallSite, tree: Tree, known: Stack | None) -> Stack:
    """Walk outwards from a call. The known stack of an earlier call in the same step ends the walk early."""
    calls: list[FrameType] = []
    frame: FrameType | None = place.call
    if known is not None:
        step = known.step
        while frame is not None and frame is not step:
            if frame.f_code is CALL:
                calls.append(frame)
            frame = frame.f_back
        if frame is not None:
            around = unite_calls([*calls, step], known.session)
            return known._replace(given=given_to(calls, known.outermost), calls=around, rows=None)
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
    outermost = given_to(calls[-1:], CallInputs())
    around = unite_calls(calls or [outer_call], outer_method)
    return Stack(outer_call, outer_method, outermost, given_to(calls[:-1], outermost), around)


def unite_calls(calls: list[FrameType], session: FrameType) -> tuple[FrameType, ...]:
    """Calls of modules, innermost first, and the method around all of them where that is another."""
    return tuple(calls) if session in calls or session.f_code is WRAPPED else (*calls, session)


def given_to(calls: list[FrameType], around: CallInputs) -> CallInputs:
    """Token ids, and the shape of a picture, among what these calls of modules were given, and those around them."""
    ids: list[Tensor] = []
    rivals: list[bool] = []
    pixels: tuple[int, ...] | None = None
    for frame in calls:
        outer = frame.f_back  # holds the arguments and nothing else, so it is read in less time
        given = (outer if outer is not None and outer.f_code is WRAPPED else frame).f_locals
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


NAMES = frozenset({"x", "ids", "tokens", "pixel_values"})


def inputs_of(here: dict[str, object]) -> list[Tensor]:
    """The tensors that may be tokens or a picture among the arguments of a module's call."""
    args, named = here.get("args"), here.get("kwargs")
    found: list[Tensor] = []
    if isinstance(named, dict):
        for name, value in named.items():
            if (name in NAMES or name.endswith("input_ids")) and isinstance(value, Tensor) and names_rows(value):
                found.append(value)
    if isinstance(args, tuple) and args and isinstance(args[0], Tensor) and names_rows(args[0]):
        found.append(args[0])
    return found


def has_rival(ids: Tensor, here: dict[str, object]) -> bool:
    """Whether a call was given other integers that are as long, such as a target beside a source."""
    args, named = here.get("args"), here.get("kwargs")
    others: list[object] = list(args) if isinstance(args, tuple) else []
    if isinstance(named, dict):
        others += [x for name, x in named.items() if not any(word in name for word in ("mask", "position", "type"))]
    alike = [x for x in others if isinstance(x, Tensor) and x is not ids and x.shape == ids.shape and x.numel()]
    return any(not x.is_floating_point() and names_rows(x) and int(x.max()) > 1 for x in alike)  # ≤ 1: a mask


def names_rows(x: Tensor) -> bool:
    """Whether this may be token ids, or a picture."""
    if x.is_floating_point():
        return x.ndim == 4
    return x.ndim in (1, 2) and x.element_size() >= 4 and not x.is_complex()


CROSSED = ("is_cross_attention", "encoder_decoder_attention")
CACHES = ("past_key_values", "past_key_value", "layer_past", "cache", "kv_cache")
SOURCES = (
    "key_value_states", "encoder_hidden_states", "cross_attention_states", "context", "memory", "source", "kv",
)  # fmt: skip


class AttentionKind(NamedTuple):
    """What sort of attention a call is, and whether its module was handed a cache."""

    name: str  # "self", "cross" or "unknown"
    cached: bool
    source: Tensor | None = None  # what its keys are made of, where that was handed over beside its queries


def kind_of(place: CallSite, q_length: int, k_length: int, causal: bool) -> AttentionKind:
    """Shapes alone cannot tell self from cross, so the arguments of the module are asked."""
    name, cached, source = ask_arguments(place)
    if not name and is_helper(place) and (outer := around(place)) is not None:
        name, more, source = ask_arguments(outer)
        cached = cached or more
    own, shared = place.module.__dict__, type(place.module)
    if any(own.get(word) is True or getattr(shared, word, False) is True for word in CROSSED):
        name = "cross"
    return AttentionKind(name or ("self" if causal or cached or q_length == k_length else "unknown"), cached, source)


def is_helper(place: CallSite) -> bool:
    """Whether a module is handed q, k and v, and makes none of them: then the one around it knows what they are."""
    if isinstance(place.module, nn.MultiheadAttention):
        return False
    first = [name[:1] for name in place.method.f_code.co_varnames[1:4]]
    return first == ["q", "k", "v"] and not any(isinstance(x, nn.Linear) for x in place.module._modules.values())


def ask_arguments(place: CallSite) -> AttentionKind:
    """What the arguments of a module's methods say; no name where they say nothing."""
    name, cached, source = "", False, None
    frame: FrameType | None = place.method
    while frame is not None and frame is not place.call:
        code = frame.f_code
        here = place.here if frame is place.method else frame.f_locals
        if code.co_argcount and here.get(code.co_varnames[0]) is place.module:
            given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            asked = next((here.get(word) for word in given[1:2]), None)  # it may be deleted by now
            for word in SOURCES:
                other = here.get(word) if word in given else None
                if isinstance(other, Tensor) and other is not asked:
                    name, source = "cross", other
            q, k = here.get("query"), here.get("key")
            if isinstance(place.module, nn.MultiheadAttention) and isinstance(q, Tensor) and isinstance(k, Tensor):
                name = name or ("self" if q is k else "cross")
                source = source if q is k else k
            cached = cached or any(here.get(word) is not None for word in CACHES)
        frame = frame.f_back
    return AttentionKind(name, cached, source)
