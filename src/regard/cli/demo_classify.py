"""The section of the classifier: the class of a text, and which words mattered in three ways."""

from regard.cli.classify_lines import keep_run
from regard.cli.demo_facts import (
    describe_model,
    find_training,
    list_commands,
    name_model,
    name_run,
    quote_text,
)
from regard.tasks.explanation_agreement import agreement_sentence
from regard.tasks.text_classification import TextClassification, classify_and_explain
from regard.tasks.trained_classifier import TrainedClassifier, open_classifier
from regard.tasks.word_importance import POOLED
from regard.tokens.visible import visible
from regard.trace.record.trace import Trace
from regard.views.article.markup import Markup, element, join
from regard.views.article.page import ArticleRun, ArticleSection
from regard.views.article.parts import bar_list, chips, note, text_box
from regard.views.readings.compare import find_telling_head
from regard.views.words.ways import list_ways

MODEL = "sentiment"
TEXT = "It is slow at first, but the ending is wonderful and moving."


def classify_section(model: str = MODEL, text: str = TEXT) -> ArticleSection:
    """A text, the probability of each class, and its words by attention, gradient and leave-one-out."""
    opened = open_classifier(model)
    [one] = classify_and_explain(opened, [text])
    kept = keep_run(opened, one)
    trace = kept.trace()
    ranked = sorted(one.probabilities.items(), key=lambda item: -item[1])
    sure = one.probabilities[one.label]
    return ArticleSection(
        name="classify",
        title="Classify",
        about=describe_model(model, "classify"),
        parts=[
            ("Input", text_box(text)),
            ("Output", element("p", f"{visible(one.label)}, with probability {sure:.3f}", class_="said")),
            ("Classes", bar_list([visible(name) for name, _ in ranked], [share for _, share in ranked])),
            ("Words that mattered", word_ways(opened, one)),
        ],
        commands=list_commands(
            f"regard classify{name_model(model, MODEL)} {quote_text(text)}", "regard train classify --data texts.tsv"
        ),
        trained_by=find_training(model),
        run=ArticleRun(name_run("classify", text), trace, kept.output, pooled_place(trace)),
        summary=f"{text} → {one.label} {sure:.3f}",
    )


def word_ways(opened: TrainedClassifier, one: TextClassification) -> Markup:
    """The words three times, each way with what its numbers are."""
    found = one.importance
    parts: list[str] = []
    for way in list_ways(found) if found is not None else []:
        words = found.words if found is not None else ()
        parts += [
            element("h3", way.title),
            chips([visible(word) for word in words], way.values, top=way.largest, signed=way.signed),
            note(f"{way.about}."),
        ]
    if one.is_cut:
        parts.insert(0, note(f"The model reads {opened.max_length} tokens: the beginning and the end of this text."))
    measured = opened.facts.get("explain")
    if isinstance(measured, dict):
        parts.append(note(agreement_sentence(measured)))
    return join(parts)


def pooled_place(trace: Trace) -> str:
    """The layer that pools the text, else the most telling head."""
    names = [layer.name for layer in trace.layers]
    if POOLED in names:
        return f"layer={names.index(POOLED)}&head=0"
    layer, head = find_telling_head(trace)
    return f"layer={layer}&head={head}"
