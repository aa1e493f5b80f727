"""The section of the filler: the words that it expects in a gap, and what the gap looked at."""

from regard.cli.demo_facts import (
    describe_model,
    find_training,
    list_commands,
    name_model,
    name_run,
    quote_text,
)
from regard.cli.fill_texts import find_address, run_of
from regard.cli.opening import open_named_filler
from regard.tasks.text_filler import FilledText, TextFiller
from regard.tokens.visible import visible
from regard.trace.record.trace import Trace
from regard.views.article.markup import Markup, element, join
from regard.views.article.page import ArticleRun, ArticleSection
from regard.views.article.parts import bar_list, note, text_box

MODEL = "filler"
TEXT = "A [MASK] is sleeping on the bed."
KEYS = 5  # of the row of a gap


def fill_section(model: str = MODEL, text: str = TEXT) -> ArticleSection:
    """A text with a gap, the likeliest words for it, and what the gap attended to."""
    filler = open_named_filler(model)
    filled = filler.fill(text)
    trace, words = filler.trace(filled), filled.gaps[0].words
    guesses = bar_list([visible(word.name) for word in words], [word.probability for word in words])
    return ArticleSection(
        name="fill",
        title="Fill in a word",
        about=describe_model(model, "fill"),
        parts=[
            ("Input", text_box(text)),
            ("Output", element("p", filled.text, class_="said", dir="auto")),
            ("Its guesses", join([guesses, note("The likeliest words for the gap, with their probabilities.")])),
            ("What it looked at", gap_row(filler, filled, trace)),
        ],
        commands=list_commands(
            f"regard fill{name_model(model, MODEL)} {quote_text(text)} --see", "regard train fill --data text.txt"
        ),
        trained_by=find_training(model),
        run=ArticleRun(
            name_run("fill", text), trace, run_of(filler, filled).output, find_address(filled, trace).removeprefix("#/")
        ),
        summary=f"{text} → {filled.text}",
    )


def gap_row(filler: TextFiller, filled: FilledText, trace: Trace) -> Markup:
    """The tokens that the first gap looked at most: its row of the last layer, mean over the heads."""
    row = trace.layers[-1].weights.rows(filled.gaps[0].position)[0].mean(0)
    shares, places = row.topk(min(KEYS, len(row)))
    names = [visible(name) for name in filler.names.names(filled.ids)]
    about = (
        f"Of {len(row)} tokens the {len(places)} that the gap looked at most, in the last layer, mean over its heads."
    )
    return join([bar_list([names[at] for at in places.tolist()], shares.tolist()), note(about)])
