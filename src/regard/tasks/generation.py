"""How a text is written: every setting of `TextWriter`, checked once."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from regard.decode.choice import check_sampling
from regard.decode.repetition import check_repetition
from regard.errors import ConfigError


@dataclass(frozen=True)
class GenerationSettings:
    """What a `TextWriter` goes by; the names are those of `transformers` and of its users.

    >>> GenerationSettings(temperature=0.8, stop="\\n").stop
    ('\\n',)
    >>> GenerationSettings(temperature=-1)
    Traceback (most recent call last):
    regard.errors.ConfigError: temperature is -1, but it divides the logits; give 0 (the likeliest) or more
    """

    max_tokens: int | None = 128  # tokens written at most; None: as many as the model takes
    temperature: float | int = 0  # 0 says the likeliest token each time
    top_k: int | None = None  # draw from so many likeliest tokens
    top_p: float | int | None = None  # draw from the fewest tokens that reach this probability together
    min_p: float | int | None = None  # draw from tokens at least so many times as likely as the likeliest
    repetition_penalty: float | int = 1.0  # above 1: what the text holds already becomes less likely
    beams: int = 1  # texts that a search keeps side by side
    stop: str | Sequence[str] = ()  # strings before which the text ends
    seed: int | None = None  # of what is drawn; None: another one each time
    window: int | None = None  # look back no further than so many tokens, so that a text has no end
    sinks: int = 0  # the first tokens of all, which stay in view beside the window

    def __post_init__(self) -> None:
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)
        object.__setattr__(self, "stop", stop)
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ConfigError(f"max_tokens is {self.max_tokens}, but it counts what is written; give 1 or more")
        check_sampling(self.temperature, self.top_k, self.top_p, self.min_p)
        check_repetition(self.repetition_penalty)
        if self.beams < 1:
            raise ConfigError(f"beams is {self.beams}, but a search keeps at least one text; give 1 or more")
        if self.beams > 1 and self.temperature:
            raise ConfigError(
                f"{self.beams} beams came with temperature {self.temperature}, but a search draws nothing; "
                "give beams or a temperature"
            )
        if any(not one for one in stop):
            raise ConfigError("a stop string is empty, so the text would end before it begins; leave it out")
        if self.seed is not None and not -(2**63) <= self.seed < 2**64:
            raise ConfigError(f"seed is {self.seed}, but generators take 64 bits; give a smaller number")
        if (self.window is not None and self.window < 1) or self.sinks < 0 or (self.sinks and self.window is None):
            raise ConfigError(
                f"window={self.window} and sinks={self.sinks} came, but they count tokens; give a window of 1 or "
                "more, and 0 or more sinks beside it"
            )

    @property
    def stops(self) -> tuple[str, ...]:
        """The strings before which the text ends."""
        return tuple(self.stop)


def make_settings(given: GenerationSettings | None, changes: dict[str, Any]) -> GenerationSettings:
    """The settings with these changed; a name that is none is a `ConfigError` that says the nearest.

    >>> make_settings(None, {"temprature": 1})
    Traceback (most recent call last):
    regard.errors.ConfigError: there is no setting 'temprature'; did you mean 'temperature'?
    """
    names = [field.name for field in fields(GenerationSettings)]
    unknown = next((name for name in changes if name not in names), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, names, 1)
        advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
        raise ConfigError(f"there is no setting {unknown!r}; {advice}")
    return replace(given or GenerationSettings(), **changes)
