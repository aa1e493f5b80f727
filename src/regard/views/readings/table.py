"""The numbers of two readings as tables of text."""

import math
from collections.abc import Callable, Sequence

from regard.tokens.visible import cut
from regard.trace.measure.table import Record, Table
from regard.views.readings.reading import Guess, Reading, WritingCost

OBJECTIVES = {"next": "the next token", "masked": "masked words", None: "no token"}
NOTHING = "–"
NAME = 20  # columns of a model's name above its guesses
NOTES = (
    "may look at: share of the map; a model that looks back only may look at (n + 1) / 2n of it",
    "entropy, distance and shares of the weight: means over all rows of all heads",
    "perplexity: exp(−mean log-probability of the real tokens); of masked words a pseudo-perplexity, from both sides",
)


def numbers_table(readings: Sequence[Reading]) -> Table:
    """One line per number, one column per model."""
    lines: list[tuple[str, Callable[[Reading], str]]] = [
        ("predicts", lambda one: OBJECTIVES[one.objective]),
        ("parameters", lambda one: f"{one.parameters:,}"),
        ("layers × heads", format_heads),
        ("tokens", lambda one: str(one.tokens)),
        ("may look at", lambda one: percent(one.may_look)),
        ("weight on earlier tokens", lambda one: percent(one.back)),
        ("weight on itself", lambda one: percent(one.itself)),
        ("weight on later tokens", lambda one: percent(one.ahead)),
        ("mean distance", lambda one: f"{one.distance:.2f} tokens"),
        ("entropy", lambda one: f"{one.entropy:.2f} bits"),
        ("last word changed: change before it", lambda one: f"{one.change_before:.2g}"),
        ("log-probability of a token", lambda one: in_nats(one.log_prob)),
        ("perplexity", format_perplexity),
        ("… at tokens that both guess", lambda one: in_nats(one.common.log_prob) if one.common else NOTHING),
        ("… first guess is right", format_first),
        *writing_lines(readings),
    ]
    rows: list[Record] = [{"": label, **{one.name: show(one) for one in readings}} for label, show in lines]
    counts = " and ".join(dict.fromkeys(str(reading.tokens) for reading in readings))
    return Table(rows, f"measured on {counts} tokens", list(NOTES))


def writing_lines(readings: Sequence[Reading]) -> list[tuple[str, Callable[[Reading], str]]]:
    """What it cost to write, where any of them writes."""
    tokens = next((one.writing.tokens for one in readings if one.writing), None)
    if tokens is None:
        return []

    def of(show: Callable[[WritingCost], str]) -> Callable[[Reading], str]:
        return lambda one: NOTHING if one.writing is None else show(one.writing)

    return [
        (f"to write {tokens} tokens: computed", of(lambda cost: f"{cost.positions:,} positions")),
        ("… time here", of(lambda cost: f"{1000 * cost.seconds:,.0f} ms")),
        ("… and it wrote", of(lambda cost: repr(cost.text))),
    ]


def guesses_table(readings: Sequence[Reading], tokens: Sequence[Sequence[str]]) -> Table:
    """One line per token of the first model: how probable each model finds it, and its first guess."""
    first, second = readings
    names = [cut(reading.name, NAME) for reading in readings]
    names = names if names[0] != names[1] else ["first", "second"]
    spans: Sequence[tuple[int, int] | None] = second.spans or []
    places = {span: at for at, span in enumerate(spans) if span is not None}
    rows: list[Record] = []
    for at, name in enumerate(tokens[0]):
        span = first.spans[at] if first.spans else None
        there = places.get(span) if span is not None else None
        guesses = first.guesses[at], None if there is None else second.guesses[there]
        if any(guesses):
            rows.append({"": name} | guess_cells(names[0], guesses[0]) | guess_cells(names[1], guesses[1]))
    left = "its probability and the first guess of each model: from the left, or masked among the others"
    return Table(rows, left)


def guess_cells(name: str, guess: Guess | None) -> Record:
    if guess is None:
        return {name: NOTHING, f"{name} guesses": NOTHING}
    best = guess.top[0]
    return {name: percent(math.exp(guess.log_prob)), f"{name} guesses": f"{best.name} {percent(best.share)}"}


def format_heads(one: Reading) -> str:
    """Layers and heads.

    >>> [format_heads(Reading.model_construct(layers=2, heads=heads)) for heads in ([4, 4], [1, 2])]
    ['2 × 4', '1 + 2']
    """
    return f"{one.layers} × {one.heads[0]}" if len(set(one.heads)) == 1 else " + ".join(map(str, one.heads))


def format_perplexity(one: Reading) -> str:
    if one.log_prob is None:
        return NOTHING
    return f"{math.exp(-one.log_prob):,.1f}{' (pseudo)' if one.objective == 'masked' else ''}"


def format_first(one: Reading) -> str:
    return NOTHING if one.common is None else f"{percent(one.common.first)} of {one.common.tokens}"


def percent(share: float) -> str:
    """A share in percent.

    >>> percent(0.5432), percent(0.00012), percent(0.0)
    ('54.3 %', '0.012 %', '0 %')
    """
    return f"{100 * share:.1f} %" if share >= 0.001 else f"{100 * share:.2g} %"


def in_nats(log_prob: float | None) -> str:
    return NOTHING if log_prob is None else f"{log_prob:.3f} nats"
