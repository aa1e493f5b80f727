"""The section of the summariser: a summary, and where each of its words was copied from."""

import re
from collections.abc import Sequence

from regard.cli.demo_facts import (
    describe_model,
    find_training,
    list_commands,
    name_run,
    quote_text,
    shorten,
)
from regard.cli.explore import written_output
from regard.cli.pages import alignment_address
from regard.tasks.text_summariser import SummaryWord, TextSummary, open_summariser
from regard.tokens.visible import visible
from regard.views.article.markup import Markup, element, join
from regard.views.article.page import ArticleRun, ArticleSection
from regard.views.article.parts import MarkedSpan, note, plain_table, text_box

MODEL = "summariser"
TEXT = (
    "The storm formed on September 3 to the west of Africa and moved across the ocean for nine days. Hurricane Isidora "
    "reached its peak on September 12, with winds of 230 km/h, and struck the coast of Florida the next morning. Four "
    "people died, and the damage was about two billion dollars."
)


def summarise_section(model: str = MODEL, text: str = TEXT) -> ArticleSection:
    """A text, its summary, and the words of both that are the same because they were copied."""
    summariser = open_summariser(model)
    [one] = summariser.summarise([text])
    words = one.words() if summariser.copies else []
    trace = one.trace()
    place = alignment_address(one, trace).removeprefix("#/")
    read = len(one.shown.source) - 1
    cut = [note(f"The model reads the first {read:,} of the {one.tokens:,} tokens.")] if read < one.tokens else []
    return ArticleSection(
        name="summarise",
        title="Summarise",
        about=describe_model(model, "summarise"),
        parts=[
            ("Input", join([text_box(text, copied_places(one, words)), *cut])),
            ("Output", element("p", summary_words(words) if words else one.text, class_="said", dir="auto")),
            *([("Where from", origins(words))] if words else []),
        ],
        commands=list_commands(
            f"regard summarise --model {quote_text(model)} {quote_text(text)} --see",
            "regard train summarise --data mails.jsonl",
        ),
        trained_by=find_training(model),
        run=ArticleRun(name_run("summarise", text), trace, written_output(one.text), place),
        summary=f"{shorten(text)} → {one.text}",
    )


def copied_places(one: TextSummary, words: Sequence[SummaryWord]) -> list[MarkedSpan]:
    """The words of the source that a word of the summary was copied from."""
    offsets = one.translator.source.encoding(one.source).offsets
    starts = {offsets[word.position][0]: word for word in words if word.position is not None}
    found = {}
    for start, word in starts.items():
        whole = next((part for part in re.finditer(r"\w+|\S", one.source) if start < part.end()), None)
        if whole is not None:
            found[whole.span()] = MarkedSpan(*whole.span(), f"copied as {word.text}")
    return list(found.values())


def summary_words(words: Sequence[SummaryWord]) -> Markup:
    """The summary, the copied words marked."""
    return join(
        [visible(word.text) if word.position is None else element("mark", visible(word.text)) for word in words], " "
    )


def origins(words: Sequence[SummaryWord]) -> Markup:
    """A line for each word: how much of it was copied, the gate, and from where."""
    rows = [
        [
            visible(word.text),
            f"{word.copied:.2f}",
            f"{word.g:.2f}",
            "the vocabulary" if word.position is None else visible(word.context),
        ]
        for word in words
    ]
    about = (
        "Copied is the share of a word's probability that came from the text itself; g is the share of the vocabulary "
        "in the mixture. Words that are mostly copied are marked, above and in the text."
    )
    return join([plain_table(["word", "copied", "g", "from"], rows), note(about)])
