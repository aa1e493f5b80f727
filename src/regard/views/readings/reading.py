"""What a model made of one text, in numbers; `web/src/trace/reading.ts` is made from these classes.

python -m regard.views.readings.reading web/src/trace/reading.ts
"""

import sys
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.json_schema import models_json_schema

from regard.files import put
from regard.views.explorer.typescript import interface

Objective = Literal["next", "masked"]

HEAD = """/**
 * What a model made of one text, in numbers.
 * Made from src/regard/views/readings/reading.py: change that, then run
 * `python -m regard.views.readings.reading web/src/trace/reading.ts`.
 */
"""


class ReadingPart(BaseModel):
    """Plain values with names, which a page holds as JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class LikelyToken(ReadingPart):
    """A token, and the probability that the model gives it."""

    name: str
    share: float


class Guess(ReadingPart):
    """What a model expects at the place of one token, which it does not see there."""

    log_prob: float = Field(description="of the real token, in nats")
    rank: int = Field(description="of the real token; 1: the model's first guess")
    top: list[LikelyToken] = Field(description="the likeliest, the first of them first")


class CommonGuesses(ReadingPart):
    """The guesses at those tokens that both models guess."""

    tokens: int
    log_prob: float = Field(description="of the real tokens, in nats, mean")
    first: float = Field(description="share whose first guess is the real token")


class WritingCost(ReadingPart):
    """What it took to write a few tokens after the text, one at a time: the likeliest that stands for text."""

    tokens: int
    passes: int = Field(description="calls of the model")
    positions: int = Field(description="tokens that were computed in all calls together")
    seconds: float
    cached: bool = Field(description="whether keys and values of earlier tokens were kept")
    text: str = Field(description="what was written")


class Reading(ReadingPart):
    """One model, and what it made of the text. Shares and means are over all rows of all heads."""

    name: str
    objective: Objective | None = Field(description="what it predicts; null: no token")
    parameters: int
    layers: int
    heads: list[int] = Field(description="of each layer")
    tokens: int
    may_look: float = Field(description="share of the map that queries may look at")
    back: float = Field(description="share of the weight on earlier tokens")
    itself: float
    ahead: float
    distance: float = Field(description="mean |query − key|, in tokens")
    entropy: float = Field(description="bits, mean")
    change_before: float = Field(description="largest change of an output before the last word when that is changed")
    spans: list[tuple[int, int] | None] | None = Field(description="characters of the text, one entry per token")
    guesses: list[Guess | None] = Field(description="one entry per token; null where none is made")
    log_prob: float | None = Field(description="of the real tokens, in nats, mean over the guesses")
    common: CommonGuesses | None = Field(description="null: the two models guess no token in common")
    writing: WritingCost | None = Field(description="null: it does not write")

    def to_json(self) -> dict[str, Any]:
        """Plain values, as a page and a program read them."""
        return self.model_dump(by_alias=True)


def write_types() -> str:
    """The text of `reading.ts`.

    >>> "readonly logProb: number; // of the real token, in nats" in write_types()
    True
    """
    kinds = (LikelyToken, Guess, CommonGuesses, WritingCost, Reading)
    _, schema = models_json_schema([(kind, "serialization") for kind in kinds], by_alias=True)
    return "\n".join([HEAD, *(interface(kind.__name__, schema["$defs"][kind.__name__]) for kind in kinds)])


if __name__ == "__main__":
    put(Path(sys.argv[1]), write_types().encode())
