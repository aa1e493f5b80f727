"""Free decoding against all right answers, by the field's own measures."""

from pathlib import Path
from typing import Any

from regard.data.grammar import sentences
from regard.data.split import references
from regard.errors import ConfigError
from regard.tasks.alignment import quality
from regard.tasks.interpreter import Interpreter, open_translator
from regard.tasks.score import scores, tokenizer_for
from regard.tasks.translate import TranslateSettings, pairs_from, parts_of
from regard.training.run import Run

PARTS = ("validation", "test", "unseen", "long")


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

    `lower` compares lower-cased text, as published tokenised lower-case figures do; the cased score stands beside.
    """
    interpreter = open_translator(where)
    settings = settings_of(interpreter, where)
    grammar = (settings.data == "grammar" and data is None) or data == "grammar"
    if grammar:
        if part not in PARTS:
            raise ConfigError(f"there is no part {part!r} of the grammar; choose one of {', '.join(PARTS)}")
        made = sentences(count, seed=settings.seed, part=part)
        asked = references(pairs_of(made, swap=settings.swap))
    elif data is not None:
        made, asked = [], references(pairs_from(data, swap=settings.swap))
    else:
        parts = dict(zip(("train", "validation", "test"), parts_of(settings)))
        if part not in parts or not parts[part]:
            raise ConfigError(f"this run keeps no part {part!r}; name a file with --data")
        made, asked = [], references(parts[part])
    written = [one.text for one in interpreter.translate([source for source, _ in asked], beams=beams)]
    right = [answers for _, answers in asked]
    tokenizer = tokenizer_for(right[0])
    lower = settings.lower if lower is None else lower
    found = scores(written, right, tokenizer=tokenizer, lower=lower)
    result: dict[str, Any] = {
        "sentences": len(asked),
        "beams": beams,
        "bleu": found.bleu,
        "chrf": found.chrf,
        "signatures": [found.bleu_signature, found.chrf_signature],
        "exact": sum(text in answers for text, answers in zip(written, right)) / max(1, len(asked)),
        "samples": [
            {"source": source, "written": text, "right": answers[0]}
            for (source, answers), text in zip(asked[:samples], written)
        ],
    }
    if aligned and made and not settings.swap and looks_across(interpreter.model):
        measured = quality(interpreter, made[:200])
        result["alignment"] = {
            "error_rate": measured.error_rate,
            "layer": measured.layer,
            "by_layer": list(measured.by_layer),
            "straight_line": measured.chance,
        }
    return result


def looks_across(model: Any) -> bool:
    """Whether a model looks at its source while it writes; the fixed-context baseline does not."""
    return getattr(getattr(model, "decoder", None), "attention", True) is not None


def pairs_of(aligned: Any, *, swap: bool) -> list[Any]:
    from regard.data.pairs import Pair

    return [Pair(one.target, one.source) if swap else Pair(one.source, one.target) for one in aligned]


def settings_of(interpreter: Interpreter, where: str) -> TranslateSettings:
    """The settings by which a translator was trained."""
    given = interpreter.facts.get("settings")
    if given is None and (Path(where) / "run.json").exists():
        given = Run.open(Path(where)).described()["settings"]
    return TranslateSettings.model_validate(given or {})
