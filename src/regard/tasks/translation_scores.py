"""Scores of a translator: free decoding against all right answers, by the field's own measures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.grammar import AlignedPair, sentences
from regard.data.lines import name_lines
from regard.data.split import ReferenceSet, references
from regard.errors import ConfigError, ModelError
from regard.tasks.alignment import score_alignment
from regard.tasks.read_and_written import looks_across
from regard.tasks.score import load_sacrebleu, score_texts, tokenizer_for
from regard.tasks.text_translator import TextTranslator, open_translator
from regard.tasks.translate import TranslateOptions, TranslateSettings, pairs_from, pairs_of, parts_of
from regard.training.settings import settings_from

PARTS = ("validation", "test", "unseen", "long")


class TestSet(NamedTuple):
    """What to translate, with all right answers, and the true alignments where they are known."""

    references: list[ReferenceSet]
    aligned: list[AlignedPair]
    skipped: Sequence[int] = ()  # lines of the file that were left out


def evaluate_translator(folder: Path, options: TranslateOptions) -> dict[str, Any]:
    """Scores of a translator on a file, or on a part of what it was trained with that it has not seen.

    `lowercase` compares lower-cased text, as published tokenised lower-case figures do; the cased BLEU stands beside,
    as `bleu_cased`. `alignment` is there where the true one is known, and None where the model looks at nothing.
    """
    load_sacrebleu()  # before anything is translated
    translator = open_translator(folder)
    settings = training_settings(translator, folder)
    asked, made, skipped = make_test_set(settings, options)
    written = [one.text for one in translator.translate([one.source for one in asked], beams=options.beams)]
    right = [one.targets for one in asked]
    lower = options.lowercase or (settings.lowercase and not options.cased)
    tokenizer = tokenizer_for([text for one in right for text in one])
    scores = score_texts(written, right, tokenizer=tokenizer, lower=lower)
    result: dict[str, Any] = {
        "sentences": len(asked),
        "skipped": list(skipped),
        "beams": options.beams,
        "bleu": scores.bleu,
        "chrf": scores.chrf,
        "signatures": [scores.bleu_signature, scores.chrf_signature],
        "exact": sum(is_right(text, answers, lower) for text, answers in zip(written, right)) / len(asked),
        "samples": [
            {"source": one.source, "written": text, "right": one.targets[0]}
            for one, text in zip(asked[: options.samples], written)
        ],
    }
    if lower:
        result["bleu_cased"] = score_texts(written, right, tokenizer=tokenizer).bleu
    if options.alignment:
        result |= measure_alignment(translator, [] if settings.swap else made[:200])
    return result


def measure_alignment(translator: TextTranslator, sentences: Sequence[AlignedPair]) -> dict[str, Any]:
    """How well a translator aligns, as an entry of a result; none where no true alignment is known."""
    if not looks_across(translator.model):
        return {"alignment": None}
    if not sentences:
        return {}
    measured = score_alignment(translator, sentences)
    rates = {"error_rate": measured.error_rate, "layer": measured.layer, "by_layer": list(measured.by_layer)}
    return {"alignment": rates | {"straight_line": measured.chance}}


def report_scores(result: dict[str, Any]) -> str:
    """Samples, scores with their signatures, and how well it aligns, as a terminal shows them."""
    lines = [f"{one['source']}\n  → {one['written']}\n  = {one['right']}" for one in result["samples"]]
    cased = f" (cased {result['bleu_cased']:.2f})" if "bleu_cased" in result else ""
    beams = result["beams"]
    lines.append(
        f"\nBLEU {result['bleu']:.2f}{cased}  chrF {result['chrf']:.2f}  exactly right {result['exact']:.1%}  "
        f"({result['sentences']} sentences, {'greedy' if beams == 1 else f'{beams} beams'})"
    )
    if result.get("skipped"):
        lines.append(f"  left out: {name_lines(result['skipped'])}, where a side is empty or too long")
    lines += [f"  {signature}" for signature in result["signatures"]]
    return "\n".join([*lines, *report_alignment(result)])


def report_alignment(result: dict[str, Any]) -> list[str]:
    """How well it aligns, where that is known."""
    if "alignment" not in result:
        return []
    known = result["alignment"]
    if known is None:
        return ["no alignment: this model looks at nothing while it writes (attention = none)"]
    return [
        f"alignment error rate {known['error_rate']:.3f} (cross-attention {known['layer']}; "
        f"a straight line: {known['straight_line']:.3f})"
    ]


def is_right(text: str, answers: list[str], lower: bool) -> bool:
    """Whether this is one of the right answers."""
    return text in answers or (lower and text.lower() in [answer.lower() for answer in answers])


def make_test_set(settings: TranslateSettings, options: TranslateOptions) -> TestSet:
    """The sentences of a file, or those of a part of what a run was trained with."""
    data, part = options.data, options.part
    if data == "grammar" or (not data and settings.data == "grammar"):
        if part not in PARTS:
            raise ConfigError(f"there is no part {part!r} of the grammar; choose one of {', '.join(PARTS)}")
        made = sentences(options.count, seed=settings.seed, part=part)
        return TestSet(references(pairs_of(made, swap=settings.swap)), made)
    if data:
        pairs = pairs_from(data, swap=settings.swap)
        return TestSet(references(pairs), [], pairs.skipped)
    parts = dict(zip(("train", "validation", "test"), parts_of(settings)))
    if not parts.get(part):
        raise ConfigError(f"this run keeps no part {part!r}; name a file with --data")
    return TestSet(references(parts[part]), [])


def training_settings(translator: TextTranslator, folder: Path) -> TranslateSettings:
    """The settings by which a translator was trained."""
    try:
        return settings_from(TranslateSettings, translator.facts.get("settings") or {})
    except ConfigError as error:
        raise ModelError(f"{folder} was trained by another version of regard: {error}") from error
