"""Where in the model a call stands, read from the running frames: no hook is needed for a name."""

from types import CodeType, FrameType
from typing import NamedTuple

from torch import Tensor, nn

CALL = nn.Module._call_impl.__code__
WRAPPED = nn.Module._wrapped_call_impl.__code__

Tree = dict[int, tuple[str, nn.Module]]  # path and module, by the module's id


def tree_of(model: nn.Module) -> Tree:
    """Every module under `model` by its id, with the first path that leads to it."""
    found: Tree = {id(model): ("", model)}

    def walk(module: nn.Module, path: str) -> None:
        inner = path + "." if path else ""
        for name, child in module._modules.items():
            mark = id(child)
            if child is None or mark in found:
                continue
            here = path if name == "_orig_mod" else inner + name  # a compiled module stands for what it wraps
            found[mark] = (here, child)
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
    for word in CROSSED:
        if own.get(word) is True or getattr(shared, word, False) is True:
            name = "cross"
    return AttentionKind(name or ("self" if causal or cached or q_length == k_length else "unknown"), cached, source)


def is_helper(place: CallSite) -> bool:
    """Whether a module is handed q, k and v, and makes none of them: then the one around it knows what they are."""
    if not words_of(place.method.f_code).takes_qkv or isinstance(place.module, nn.MultiheadAttention):
        return False
    return not any(isinstance(x, nn.Linear) for x in place.module._modules.values())


def ask_arguments(place: CallSite) -> AttentionKind:
    """What the arguments of a module's methods say; no name where they say nothing."""
    name, cached, source = "", False, None
    module = place.module
    frame: FrameType | None = place.method
    while frame is not None and frame is not place.call:
        code = frame.f_code
        here = place.here if frame is place.method else frame.f_locals
        if code.co_argcount and here.get(code.co_varnames[0]) is module:
            words = words_of(code)
            if words.sources:
                asked = here.get(code.co_varnames[1])  # it may be deleted by now
                for word in words.sources:
                    other = here.get(word)
                    if isinstance(other, Tensor) and other is not asked:
                        name, source = "cross", other
            if isinstance(module, nn.MultiheadAttention):
                q, k = here.get("query"), here.get("key")
                if isinstance(q, Tensor) and isinstance(k, Tensor):
                    name = name or ("self" if q is k else "cross")
                    source = source if q is k else k
            for word in words.caches:
                cached = cached or here.get(word) is not None
        frame = frame.f_back
    return AttentionKind(name, cached, source)


class CodeWords(NamedTuple):
    """Names in a method that say what sort of attention it computes."""

    code: CodeType
    sources: tuple[str, ...]  # arguments that keys come from
    caches: tuple[str, ...]
    takes_qkv: bool  # whether its first arguments are called q, k and v


WORDS: dict[int, CodeWords] = {}  # by the id of a code, which is kept alive so that the id stays its own


def words_of(code: CodeType) -> CodeWords:
    """The same for every call of a method, so it is read once."""
    known = WORDS.get(id(code))
    if known is None:
        if len(WORDS) > 4096:  # somebody makes functions all the time
            WORDS.clear()
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        held = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
        caches = tuple(word for word in CACHES if word in held)
        sources = tuple(word for word in SOURCES if word in given)
        takes_qkv = [name[:1] for name in code.co_varnames[1:4]] == ["q", "k", "v"]
        known = WORDS[id(code)] = CodeWords(code, sources, caches, takes_qkv)
    return known
