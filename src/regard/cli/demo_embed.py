"""The section of the sentence encoder: how near a few sentences are to each other."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F

from regard.cli.demo_facts import (
    describe_model,
    find_training,
    list_commands,
    name_model,
    name_run,
    quote_text,
)
from regard.cli.explore import written_output
from regard.errors import ModelError
from regard.tasks.sentence_vectors import frame_texts
from regard.tasks.text_embedder import TextEmbedder, find_embedded, open_embedder
from regard.trace.record.trace import Trace
from regard.trace.watch import watch
from regard.views.article.markup import element, join
from regard.views.article.page import ArticleRun, ArticleSection
from regard.views.article.parts import note, weight_table
from regard.views.readings.compare import find_telling_head

TEXTS = (
    "A man is playing a guitar.",
    "Somebody plays music on the guitar.",
    "A woman is cooking dinner.",
    "She prepares a meal in the kitchen.",
    "The train to the city is late.",
)


def embed_section(model: str, texts: Sequence[str] = TEXTS) -> ArticleSection:
    """A few sentences, the cosine of each two of their vectors, and the run of the first."""
    embedder = open_embedder(model)
    vectors = F.normalize(embedder.embed(texts).vectors, dim=-1)
    cosines = (vectors @ vectors.T).clamp(-1, 1).tolist()
    trace = trace_first(embedder, texts[0])
    layer, head = find_telling_head(trace)
    numbers = [str(number) for number in range(1, len(texts) + 1)]
    pairs = [(cosines[i][j], i, j) for i in range(len(texts)) for j in range(i)]
    near, one, two = max(pairs)
    nearest = f"{numbers[two]} and {numbers[one]}, with a cosine of {near:.3f}"
    command = f"regard similar{name_model(model, find_default())} " + " ".join(map(quote_text, texts))
    about = (
        "The cosine of each two vectors: 1 is the same direction, 0 is nothing in common. The explorer holds the run "
        "of sentence 1."
    )
    return ArticleSection(
        name="embed",
        title="Compare meanings",
        about=describe_model(model, "embed"),
        parts=[
            ("Input", element("ol", *(element("li", text, dir="auto") for text in texts))),
            ("Output", element("p", f"Nearest in meaning: {nearest}.", class_="said")),
            ("Cosines", join([weight_table(numbers, numbers, cosines, show="{:.3f}".format), note(about)])),
        ],
        commands=list_commands(command, "regard train embed --data pairs.tsv"),
        trained_by=find_training(model),
        run=ArticleRun(name_run("embed", texts[0]), trace, written_output(""), f"layer={layer}&head={head}"),
        summary=f"of {len(texts)} sentences the nearest are {nearest}",
    )


def find_default() -> str:
    """The sentence encoder that comes with the package; "" where none does."""
    try:
        return find_embedded()
    except ModelError:
        return ""


@torch.no_grad()
def trace_first(embedder: TextEmbedder, text: str) -> Trace:
    """What the model attended to when it read a text."""
    rows, _ = frame_texts(embedder.tokens, [text], embedder.max_length)
    with watch(embedder.model, embedder.tokens.tokenizer) as trace:
        embedder.model(torch.from_numpy(rows.pad(np.arange(1))), lengths=torch.from_numpy(rows.lengths))
    return trace
