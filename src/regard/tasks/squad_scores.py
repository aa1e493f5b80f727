"""Exact match and F1 of answers, counted as the official scripts of SQuAD 1.1 and 2.0 count them."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """What two answers that count as one have in common: lower case, no punctuation, no articles, single spaces.

    Only ASCII punctuation goes, and before the articles do, as in the official scripts.

    >>> normalize_answer("The  Denver Broncos!")
    'denver broncos'
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def score_exact(predicted: str, wanted: str) -> float:
    """1 where both are the same after `normalize_answer`, else 0.

    >>> score_exact("the Denver Broncos", "Denver Broncos!")
    1.0
    """
    return float(normalize_answer(predicted) == normalize_answer(wanted))


def score_f1(predicted: str, wanted: str, *, empty_agrees: bool = True) -> float:
    r"""Harmonic mean of precision and recall of the words, each as often as it occurs: $2pr / (p + r)$.

    Where nothing is left of an answer, F1 is 1 if nothing is left of the other either, as in SQuAD 2.0; without
    `empty_agrees` it is 0, as in 1.1.

    >>> score_f1("in the year 1066", "1066")
    0.5
    """
    ours, theirs = normalize_answer(predicted).split(), normalize_answer(wanted).split()
    if not ours or not theirs:
        return float(ours == theirs and empty_agrees)
    same = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * same / (len(ours) + len(theirs))


class AnswerScore(NamedTuple):
    """How good one answer is, beside the best of its references."""

    exact: float
    f1: float


def score_answer(predicted: str, references: Sequence[str], *, unanswerable: bool = False) -> AnswerScore:
    """The best scores that an answer has with one of its references.

    With `unanswerable`, as in SQuAD 2.0, no reference means that there is no answer, and "" is right; references of
    which nothing is left after `normalize_answer` are none.

    >>> score_answer("Broncos", ["Denver Broncos", "The Broncos"])
    AnswerScore(exact=1.0, f1=1.0)
    >>> score_answer("", [], unanswerable=True), score_answer("a cat", [], unanswerable=True)
    (AnswerScore(exact=1.0, f1=1.0), AnswerScore(exact=0.0, f1=0.0))
    """
    if unanswerable:
        references = [one for one in references if normalize_answer(one)] or [""]
    return AnswerScore(
        max(score_exact(predicted, one) for one in references),
        max(score_f1(predicted, one, empty_agrees=unanswerable) for one in references),
    )


def score_answers(predicted: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Exact match and F1 in percent, the mean over all questions, as SQuAD 1.1 counts them.

    >>> score_answers(["Paris", "in 1066"], [["Paris", "paris, France"], ["1066"]])
    {'exact': 50.0, 'f1': 83.33...}
    """
    return average([score_answer(ours, right) for ours, right in zip(predicted, references, strict=True)])


def average(scores: Sequence[AnswerScore]) -> dict[str, float]:
    count = max(1, len(scores))
    return {name: 100 * sum(getattr(one, name) for one in scores) / count for name in AnswerScore._fields}


def score_with_null(
    predicted: Sequence[str], null_scores: Sequence[float], references: Sequence[Sequence[str]], threshold: float
) -> dict[str, float]:
    """The scores of SQuAD 2.0, where some questions have no reference and should get no answer.

    `predicted` are the best answers, `null_scores` say how much better no answer would be, and one above `threshold`
    gives none. `HasAns_` and `NoAns_` are of the questions that have an answer, and of those that have none.
    `best_exact` and `best_f1` are what the best threshold gives, which follows as `…_thresh`.

    >>> scores = score_with_null(["a cat", "a dog"], [-2.0, 3.0], [["cat"], []], threshold=5.0)
    >>> scores["exact"], scores["NoAns_exact"], scores["best_exact"], scores["best_exact_thresh"]
    (50.0, 0.0, 100.0, -2.0)
    """
    raw = [score_answer(ours, right, unanswerable=True) for ours, right in zip(predicted, references, strict=True)]
    answered = [bool(right) for right in references]
    at_threshold = [
        AnswerScore(float(not has), float(not has)) if null > threshold else score
        for score, null, has in zip(raw, null_scores, answered, strict=True)
    ]
    scores = average(at_threshold)
    for name, side in (("HasAns", True), ("NoAns", False)):
        some = [score for score, has in zip(at_threshold, answered) if has == side]
        scores |= {f"{name}_{key}": value for key, value in average(some).items()} if some else {}
    for name in AnswerScore._fields:
        best, threshold = find_threshold([getattr(one, name) for one in raw], null_scores, predicted, answered)
        scores |= {f"best_{name}": best, f"best_{name}_thresh": threshold}
    return scores


def find_threshold(
    scores: Sequence[float], null_scores: Sequence[float], predicted: Sequence[str], answered: Sequence[bool]
) -> tuple[float, float]:
    """The best score in percent that any threshold gives, and that threshold: one of the null scores, or 0.

    As `find_best_thresh` of the official script: begin with no answer to anything, and answer one question more at a
    time, those first that want an answer most.
    """
    now = best = float(len(answered) - sum(answered))
    threshold = 0.0
    for at in sorted(range(len(scores)), key=null_scores.__getitem__):
        now += scores[at] if answered[at] else -float(predicted[at] != "")
        if now > best:
            best, threshold = now, null_scores[at]
    return 100 * best / max(1, len(scores)), threshold
