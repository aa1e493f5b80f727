"""The section of the writer: a text, and how probable each of its tokens was."""

import torch

from regard.cli.demo_facts import (
    describe_model,
    find_training,
    list_commands,
    name_model,
    name_run,
    quote_text,
)
from regard.cli.explore import written_output
from regard.tasks.text_writer import TextWriter, open_writer
from regard.tasks.written_text import WrittenToken
from regard.tokens.visible import visible
from regard.trace.record.trace import Trace
from regard.trace.watch import watch
from regard.views.article.markup import element, join
from regard.views.article.page import ArticleRun, ArticleSection
from regard.views.article.parts import chips, note, text_box
from regard.views.readings.compare import find_telling_head

MODEL = "writer"
TEXT = "A man"
LONGEST = 32  # tokens


def write_section(model: str = MODEL, text: str = TEXT) -> ArticleSection:
    """A beginning, what a language model writes after it, and the probability of each token."""
    writer = open_writer(model)
    stream = writer.stream(text, max_tokens=LONGEST, alternatives=4)
    tokens = list(stream)
    written = stream.row.finish(text)
    trace = read_back(writer, [*writer.read(text), *written.ids])
    layer, head = find_telling_head(trace)
    names = [visible(name) for name in writer.tokenizer.names([token.id for token in tokens])]
    shown = chips(names, [token.probability for token in tokens], titles=[list_others(token) for token in tokens])
    command = f"regard generate{name_model(model, MODEL)} {quote_text(text)} --max-tokens {LONGEST} --probs"
    return ArticleSection(
        name="write",
        title="Write",
        about=describe_model(model, "write"),
        parts=[
            ("Input", text_box(text)),
            ("Output", element("p", str(written), class_="said", dir="auto")),
            ("How sure it was", join([shown, note(doubt_sentence(tokens, names))])),
        ],
        commands=list_commands(command, "regard train write --data text.txt"),
        trained_by=find_training(model),
        run=ArticleRun(name_run("write", text), trace, written_output(written.text), f"layer={layer}&head={head}"),
        summary=f"{text} → {written}",
    )


def read_back(writer: TextWriter, ids: list[int]) -> Trace:
    """What the model attends to when it reads the whole text, in one pass."""
    with torch.no_grad(), watch(writer.model, writer.library_tokenizer) as trace:
        writer.model(torch.tensor([ids[: writer.context]]))
    return trace


def list_others(token: WrittenToken) -> str:
    """The tokens that were likeliest, with their probabilities."""
    return ", ".join(f"{visible(one.name)} {one.probability:.3f}" for one in token.alternatives)


def doubt_sentence(tokens: list[WrittenToken], names: list[str]) -> str:
    """What the numbers are, and what else could have come where the model was least sure."""
    at = min(range(len(tokens)), key=lambda number: tokens[number].log_prob)
    others = [one for one in tokens[at].alternatives if one.id != tokens[at].id][:3]
    listed = ", ".join(f"{visible(one.name)} {one.probability:.2f}" for one in others)
    return (
        "Below each token stands the probability that the model gave it; the likeliest was taken each time. A dot is a "
        f"space. It was least sure of {names[at]}, {tokens[at].probability:.2f}; next came {listed}."
    )
