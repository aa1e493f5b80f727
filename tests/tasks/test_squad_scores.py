"""Exact match and F1, beside numbers that the official scripts gave for the same texts, and beside plain loops."""

import random

import pytest

from regard.tasks.squad_scores import (
    find_threshold,
    normalize_answer,
    score_answer,
    score_answers,
    score_exact,
    score_f1,
    score_with_null,
)

WORDS = ["the", "a", "an", "The", "cat,", "dog!", "1,066", "U.S.", "é", "naïve", "“x”", "-", "An's", "co-op", "I'm"]
WORDS += ["–", "猫", "\t", "\u00a0", "A.", "b"]


def draw_questions(count, *, least):
    """Answers, what they are compared with, and how much better none would be, as awkward as real ones and worse."""
    draw = random.Random(7)

    def text():
        return " ".join(draw.choice(WORDS) for _ in range(draw.randint(0, 5)))

    answers, references, nulls = [], [], []
    for _ in range(count):
        right = [text() or "x" for _ in range(draw.choice([least, 1, 1, 2, 3]))]
        answers.append(right[0] if right and draw.random() < 0.5 else text())
        references.append(right)
        nulls.append(round(draw.gauss(0 if right else 1, 1), 2))
    return answers, references, nulls


def test_scores_are_those_of_the_official_script_of_1_1():
    answers, references, _ = draw_questions(300, least=1)
    assert score_answers(answers, references) == pytest.approx(OFFICIAL_1, abs=1e-9)


def test_scores_and_thresholds_are_those_of_the_official_script_of_2_0():
    answers, references, nulls = draw_questions(300, least=0)
    assert score_with_null(answers, nulls, references, 0.5) == pytest.approx(OFFICIAL_2, abs=1e-9)


# What evaluate-v1.1.py and evaluate-v2.0.py (with -t 0.5) of SQuAD printed for draw_questions(300, …).
OFFICIAL_1 = {"exact": 58.0, "f1": 58.95873015873016}
OFFICIAL_2 = {
    "exact": 46.333333333333336, "f1": 48.13597883597884,
    "HasAns_exact": 36.134453781512605, "HasAns_f1": 38.406696011738035,
    "NoAns_exact": 85.48387096774194, "NoAns_f1": 85.48387096774194,
    "best_exact": 50.333333333333336, "best_exact_thresh": 1.5,
    "best_f1": 53.182010582010605, "best_f1_thresh": 1.5,
}  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "exact", "f1"),
    [
        ("the Denver Broncos", "Denver Broncos!", 1, 1),
        ("Denver  broncos", "A DENVER\tBroncos", 1, 1),
        ("Broncos", "Denver Broncos", 0, 2 / 3),
        ("the the cat", "cat cat", 0, 2 / 3),  # a word counts as often as it occurs
        ("theatre", "the atre", 0, 0),  # articles are whole words
        ("co-op", "coop", 1, 1),  # punctuation goes, it does not part words
        ("a.b", "ab", 1, 1),
        ("“cat”", "cat", 0, 0),  # only ASCII punctuation goes
        ("1,066", "1066", 1, 1),
        ("dog", "cat", 0, 0),
    ],
)
def test_known_pairs(one, other, exact, f1):
    assert (score_exact(one, other), score_f1(one, other)) == (exact, pytest.approx(f1))
    assert (score_exact(other, one), score_f1(other, one)) == (exact, pytest.approx(f1))


def test_what_is_left_of_nothing_agrees_in_2_0_and_not_in_1_1():
    assert normalize_answer("The!") == ""
    assert score_answer("a", ["the"]) == (1, 0)  # as 1.1 counts: the same, but no word in common
    assert score_answer("a", ["the"], unanswerable=True) == (1, 1)
    assert score_answer("", [], unanswerable=True) == (1, 1)
    assert score_answer("cat", ["the", "dog"], unanswerable=True) == (0, 0)


def test_the_best_of_several_references_counts():
    assert score_answer("the cat sat", ["cat", "a cat sat down", "dog"]) == (0, pytest.approx(0.8))
    with pytest.raises(ValueError):
        score_answers(["cat"], [])


def test_no_threshold_is_better_than_the_one_that_is_found():
    answers, references, nulls = draw_questions(61, least=0)
    nulls = [null + number * 1e-6 for number, null in enumerate(nulls)]  # no two alike
    scores = [score_answer(*one, unanswerable=True).f1 for one in zip(answers, references)]
    best, threshold = find_threshold(scores, nulls, answers, [bool(right) for right in references])
    tried = {at: score_with_null(answers, nulls, references, at)["f1"] for at in [-99.0, *nulls, 99.0]}
    assert max(tried.values()) <= best + 1e-9
    assert tried[threshold] == pytest.approx(best)
    found = score_with_null(answers, nulls, references, 0.0)
    assert (found["best_f1"], found["best_f1_thresh"]) == (best, threshold)
