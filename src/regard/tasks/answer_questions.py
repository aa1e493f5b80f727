"""Questions of a SQuAD file as rows of an encoder: to learn from, and to be judged by."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.data.examples import Examples
from regard.data.split import fold_text, hash_sentence
from regard.data.squad import SquadData, read_squad
from regard.errors import DataError
from regard.tasks.answer_spans import AnswerChoices, AskedRows, choose_answers
from regard.tasks.answer_windows import WindowEncoder, WindowRow
from regard.tasks.squad_scores import score_answers, score_with_null


class QuestionParts(NamedTuple):
    """The questions to learn from, and those to be judged by."""

    train: SquadData
    validation: SquadData


def split_questions(path: Path, *, held_out: int, seed: int, skip_bad_answers: bool = False) -> QuestionParts:
    """The questions of a file in two parts, at least `held_out` in the second; no passage stands in both.

    Which passages are held out depends on them and the seed, not on their order.
    """
    every = read_squad(path, skip_bad_answers=skip_bad_answers)
    hashes = [hash_sentence(fold_text(text), seed) for text in every.passages]
    counts: dict[bytes, int] = {}
    for one in every.questions:
        counts[hashes[one.passage]] = counts.get(hashes[one.passage], 0) + 1
    held: set[bytes] = set()
    total = 0
    for name in sorted(counts):
        if total >= held_out:
            break
        held.add(name)
        total += counts[name]
    if len(held) == len(counts):
        raise DataError(
            f"{held_out} questions for validation leave none to learn from, as {path} has {len(every.questions)} on "
            f"{len(counts)} passages; hold out fewer, or name a file with --validation"
        )
    train, validation = (
        [one for one in every.questions if (hashes[one.passage] in held) == side] for side in (False, True)
    )
    return QuestionParts(
        SquadData(every.passages, train, every.skipped), SquadData(every.passages, validation, every.skipped)
    )


class AskedQuestions:
    """Questions with their rows.

    >>> from regard.data.squad import SquadAnswer, SquadQuestion
    >>> from regard.models import embedded
    >>> from regard.tasks.encoder_tokens import EncoderTokenizer
    >>> encoder = WindowEncoder(EncoderTokenizer.wrap(embedded.tokenizer("filler")), max_length=20, max_question=8)
    >>> data = SquadData(["A cat sat."], [SquadQuestion("1", "Who sat?", 0, (SquadAnswer("A cat", 0),))])
    >>> examples, left_out = AskedQuestions(data, encoder).make_examples()
    >>> examples.collate([0])["spans"], left_out
    (tensor([[5, 6]]), 0)
    """

    def __init__(self, data: SquadData, encoder: WindowEncoder) -> None:
        self.data = data
        used = sorted({one.passage for one in data.questions})
        passages = dict(zip(used, encoder.encode_passages([data.passages[number] for number in used])))
        asked = encoder.encode_questions([one.text for one in data.questions])
        self.asked = [
            AskedRows(passages[one.passage], list(encoder.frame(question, passages[one.passage])))
            for one, question in zip(data.questions, asked)
        ]

    def make_examples(self) -> tuple[Examples, int]:
        """A row for each window to learn from, and how many questions are left out: no token holds their answer.

        The first answer of a question is learned. In a window that does not hold all of it, the span is (0, 0).
        """
        rows: list[WindowRow] = []
        spans: list[tuple[int, int]] = []
        left_out = 0
        for question, one in zip(self.data.questions, self.asked):
            first = question.answers[0] if question.answers else None
            tokens = one.passage.find(first.start, first.stop) if first else None
            if first is not None and tokens is None:
                left_out += 1
                continue
            rows += one.rows
            spans += [place_answer(row, tokens) for row in one.rows]
        examples = Examples(
            {"ids": [row.ids for row in rows], "types": [row.types for row in rows]},
            {"passages": [row.inside for row in rows], "spans": spans},
            longest=max((len(row.ids) for row in rows), default=0),
        )
        return examples, left_out

    def score(self, model: Any, *, max_answer: int, threshold: float = 0.0) -> dict[str, float]:
        """Exact match and F1 in percent; those of SQuAD 2.0 where some question has no answer."""
        return self.score_choices(self.choose(model, max_answer=max_answer), threshold=threshold)

    def choose(self, model: Any, *, max_answer: int) -> list[AnswerChoices]:
        """What the model answers to each question."""
        return choose_answers(model, self.asked, max_answer=max_answer, knows_null=self.data.has_unanswerable)

    def score_choices(self, chosen: list[AnswerChoices], *, threshold: float = 0.0) -> dict[str, float]:
        """The scores of such answers."""
        texts = [answer.cut_best(one.passage.text) for one, answer in zip(self.asked, chosen)]
        references = [[answer.text for answer in one.answers] for one in self.data.questions]
        if not self.data.has_unanswerable:
            return score_answers(texts, references)
        return score_with_null(texts, [one.null_score for one in chosen], references, threshold)


def sample_questions(data: SquadData, count: int, seed: int) -> SquadData:
    """At most `count` of the questions, in their order; the same ones with the same seed."""
    if count >= len(data.questions):
        return data
    chosen = np.sort(np.random.default_rng((seed, 5)).permutation(len(data.questions))[:count])
    return SquadData(data.passages, [data.questions[number] for number in chosen.tolist()], data.skipped)


def place_answer(row: WindowRow, tokens: tuple[int, int] | None) -> tuple[int, int]:
    """Where the first and last token of an answer stand in a row: twice 0 unless all of it is in the window."""
    if tokens is None or tokens[0] < row.window.start or tokens[1] >= row.window.stop:
        return 0, 0
    shift = row.inside.start - row.window.start
    return tokens[0] + shift, tokens[1] + shift
