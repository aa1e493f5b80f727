"""Summarisers that were trained for a moment, once for all tests that ask for them."""

import gzip
import json
import random
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch

SIZES: dict[str, Any] = {
    "steps": 8, "width": 24, "layers": 1, "heads": 2, "hidden": 28, "validation_size": 12, "lr": 0.01,
    "vocab_size": 400, "eval_samples": 3, "batch_tokens": 400, "warmup_steps": 4, "dropout": 0.1, "eval_every": 8,
    "save_every": 4, "max_source": 18, "max_target": 12,
}  # fmt: skip
HOMES: list[tempfile.TemporaryDirectory] = []  # each goes when the tests do
FILLERS = [
    "please",
    "find",
    "the",
    "of",
    "and",
    "to",
    "we",
    "will",
    "send",
    "it",
    "today",
    "with",
    "you",
    "by",
    "that",
    "is",
    "on",
]
SYLLABLES = [f"{first}{last}" for first in "bdgklmnprstvz" for last in "aeiou"]


def draw_mails(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Mails whose subject are the two words after "about", among words that say nothing."""
    rng = random.Random(seed)
    mails = []
    for _ in range(count):
        subject = ["".join(rng.choices(SYLLABLES, k=2)) for _ in range(2)]  # a new word each time
        before, after = (rng.choices(FILLERS, k=rng.randint(2, 9)) for _ in range(2))
        body = " ".join([*before, "about", *subject, *after])
        mails.append({"body": body, "subject": " ".join(subject), "annotations": [" ".join(subject[::-1]), subject[0]]})
    return mails


def write_mails(to: Path, count: int, seed: int = 0) -> Path:
    """A file of such mails, packed if its name says so."""
    data = "".join(json.dumps(mail) + "\n" for mail in draw_mails(count, seed)).encode()
    to.write_bytes(gzip.compress(data) if to.suffix == ".gz" else data)
    return to


@cache
def run_of(*, copy: bool = True) -> Path:
    """The folder of a run that came to its end. Others read it too: change only what `copied` gives."""
    from regard.tasks.summarise import Summarise, SummariseSettings
    from regard.training.fit import fit

    torch.set_num_threads(1)
    HOMES.append(tempfile.TemporaryDirectory(prefix="regard-mails-"))
    home = Path(HOMES[-1].name)
    mails = write_mails(home / "mails.jsonl.gz", 80)
    state = torch.get_rng_state()
    assert fit(Summarise(), SummariseSettings(data=str(mails), copy=copy, **SIZES), home / "run").code == 0
    torch.set_rng_state(state)
    return home / "run"


def copied(to: Path) -> Path:
    """The same run in a folder of one's own."""
    return shutil.copytree(run_of(), to / "run")
