"""What a library gives the survey: the names of its models, and how each may be built small and fed."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from tests.trace.survey.inputs import Inputs, feed
from tests.trace.survey.judge import judge, run

Row = dict[str, Any]


@dataclass(frozen=True)
class Attempt:
    """A model that was built, and what it may be fed, the fullest first."""

    model: nn.Module
    candidates: Iterable[Inputs]
    config: Any = None
    facts: Row = field(default_factory=dict)


@dataclass(frozen=True)
class Library:
    """A library whose models are surveyed. `attempts` also yields sentences: why one of them could not be built."""

    title: str
    needs: str  # what is imported for it
    load: Callable[[], object]  # imports what all of its models need, once
    names: Callable[[], list[str]]
    attempts: Callable[[str], Iterator["Attempt | str"]]


def compute_row(library: Library, name: str) -> Row:
    """One model: built small, fed, judged; by the next attempt where one fails."""
    be_quiet()
    said: list[str] = []
    for attempt in library.attempts(name):
        if isinstance(attempt, str):
            said.append(attempt)
            continue
        model = attempt.model

        def works(inputs: Inputs, model: nn.Module = model) -> None:
            if not run(model, inputs):
                raise ValueError("no output")

        inputs, more = feed(attempt.candidates, attempt.config, works)
        said += more[:8]
        if not inputs:
            continue
        settle(model, inputs)
        shapes = {key: list(value.shape) for key, value in inputs.items() if hasattr(value, "shape")}
        facts = {"class": type(model).__name__, "inputs": shapes, "said": said[:6], **attempt.facts}
        return {"built": True, **facts, **judge(model, inputs)}
    return {"built": False, "why": said[0] if said else "", "said": said}


def be_quiet() -> None:
    """No warnings, one thread."""
    import logging
    import warnings

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)


def settle(model: nn.Module, inputs: Inputs) -> None:
    """Sharp weights, batch norms that know what they meet, and numbers that stay finite."""
    norms = [one for one in model.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)]
    for size in (1.5, 1.0, 0.5):
        sharpen(model, size)
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None
            norm.train(norm.track_running_stats)
        with suppress(ValueError):  # a norm that met one number only
            run(model, inputs)
        model.eval()
        if all(bool(x.isfinite().all()) for x in run(model, inputs) if x.is_floating_point()):
            break


def sharpen(model: nn.Module, size: float = 1.5) -> None:
    """Weights so large that rows of attention are far from even."""
    from tests.trace.species import enliven

    enliven(model, size)
    with torch.no_grad():
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear) and name.rpartition(".")[2] in ASKING:
                module.weight.mul_(1.3)


ASKING = (
    "q", "k", "query", "key", "qkv", "in_proj", "c_attn", "q_proj", "k_proj", "to_q", "to_k", "query_key_value",
    "to_qk", "to_qkv", "to_kv", "kv",
)  # fmt: skip
