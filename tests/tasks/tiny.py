"""Translators that know nothing and cost nothing: trained for a second, once for all tests that ask for them."""

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch

KINDS: dict[str, dict[str, Any]] = {
    "transformer": {},
    "recurrent": {"model": "recurrent"},
    "none": {"model": "recurrent", "attention": "none"},
}
SIZES: dict[str, Any] = {  # a rate so high that it soon ends its sentences, if nothing else
    "steps": 16, "width": 24, "layers": 1, "heads": 2, "hidden": 28, "examples": 300, "validation_size": 20, "lr": 0.03,
    "vocab_size": 500, "eval_samples": 3, "batch_tokens": 400, "warmup_steps": 4, "dropout": 0.0, "eval_every": 16,
    "save_every": 16,
}  # fmt: skip
HOMES: list[tempfile.TemporaryDirectory] = []  # each goes when the tests do


def run_of(kind: str = "transformer") -> Path:
    """The folder of a run that came to its end. Others read it too: change only what `copied` gives."""
    return train_tiny(kind)


@cache
def train_tiny(kind: str) -> Path:
    from regard.tasks.translate import Translate, TranslateSettings
    from regard.training.fit import fit

    torch.set_num_threads(1)
    HOMES.append(tempfile.TemporaryDirectory(prefix="regard-tiny-"))
    folder = Path(HOMES[-1].name) / kind
    state = torch.get_rng_state()
    assert fit(Translate(), TranslateSettings(**SIZES, **KINDS[kind]), folder).code == 0
    torch.set_rng_state(state)
    return folder


def copied(to: Path, kind: str = "transformer") -> Path:
    """The same run in a folder of one's own."""
    return shutil.copytree(run_of(kind), to / "run")
