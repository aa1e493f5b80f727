"""A model of each task that has none in the package, trained for a moment, once for all tests that ask for them."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch

HOMES: list[tempfile.TemporaryDirectory] = []  # each goes when the tests do
FEW: dict[str, Any] = {
    "steps": 1, "eval_every": 1, "save_every": 1, "log_every": 1, "warmup_steps": 0, "lr": 0.01, "dropout": 0.0,
    "width": 24, "heads": 3, "layers": 2, "hidden": 20, "vocab_size": 290, "validation_size": 5,
}  # fmt: skip
KINDS = ("fine", "poor", "dull")
SMALL: dict[str, Any] = {"eval_samples": 2, "max_source": 60, "max_target": 6}
BAD = "<i>bad</i>"  # the name of a class, which is text like any other


@cache
def tiny_models() -> dict[str, str]:
    """The folders of such models by their tasks. Others read them too."""
    from regard.tasks.answer import AnswerSettings, AnswerTask
    from regard.tasks.classify import Classify, ClassifySettings
    from regard.tasks.embed import Embed, EmbedSettings
    from regard.tasks.summarise import Summarise, SummariseSettings
    from regard.training.fit import fit
    from tests.tasks.questions import write_questions
    from tests.tasks.tiny_summaries import write_mails

    torch.set_num_threads(1)
    HOMES.append(tempfile.TemporaryDirectory(prefix="regard-tasks-"))
    home = Path(HOMES[-1].name)
    asked, mails = write_questions(home / "asked.json", count=20), write_mails(home / "mails.jsonl", 30)
    pairs = [(f"The {one} sees the {two}.", f"A {two} is seen.") for one in "abcde" for two in "fghij"]
    texts = [(f"the film {one} was {kind}", "good" if kind == "fine" else BAD) for one in "abcdef" for kind in KINDS]
    made = {
        "classify": (Classify(), ClassifySettings(**FEW, data=table(home / "films.tsv", texts, "text\tlabel\n"))),
        "answer": (AnswerTask(), AnswerSettings(**FEW, data=str(asked), max_length=96, max_question=40, stride=16)),
        "summarise": (Summarise(), SummariseSettings(**FEW | {"vocab_size": 400}, data=str(mails), **SMALL)),
        "embed": (Embed(), EmbedSettings(**FEW, data=table(home / "pairs.tsv", pairs), batch_pairs=5, max_length=32)),
    }
    state = torch.get_rng_state()
    for name, (task, settings) in made.items():
        assert fit(task, settings, home / name).code == 0
    torch.set_rng_state(state)
    return {name: str(home / name) for name in made}


def table(path: Path, rows: list[tuple[str, str]], head: str = "") -> str:
    path.write_text(head + "".join(f"{one}\t{two}\n" for one, two in rows), encoding="utf-8")
    return str(path)
