"""ROUGE against rouge-score itself, and new n-grams counted by hand."""

import pytest
from rouge_score import rouge_scorer

from regard.errors import DataError
from regard.tasks.novelty import novel_ngrams
from regard.tasks.rouge import score_rouge, sign_rouge

WRITTEN = ["Meetings on Monday", "dinner plans", "", "the quick foxes jumped"]
WANTED = ["monday's meeting", "Lunch", "Something", "a quick fox is jumping over it"]


def test_scores_are_those_of_rouge_score_with_its_stemmer():
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    found = score_rouge(WRITTEN, [[one] for one in WANTED])
    each = [scorer.score(target, written) for target, written in zip(WANTED, WRITTEN)]
    for name in ("rouge1", "rouge2", "rougeL"):
        mean = sum(one[name].fmeasure for one in each) / len(each)
        assert getattr(found, name) == pytest.approx(100 * mean, abs=1e-4)
    plain = rouge_scorer.RougeScorer(["rouge1"]).score(WANTED[0], WRITTEN[0])["rouge1"].fmeasure
    assert each[0]["rouge1"].fmeasure > plain, "the stemmer is on"


def test_of_several_references_the_best_counts():
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    answers = ["lunch", "a meeting on monday", "monday"]
    best = scorer.score_multi(answers, WRITTEN[0])
    found = score_rouge(WRITTEN[:1], [answers])
    assert found == pytest.approx([100 * best[name].fmeasure for name in ("rouge1", "rouge2", "rougeL")], abs=1e-4)


def test_how_it_was_computed_is_said():
    assert sign_rouge() == "rouge-score 0.1.2, F-measure, Porter stemmer on"


def test_texts_that_rouge_cannot_count_are_refused():
    with pytest.raises(DataError, match="no reference has one"):
        score_rouge(["猫"], [["猫坐在垫子上"]])


def test_new_ngrams_are_counted_as_by_hand():
    text, summary = "We meet on Monday at noon, on Monday only.", "Monday: we meet on Tuesday"
    # 1: monday we meet on are known, tuesday is not.  2: "we meet", "meet on" are known, two are not.
    # 3: "we meet on" is known, two are not.  4: "monday we meet on" and "we meet on tuesday" are not.
    assert novel_ngrams([text], [summary]) == [1 / 5, 2 / 4, 2 / 3, 2 / 2]
    # A second summary of one word that is known: 1 of 6 words, and nothing longer.
    assert novel_ngrams([text, text], [summary, "NOON"]) == [1 / 6, 2 / 4, 2 / 3, 2 / 2]
    assert novel_ngrams([text], [""]) == [0, 0, 0, 0]
    assert novel_ngrams(["a"], ["b b"]) == [1, 1, 0, 0], "what stands twice counts twice"
