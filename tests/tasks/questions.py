"""Questions that a tiny model learns to answer in seconds, in the form of SQuAD."""

import json
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch

NAMES = ["Anna", "Bob", "Carl", "Dora", "Emil", "Fay", "Gus", "Hal"]
PLACES = ["the mat", "a hill", "the sofa", "the roof", "a river"]
TIMES = ["nine", "ten", "noon", "night", "dawn"]
SIZES: dict[str, Any] = {
    "steps": 60, "width": 32, "heads": 2, "layers": 2, "hidden": 48, "vocab_size": 360, "max_length": 48,
    "max_question": 12, "stride": 8, "max_answer": 6, "batch_tokens": 1200, "lr": 0.006, "warmup_steps": 6,
    "dropout": 0.0, "validation_size": 40, "eval_samples": 30, "eval_every": 30, "save_every": 30, "log_every": 30,
}  # fmt: skip
HOMES: list[tempfile.TemporaryDirectory] = []  # each goes when the tests do


def squad(passages: list[tuple[str, list[dict[str, Any]]]], **more: Any) -> dict[str, Any]:
    """What a SQuAD file holds: one article with these passages and questions."""
    paragraphs = [{"context": text, "qas": questions} for text, questions in passages]
    return {"version": "1.1", "data": [{"title": "Small", "paragraphs": paragraphs}], **more}


def ask(number: int, question: str, passage: str, *answers: str) -> dict[str, Any]:
    """One question, with each answer where it first stands in the passage."""
    listed = [{"text": one, "answer_start": passage.index(one)} for one in answers]
    return {"id": f"q{number}", "question": question, "answers": listed}


def make_questions(count: int, *, impossible: bool = False, seed: int = 0) -> dict[str, Any]:
    """`count` passages of one sentence: who, where and when. With `impossible` every second does not say when."""
    draw = random.Random(seed)
    passages = []
    for number in range(count):
        name, place, time = draw.choice(NAMES), draw.choice(PLACES), draw.choice(TIMES)
        silent = impossible and number % 2 == 0
        text = f"{name} sat on {place}." if silent else f"{name} sat on {place} at {time}."
        asked = [ask(3 * number, "Who sat?", text, name), ask(3 * number + 1, "Where?", text, place)]
        when: dict[str, Any] = ask(3 * number + 2, "When?", text, *([] if silent else [time]))
        asked.append(when | ({"is_impossible": silent} if impossible else {}))
        passages.append((text, asked))
    return squad(passages)


def write_questions(path: Path, **options: Any) -> Path:
    path.write_text(json.dumps(make_questions(**options)), encoding="utf-8")
    return path


@cache
def run_of(*, match: bool = False, impossible: bool = False) -> Path:
    """The folder of a run that came to its end and answers well. Others read it too."""
    from regard.tasks.answer import AnswerSettings, AnswerTask
    from regard.training.fit import fit

    torch.set_num_threads(1)
    HOMES.append(tempfile.TemporaryDirectory(prefix="regard-answer-"))
    home = Path(HOMES[-1].name)
    data = write_questions(home / "data.json", count=240, impossible=impossible)
    more = {"steps": 120, "validation_size": 150, "eval_samples": 150} if impossible else {}
    settings = AnswerSettings(**SIZES | more, data=str(data), match=match)
    state = torch.get_rng_state()
    assert fit(AnswerTask(), settings, home / "run").code == 0
    torch.set_rng_state(state)
    return home / "run"
