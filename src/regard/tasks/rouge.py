"""How good a summary is, by the field's own measure: ROUGE (Lin 2004), as rouge-score computes it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from regard.errors import ConfigError, DataError
from regard.extras import importing

TYPES = ("rouge1", "rouge2", "rougeL")


class Rouge(NamedTuple):
    """F-measures in percent, means over the texts: of words, of pairs of words, of the longest common subsequence."""

    rouge1: float
    rouge2: float
    rougeL: float  # noqa: N815  as the package spells it


def score_rouge(written: Sequence[str], references: Sequence[Sequence[str]]) -> Rouge:
    """ROUGE-1, -2 and -L of what was written; `references[i]` are all right answers to the i-th text.

    F-measures by rouge-score with its stemmer: words are runs of a-z and 0-9 in lower case, cut down by Porter's rules.
    Of several references the best counts, for each measure.

    >>> score_rouge(["meeting on monday"], [["Monday meetings", "lunch"]])
    Rouge(rouge1=80.0, rouge2=0.0, rougeL=40.0)
    """
    scorer = load_rouge().RougeScorer(list(TYPES), use_stemmer=True)
    if not any(scorer._tokenizer.tokenize(text) for answers in references for text in answers):
        raise DataError(
            "ROUGE counts words of the letters a-z and digits, and no reference has one; it cannot score these texts"
        )
    totals = dict.fromkeys(TYPES, 0.0)
    for text, answers in zip(written, references, strict=True):
        for name, score in scorer.score_multi(list(answers), text).items():
            totals[name] += score.fmeasure
    return Rouge(*(round(100 * total / len(written), 4) for total in totals.values()))


def sign_rouge() -> str:
    """How it was computed, for whoever compares."""
    from importlib.metadata import version

    return f"rouge-score {version('rouge_score')}, F-measure, Porter stemmer on"


def load_rouge() -> Any:
    """rouge-score, or a `ConfigError` that says how to get it."""
    missing = ConfigError("to score summaries, install regard[train]: pip install 'regard[train]'")
    with importing("rouge_score", missing=missing):
        from rouge_score import rouge_scorer  # type: ignore[import-untyped]
    return rouge_scorer
