"""How a model computes its steps: the quickest way that is right, or the one that is asked for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from torch import Tensor

from regard.errors import ConfigError, PositionError, ShapeError
from regard.extras import load_named
from regard.models.causal_inputs import Rows, must_be_readable, pad_left
from regard.models.causal_state import CausalState
from regard.models.decoder_state import DecoderState
from regard.positions import Learned

if TYPE_CHECKING:
    from regard.models.causal import CausalModel
    from regard.models.translator_state import TranslatorState

PLAIN = "plain"
# The quickest first, as "module:name" of an `Engine`; loaded when a model begins to write.
ENGINES: dict[str, str] = {"fast": "regard.models.fast.engine:ENGINE", "lean": "regard.models.lean.state:LEAN"}

SHORTCUT = "regard.models.lean.translator_state:shorten"  # the lean state of an encoder–decoder, where it is right


@runtime_checkable
class Engine(Protocol):
    """Another way to compute what the modules of a model compute, step by step."""

    least_size: int  # how many parameters a model needs for it to be chosen without being asked for

    def find_obstacle(self, model: "CausalModel") -> str | None:
        """Why this model cannot be computed so now, to be said after a colon; None where it can."""
        ...

    def begin(self, plain: CausalState) -> DecoderState:
        """The state that does what this one would do: with its model, prompt, left_padding, window and sinks."""
        ...


def begin_decoding(
    model: "CausalModel", prompt: Rows, *, window: int | None, sinks: int, engine: str | None
) -> DecoderState:
    """The state of a model that has read nothing of its prompt yet; the arguments are those of `CausalModel.begin`."""
    ids, left_padding = pad_left(prompt)
    must_be_readable(model, ids, None, left_padding)
    must_be_window(model, window, sinks, left_padding)
    plain = CausalState(model, ids, left_padding, window=window, sinks=sinks)
    if engine == PLAIN:
        return plain
    if engine is not None:
        must_be_engine(engine)
        chosen = load_engine(engine)
        obstacle = chosen.find_obstacle(model)
        if obstacle is not None:
            raise ConfigError(f"the engine {engine!r} cannot be used: {obstacle}; leave engine out, or take 'plain'")
        return chosen.begin(plain)
    size = sum(parameter.numel() for parameter in model.parameters())
    candidates = (one for one in map(load_engine, ENGINES) if size >= one.least_size)
    quickest = next((one for one in candidates if one.find_obstacle(model) is None), None)
    return plain if quickest is None else quickest.begin(plain)


def begin_translating(plain: "TranslatorState") -> DecoderState:
    """The state of an encoder–decoder that has read its source: the lean one where it is right, else the plain one."""
    state: DecoderState = load_named(SHORTCUT)(plain)
    return state


def load_engine(name: str) -> Engine:
    """The engine of this name."""
    engine: Engine = load_named(ENGINES[name])
    return engine


def must_be_engine(name: str) -> None:
    """Refuse a name that no engine has."""
    known: Sequence[str] = (PLAIN, *ENGINES)
    if name not in known:
        raise ConfigError(f"engine is {name!r}; choose one of {', '.join(map(repr, known))}")


def must_be_window(model: "CausalModel", window: int | None, sinks: int, left_padding: Tensor | None) -> None:
    """Refuse a window that cannot be, or that this model cannot write in."""
    if window is None and not sinks:
        return
    if window is None or window < 1 or sinks < 0:
        raise ConfigError(
            f"window={window} and sinks={sinks} came, but they count tokens; give a window of 1 or more, and 0 or "
            "more sinks"
        )
    if isinstance(model.added, Learned):
        raise PositionError(
            f"a window of {window} came, but the learned positions of this model end at {model.longest}, and no text "
            "in it is endless; leave window out, or take a model with rotary positions or ALiBi"
        )
    if sinks and left_padding is not None:
        raise ShapeError(
            f"{sinks} sinks came with prompts of different lengths, whose first tokens stand at different places; "
            "give prompts of one length, or each by itself"
        )
