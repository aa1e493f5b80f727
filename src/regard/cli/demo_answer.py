"""The section of the reader: an answer marked in its passage, and what the question looked at."""

import re
from collections.abc import Sequence

from regard.cli.answer_lines import answer_address, describe
from regard.cli.demo_facts import (
    describe_model,
    find_training,
    list_commands,
    name_model,
    name_run,
    quote_text,
)
from regard.cli.explore import written_output
from regard.tasks.answer_trace import AnsweringHead, find_answering_head
from regard.tasks.text_answerer import AnsweredQuestion, open_answerer
from regard.tokens.visible import visible
from regard.trace.record.trace import Trace
from regard.views.article.markup import Markup, element, join
from regard.views.article.page import ArticleRun, ArticleSection
from regard.views.article.parts import MarkedSpan, bar_list, note, shaded_text, text_box

MODEL = "reader"
QUESTION = "Who built the first telescope that used a mirror?"
PASSAGE = (
    "The first telescopes were made in the Netherlands in 1608 and bent light with lenses. Sixty years later Isaac "
    "Newton built the first telescope that used a mirror instead, because a mirror brings all colours to the same "
    "point. Most large telescopes have been built with mirrors ever since."
)
SPANS = 3  # answers to choose from
WORDS = 5  # of the passage, by name


def answer_section(model: str = MODEL, question: str = QUESTION, passage: str = PASSAGE) -> ArticleSection:
    """A question, its passage with the answer marked, and the words that the question looked at."""
    [one] = open_answerer(model).answer(passage, [question], n_best=SPANS)
    trace = one.trace()
    marked = [MarkedSpan(one.best.start, one.best.stop, describe(one.best))] if one.best else []
    said = f"{one.text} ({describe(one.best)})" if one.best else "no answer"
    others = bar_list([visible(one.cut(span)) for span in one.spans], [span.probability for span in one.spans])
    command = f"regard answer{name_model(model, MODEL)} {quote_text(question)} --text {quote_text(passage)} --see"
    return ArticleSection(
        name="answer",
        title="Answer a question",
        about=describe_model(model, "answer"),
        parts=[
            ("Question", text_box(question)),
            ("Passage", text_box(passage, marked)),
            ("Output", element("p", said, class_="said", dir="auto")),
            ("Best spans", others),
            ("What it looked at", question_words(one, trace)),
        ],
        commands=list_commands(command, "regard train answer --data questions.json"),
        trained_by=find_training(model),
        run=ArticleRun(
            name_run("answer", question), trace, written_output(one.text), answer_address(one, trace).removeprefix("#/")
        ),
        summary=f"{question} → {one.text or 'no answer'}",
    )


def question_words(one: AnsweredQuestion, trace: Trace) -> Markup:
    """The passage, each word on the colour of what the question gave it, and the strongest words by name."""
    head = find_answering_head(trace, one.row.asked, one.places)
    layer = trace.layers[head.layer]
    given = question_shares(one, trace, head)
    words, shares = merge_shares(one, given)
    best = sorted(range(len(words)), key=lambda at: -shares[at])[:WORDS]
    heads = sum(layer.heads for layer in trace.layers)
    about = (
        f"The attention of the question, mean over its tokens, in {layer.name}, head {head.head}: of {heads} heads the "
        f"one that looks from the question to the best span most. It gives the span {head.share:.1%} and the passage "
        f"{sum(given):.1%}; over all heads the mean for the span is {mean_share(one, trace):.1%}."
    )
    if len(one.asked.rows) > 1:
        about = f"The passage is longer than the model reads at once; this is the window with the best span. {about}"
    strongest = bar_list([words[at] for at in best], [shares[at] for at in best])
    return join([shaded_text(words, shares), strongest, note(about)])


def question_shares(one: AnsweredQuestion, trace: Trace, head: AnsweringHead) -> list[float]:
    """How much the question gives to each token of the passage in a head, mean over the tokens of the question."""
    weights = trace.layers[head.layer].weights[0][head.head, slice(*one.row.asked), slice(*one.row.inside)]
    shares: list[float] = weights.mean(0).tolist()
    return shares


def merge_shares(one: AnsweredQuestion, given: Sequence[float]) -> tuple[list[str], list[float]]:
    """The words of the window that was read, and what their tokens got together."""
    spans = one.asked.passage.spans[slice(*one.row.window)].tolist()
    words, shares = [], []
    for found in re.finditer(r"\S+", one.passage):
        inside = [share for (start, stop), share in zip(spans, given) if found.start() < stop and start < found.end()]
        if inside:
            words.append(visible(found.group()))
            shares.append(sum(inside))
    return words, shares


def mean_share(one: AnsweredQuestion, trace: Trace) -> float:
    """How much the question gives to the best span, mean over all heads of all layers."""
    rows, columns = slice(*one.row.asked), slice(one.places[0], one.places[1] + 1)
    shares = [float(share) for layer in trace.layers for share in layer.weights[0][:, rows, columns].sum(-1).mean(-1)]
    return sum(shares) / len(shares)
