"""Free decoding against all right answers, by the field's own measures."""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.grammar import Aligned, sentences
from regard.data.split import Reference, references
from regard.errors import ConfigError, ModelError
from regard.models import store
from regard.tasks.alignment import quality
from regard.tasks.read_and_written import looks_across
from regard.tasks.registry import names, task_named
from regard.tasks.score import library, scores, tokenizer_for
from regard.tasks.text_translator import TextTranslator, open_translator, place_of
from regard.tasks.translate import TranslateSettings, pairs_from, pairs_of, parts_of
from regard.training.run import MANIFEST, Run
from regard.training.settings import settings_from

PARTS = ("validation", "test", "unseen", "long")


class Asked(NamedTuple):
    """What to translate, with all right answers, and the true alignments where they are known."""

    references: list[Reference]
    aligned: list[Aligned]


def evaluate(
    where: str,
    *,
    data: str | None = None,
    part: str = "validation",
    beams: int = 5,
    lower: bool | None = None,
    count: int = 1000,
    samples: int = 5,
    aligned: bool = True,
) -> dict[str, Any]:
    """Scores of a translator on a file, or on a part of what it was trained with that it has not seen.

    `lower` compares lower-cased text, as published tokenised lower-case figures do; the cased BLEU stands beside, as
    `bleu_cased`. `alignment` is there where the true one is known, and None where the model looks at nothing. A run
    of another task is judged as its own validation does, under `scores`.
    """
    other = task_of(where)
    if other != "translate":
        return judged(where, other)
    library()  # before anything is translated
    interpreter = open_translator(where)
    settings = settings_of(interpreter, where)
    asked, made = asked_of(settings, data, part, count)
    written = [one.text for one in interpreter.translate([one.source for one in asked], beams=beams)]
    right = [one.targets for one in asked]
    lower = settings.lowercase if lower is None else lower
    tokenizer = tokenizer_for([text for one in right for text in one])
    found = scores(written, right, tokenizer=tokenizer, lower=lower)
    result: dict[str, Any] = {
        "sentences": len(asked),
        "beams": beams,
        "bleu": found.bleu,
        "chrf": found.chrf,
        "signatures": [found.bleu_signature, found.chrf_signature],
        "exact": sum(same(text, answers, lower) for text, answers in zip(written, right)) / len(asked),
        "samples": [
            {"source": one.source, "written": text, "right": one.targets[0]}
            for one, text in zip(asked[:samples], written)
        ],
    }
    if lower:
        result["bleu_cased"] = scores(written, right, tokenizer=tokenizer).bleu
    if aligned and not looks_across(interpreter.model):
        result["alignment"] = None
    elif aligned and made and not settings.swap:
        measured = quality(interpreter, made[:200])
        result["alignment"] = {
            "error_rate": measured.error_rate,
            "layer": measured.layer,
            "by_layer": list(measured.by_layer),
            "straight_line": measured.chance,
        }
    return result


def same(text: str, answers: list[str], lower: bool) -> bool:
    """Whether this is one of the right answers."""
    return text in answers or (lower and text.lower() in [answer.lower() for answer in answers])


def asked_of(settings: TranslateSettings, data: str | None, part: str, count: int) -> Asked:
    """The sentences of a file, or those of a part of what a run was trained with."""
    if data == "grammar" or (data is None and settings.data == "grammar"):
        if part not in PARTS:
            raise ConfigError(f"there is no part {part!r} of the grammar; choose one of {', '.join(PARTS)}")
        made = sentences(count, seed=settings.seed, part=part)
        return Asked(references(pairs_of(made, swap=settings.swap)), made)
    if data is not None:
        return Asked(references(pairs_from(data, swap=settings.swap)), [])
    parts = dict(zip(("train", "validation", "test"), parts_of(settings)))
    if not parts.get(part):
        raise ConfigError(f"this run keeps no part {part!r}; name a file with --data")
    return Asked(references(parts[part]), [])


def settings_of(interpreter: TextTranslator, where: str) -> TranslateSettings:
    """The settings by which a translator was trained."""
    given = interpreter.facts.get("settings")
    if given is None and (Path(where) / MANIFEST).exists():
        given = Run.open(Path(where)).described()["settings"]
    try:
        return settings_from(TranslateSettings, given or {})
    except ConfigError as error:
        raise ModelError(f"{where} was trained by another version of regard: {error}") from error


# Other tasks


def task_of(where: str) -> str:
    """The task by which a model was trained; a model that does not say so is taken for a translator."""
    task = store.describe(place_of(where)).get("task", "translate")
    return task if task in names() else "translate"


def judged(where: str, name: str) -> dict[str, Any]:
    """What the task's own validation says of the model of a run."""
    task, folder = task_named(name), place_of(where)
    settings = settings_from(task.settings, store.describe(folder).get("settings") or {})
    with tempfile.TemporaryDirectory() as empty:
        work = task.prepare(settings, Path(empty))
    return {"task": name, "scores": work.validate(store.read(folder))}
