"""A model in a sentence, from its manifest, and the commands that run it and train another."""

import re
import shlex
from typing import Any

from regard.models import store
from regard.models.open.locate import locate

LONGEST = 60  # characters of a text in the name of its run
# The score of each task that a reader knows best, and how it is said.
SCORES = {
    "translate": ("bleu", "BLEU {:.1f}"),
    "write": ("perplexity", "Perplexity {:.1f} per token"),
    "fill": ("accuracy", "{:.1%} of hidden words right"),
    "classify": ("accuracy", "{:.1%} of texts right"),
    "answer": ("f1", "F1 {:.1f}"),
    "summarise": ("rouge1", "ROUGE-1 {:.1f}"),
    "caption": ("exact", "{:.1%} of captions right to the letter"),
    "picture": ("accuracy", "{:.2%} right"),
    "embed": ("accuracy@1", "{:.1%} of partners found first"),
}


def describe_model(model: str, task: str) -> str:
    """What a model is, how large, one score of it, and what it cannot do.

    >>> describe_model("filler", "fill")
    'Model filler, 1,840,896 parameters. A BERT of four layers ... 33.3% of hidden words right on held-out text.'
    """
    place = locate(model)
    facts = store.describe(place.path)
    parameters = (facts.get("weights") or {}).get("parameters")
    size = f", {parameters:,} parameters" if isinstance(parameters, int) else ""
    about, score = str(facts.get("about") or "").rstrip("."), describe_score(facts.get("scores") or {}, task)
    held = "pictures" if task in ("picture", "caption") else "text"
    limits = str(facts.get("limits") or "").rstrip(".")
    limits = limits[:1].upper() + limits[1:]
    sentences = [f"Model {place.name}{size}", about, f"{score} on held-out {held}" if score else "", limits]
    return " ".join(f"{one}." for one in sentences if one)


def describe_score(scores: dict[str, Any], task: str) -> str:
    """The score of a task, of the first part of the data that has one; else the first number there is.

    >>> describe_score({"test": {"chrf": 31.4, "bleu": 36.9}}, "translate"), describe_score({"loss": 2.5}, "fill")
    ('BLEU 36.9', 'Loss 2.5')
    """
    name, form = SCORES[task]
    parts = [scores, *(part for part in scores.values() if isinstance(part, dict))]
    for part in parts:
        if is_number(part.get(name)):
            return form.format(part[name])
    numbers = [f"{key} {value:.4g}" for part in parts for key, value in part.items() if is_number(value)]
    return numbers[0][:1].upper() + numbers[0][1:] if numbers else ""


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def list_commands(run: str, train: str) -> list[tuple[str, str]]:
    """The command that runs this, and the one that trains one's own."""
    return [("Run it yourself", run), ("Train your own", train)]


def find_training(model: str) -> str:
    """The command that trained a model, as its manifest has it; "" where it says nothing.

    >>> find_training("filler")
    'regard train fill --data ...
    """
    return str(store.describe(locate(model).path).get("command") or "")


def name_model(model: str, embedded: str) -> str:
    """The option that names a model, where it is not the one that the command takes by itself.

    >>> name_model("writer", "writer"), name_model("runs/my own", "writer")
    ('', " --model 'runs/my own'")
    """
    return "" if model == embedded else f" --model {shlex.quote(model)}"


def name_run(task: str, text: str) -> str:
    """The name of a run in the explorer."""
    return f"{task}: {shorten(text)}"


def shorten(text: str) -> str:
    """The text in a line, and the beginning of a long one.

    >>> shorten("one\\n two"), shorten("one two " * 20)
    ('one two', 'one two one two one two one two one two one two one two one …')
    """
    line = " ".join(text.split())
    if len(line) <= LONGEST:
        return line
    return f"{line[:LONGEST].rpartition(' ')[0] or line[:LONGEST]} …"


def quote_text(text: str) -> str:
    r"""A text as a word of a command.

    >>> print(quote_text("It's here."), quote_text('for $5, "now"'))
    "It's here." 'for $5, "now"'
    """
    return shlex.quote(text) if re.search(r'[$`"\\!]', text) else f'"{text}"'
