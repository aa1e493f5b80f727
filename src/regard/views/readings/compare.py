"""Two models read one text: their traces, and what each made of it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.models.open.open_model import open_model
from regard.trace.record.trace import Trace
from regard.trace.watch import watch
from regard.views.explorer.page import PageTrace, check_page_path, page_html, write_page
from regard.views.readings.directions import Directions, ahead_shares, measure_directions
from regard.views.readings.guess import guess_masked, guess_next, mean_log_prob
from regard.views.readings.language_model import LanguageModel
from regard.views.readings.maps import TitledHead, maps_text
from regard.views.readings.reading import CommonGuesses, Guess, Objective, Reading
from regard.views.readings.table import guesses_table, numbers_table
from regard.views.readings.writing import measure_writing

Opened = tuple[nn.Module, Any]
WRITTEN = 8  # tokens


@dataclass(repr=False)
class ModelComparison:
    """One text as two models read it. Printed, it is maps and two tables; `page` writes the explorer."""

    text: str
    readings: tuple[Reading, Reading]
    traces: tuple[Trace, Trace]

    def __repr__(self) -> str:
        parts = [self.maps(), str(numbers_table(self.readings))]
        if any(guess is not None for reading in self.readings for guess in reading.guesses):
            parts.append(str(guesses_table(self.readings, self.tokens)))
        return "\n\n".join(filter(None, parts))

    def maps(self) -> str:
        """A telling head of each model as text, side by side; "" where they are too large."""
        heads = []
        for trace, reading in zip(self.traces, self.readings, strict=True):
            layer, head = find_telling_head(trace)
            heads.append(TitledHead(f"{reading.name}: layer {layer}, head {head}", trace.layers[layer], head))
        return maps_text(*heads)

    @property
    def tokens(self) -> tuple[Sequence[str], Sequence[str]]:
        """The tokens of the text, as each model has them."""
        first, second = (shown_tokens(trace) for trace in self.traces)
        return first, second

    def to_json(self) -> dict[str, Any]:
        """All numbers as plain values."""
        models = [
            reading.to_json() | {"shown": list(shown)}
            for reading, shown in zip(self.readings, self.tokens, strict=True)
        ]
        return {"text": self.text, "models": models}

    def page(
        self, to: str | os.PathLike[str] | None = None, *, language: str | None = None, precision: str = "float16"
    ) -> str | None:
        """Both maps and all numbers as one page of the explorer; its text where `to` is None."""
        path = None if to is None else check_page_path(to)
        first, second = (
            PageTrace(trace, reading.name, reading=reading.to_json())
            for trace, reading in zip(self.traces, self.readings, strict=True)
        )
        made = page_html(
            first.trace,
            name=first.name,
            reading=first.reading,
            others=[second],
            title=f"{first.name} and {second.name} read one text",
            first=start_address(self.traces),
            language=language,
            precision=precision,
        )
        if path is None:
            return made
        write_page(path, made)
        return None


def compare_models(
    text: str,
    first: str | os.PathLike[str] | Opened,
    second: str | os.PathLike[str] | Opened,
    *,
    names: tuple[str, str] | None = None,
    written: int = WRITTEN,
) -> ModelComparison:
    """Let two models read one text, such as a GPT and a BERT, and measure what differs.

    A model is a name for `regard.open_model`, or (model, tokenizer). Everything is measured by running it: what it
    may look at and looks at, whether an output depends on what comes later, how probable it finds each word (from
    the left, or masked among the others), and what it costs to write `written` tokens.

    >>> compare_models("A B C A B", "induction", "induction", written=2)
    induction (1): layer...
    measured on 5 tokens
    ...
    may look at                          60.0 %          60.0 %
    ...
    """
    given = tell_apart(names or (name_of(first), name_of(second)))
    opened = [one if isinstance(one, tuple) else open_model(one) for one in (first, second)]
    models = [LanguageModel(name, *pair) for name, pair in zip(given, opened, strict=True)]
    (reading, trace), (other, other_trace) = (read_with(model, text, written) for model in models)
    reading, other = with_common(reading, other)
    return ModelComparison(text, (reading, other), (trace, other_trace))


def name_of(given: str | os.PathLike[str] | Opened) -> str:
    """What to call a model: its name, its file, its folder or the one that this "model" lies in, else its class.

    >>> name_of("writer"), name_of("runs/filler/model"), name_of(Path("small.gguf"))
    ('writer', 'filler', 'small')
    """
    if isinstance(given, tuple):
        return type(given[0]).__name__
    path = Path(given)
    if path.name == "model" and path.parent.name:
        return path.parent.name
    return path.stem if path.suffix.lower() == ".gguf" else path.name


def tell_apart(names: tuple[str, str]) -> tuple[str, str]:
    """The names, numbered where they are the same.

    >>> tell_apart(("writer", "filler")), tell_apart(("writer", "writer"))
    (('writer', 'filler'), ('writer (1)', 'writer (2)'))
    """
    first, second = names
    return names if first != second else (f"{first} (1)", f"{second} (2)")


@torch.no_grad()
def read_with(model: LanguageModel, text: str, written: int) -> tuple[Reading, Trace]:
    """One pass under `watch`, and what else has to run for the numbers."""
    ids = model.encode(text)
    output = model.output(torch.tensor([ids]))
    with watch(model.model, model.tokenizer) as trace:
        model.run(model.model, torch.tensor([ids]))
    seen = measure_directions(trace)
    objective = find_objective(model, seen)
    guesses: list[Guess | None] = [None] * len(ids)
    if objective == "next":
        guesses = guess_next(model, ids, output[0])
    elif objective == "masked" and model.mask_id is not None:
        guesses = guess_masked(model, ids, model.mask_id)
    attending = [layer for layer in trace.layers if layer.kind == "self"]
    return Reading(
        name=model.name,
        objective=objective,
        parameters=sum(p.numel() for p in model.model.parameters()),
        layers=len(attending),
        heads=[layer.heads for layer in attending],
        tokens=len(ids),
        **{name: value for name, value in seen._asdict().items() if name != "looks_ahead"},
        change_before=change_before(model, ids, output[0]),
        spans=model.spans(text, ids),
        guesses=guesses,
        log_prob=mean_log_prob(guesses),
        common=None,
        writing=measure_writing(model, ids, objective, written) if objective else None,
    ), trace


def find_objective(model: LanguageModel, seen: Directions) -> Objective | None:
    """What a model predicts: the next token where nothing looks ahead, masked ones where there is a mask."""
    if not model.predicts:
        return None
    if not seen.looks_ahead:
        return "next"
    return "masked" if model.mask_id is not None else None


def change_before(model: LanguageModel, ids: Sequence[int], output: Tensor) -> float:
    """The largest change of an output before the last word, when another word of the text takes its place.

    Logits are compared as log-probabilities. Exactly 0, or rounding, where nothing before can know what comes later.
    """
    places = [at for at, special in enumerate(model.is_special(ids)) if not special]
    if len(places) < 2:
        return 0.0
    last = places[-1]
    other = next((ids[at] for at in places if ids[at] != ids[last]), (ids[last] + 1) % model.vocabulary_size)
    changed = model.output(torch.tensor([[*ids[:last], other, *ids[last + 1 :]]]))[0]
    before, after = (x[:last].double() for x in (output, changed))
    if model.predicts:
        before, after = before.log_softmax(-1), after.log_softmax(-1)
    return float((before - after).abs().max())


def with_common(first: Reading, second: Reading) -> tuple[Reading, Reading]:
    """Both readings, with the means of each over the tokens that both guess: those of the same characters."""
    places = [guesses_by_span(reading) for reading in (first, second)]
    shared = sorted(places[0].keys() & places[1].keys())
    if not shared:
        return first, second
    made = [average_guesses([some[span] for span in shared]) for some in places]
    return first.model_copy(update={"common": made[0]}), second.model_copy(update={"common": made[1]})


def guesses_by_span(reading: Reading) -> Mapping[tuple[int, int], Guess]:
    """The guesses by the characters they are about."""
    spans = reading.spans or []
    return {span: guess for span, guess in zip(spans, reading.guesses) if span is not None and guess is not None}


def average_guesses(guesses: Sequence[Guess]) -> CommonGuesses:
    count = len(guesses)
    return CommonGuesses(
        tokens=count,
        log_prob=sum(guess.log_prob for guess in guesses) / count,
        first=sum(guess.rank == 1 for guess in guesses) / count,
    )


def shown_tokens(trace: Trace) -> Sequence[str]:
    """The tokens that the first layer of self-attention saw, as people read them; numbers where they are not known."""
    layer = next(layer for layer in trace.layers if layer.kind == "self")
    if layer.queries is None:
        return [f"#{at}" for at in range(layer.weights.shape[-2])]
    return layer.queries[0].shown


def start_address(traces: tuple[Trace, Trace]) -> str:
    """The address of both maps side by side, each at a head that looks at few tokens and not only at the first."""
    (layer, head), (beside_layer, beside_head) = map(find_telling_head, traces)
    return f"#/trace=0&with=1&view=readings&layer={layer}&head={head}&beside={beside_layer},{beside_head}"


def find_telling_head(trace: Trace) -> tuple[int, int]:
    """The layer and head to begin with: the sharpest that shows something of how the model reads.

    Left out, as far as others are there: heads that give more than half to the first token and to the query itself,
    and heads of a model that may look ahead that give less than a fifth to what comes later.
    """
    found = []
    for number, layer in enumerate(trace.layers):
        if layer.kind != "self":
            continue
        measured, ahead = layer.measure(), ahead_shares(layer)
        for head in range(layer.heads):
            near = float(measured.sink[0, head] + measured.itself[0, head]) > 0.5
            found.append(
                (near + (ahead is not None and ahead[head] < 0.2), float(measured.entropy[0, head]), number, head)
            )
    _, _, number, best = min(found)
    return number, best
