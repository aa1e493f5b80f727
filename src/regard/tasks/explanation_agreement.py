"""How well attention says which words mattered: its rank correlation with leave-one-out, over many texts."""

import math
from typing import Any, NamedTuple

import numpy as np

from regard.data.examples import RaggedArray
from regard.tasks.rank_correlation import rank_correlation
from regard.tasks.trained_classifier import TrainedClassifier
from regard.tasks.word_importance import explain_ids

LEAST = 3  # words: of fewer a rank correlation says nothing
TEXTS = 500  # at most, unless told


class ExplanationAgreement(NamedTuple):
    """Mean rank correlations with leave-one-out over `texts`; `error` is the standard error of the first."""

    texts: int
    words: float  # of a text, on average
    attention: float  # its shares with the size of the change
    gradient: float  # the size of gradient × attention with the size of the change
    gradient_signed: float  # both with their signs
    random: float  # numbers drawn at random with the size of the change
    error: float

    def to_json(self) -> dict[str, Any]:
        """As a manifest has it."""
        return {name: value if name == "texts" else round(value, 4) for name, value in self._asdict().items()}


def measure_agreement(
    opened: TrainedClassifier, rows: RaggedArray, *, texts: int = TEXTS, seed: int = 0
) -> ExplanationAgreement:
    """What attention and gradient × attention say of each word, against what leaving the word out changes.

    Spearman's correlation within each text, then the mean over texts, at most `texts` of them drawn by `seed`. Texts of
    fewer than three words, or in which one way says the same of all words, are left out. Attention has no sign, so it
    is compared with the size of the change (Jain & Wallace 2019, §4.1, compare it so, by Kendall's τ).
    """
    random = np.random.default_rng(seed)
    found: list[tuple[float, ...]] = []
    lengths: list[int] = []
    for at in random.permutation(len(rows.lengths)).tolist():
        if len(found) == texts:
            break
        one = explain_ids(opened, rows[at])
        if len(one.words) < LEAST:
            continue
        shares, slopes, change = (np.asarray(values.double()) for values in one[1:4])
        some = (
            rank_correlation(shares, abs(change)),
            rank_correlation(abs(slopes), abs(change)),
            rank_correlation(slopes, change),
            rank_correlation(random.random(len(change)), abs(change)),
        )
        if not any(map(math.isnan, some)):
            found.append(some)
            lengths.append(len(one.words))
    if not found:
        return ExplanationAgreement(0, *(math.nan,) * 6)
    table = np.asarray(found)
    error = float(table[:, 0].std(ddof=1) / math.sqrt(len(table))) if len(table) > 1 else math.nan
    attention, gradient, signed, drawn = map(float, table.mean(0))
    return ExplanationAgreement(len(table), float(np.mean(lengths)), attention, gradient, signed, drawn, error)


def agreement_sentence(found: dict[str, Any]) -> str:
    """One line that says how far to trust attention.

    >>> numbers = {"texts": 500, "attention": 0.412, "gradient": 0.634, "gradient_signed": 0.71, "random": 0.003}
    >>> agreement_sentence(numbers)  # doctest: +NORMALIZE_WHITESPACE
    'On 500 held-out texts attention agrees with leave-one-out at rank correlation 0.41, gradient × attention at 0.63
    (0.71 with its sign); random numbers at 0.00.'
    """
    if not found["texts"]:
        return "No held-out text has three words or more, so nothing is known of how well attention explains."
    count = "1 held-out text" if found["texts"] == 1 else f"{found['texts']:,} held-out texts"
    return (
        f"On {count} attention agrees with leave-one-out at rank correlation {found['attention']:.2f}, "
        f"gradient × attention at {found['gradient']:.2f} ({found['gradient_signed']:.2f} with its sign); "
        f"random numbers at {found['random']:.2f}."
    )
