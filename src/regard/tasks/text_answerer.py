"""A trained model that answers questions: texts in, a span of the passage out, and where it looked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.errors import DataError, ModelError
from regard.models import store
from regard.models.bert import Bert
from regard.models.read_tokenizer import read_tokenizer
from regard.tasks.answer import AnswerSettings
from regard.tasks.answer_spans import AnswerChoices, AskedRows, SpanChoice, choose_answers
from regard.tasks.answer_trace import trace_row
from regard.tasks.answer_windows import WindowRow
from regard.tasks.encoder_tokens import EncoderTokenizer
from regard.tasks.text_translator import locate_trained
from regard.trace.record.trace import Trace
from regard.training.settings import settings_from

TRAIN = "regard train answer --data FILE.json"


class AnsweredQuestion:
    """A question on a passage, the spans that may answer it, best first, and how they came about."""

    def __init__(self, answerer: "TextAnswerer", question: str, asked: AskedRows, chosen: AnswerChoices) -> None:
        self.answerer, self.question, self.asked, self.chosen = answerer, question, asked, chosen

    @property
    def passage(self) -> str:
        return self.asked.passage.text

    @property
    def spans(self) -> list[SpanChoice]:
        """The best spans, as characters of the passage."""
        return self.chosen.spans

    @property
    def null_score(self) -> float:
        """How much better than the best span no answer scores."""
        return self.chosen.null_score

    @property
    def best(self) -> SpanChoice | None:
        """The span that answers; None where the model knows that a passage may not answer, and says so."""
        threshold = self.answerer.threshold
        silent = threshold is not None and self.null_score > threshold
        return self.spans[0] if self.spans and not silent else None

    @property
    def text(self) -> str:
        """The answer, as it stands in the passage; "" for none."""
        return "" if self.best is None else self.cut(self.best)

    def cut(self, span: SpanChoice) -> str:
        """The characters of a span."""
        return self.passage[span.start : span.stop]

    @property
    def row(self) -> WindowRow:
        """What the model read: the question, and the window of the passage in which the best span stands."""
        return self.asked.rows[self.spans[0].row if self.spans else 0]

    @property
    def places(self) -> tuple[int, int]:
        """The first and the last token of the best span in that row; all of the passage where there is no span."""
        return self.spans[0].tokens if self.spans else (self.row.inside.start, self.row.inside.stop - 1)

    def trace(self) -> Trace:
        """What the model attended to when it read that row."""
        return trace_row(self.answerer.model, self.answerer.tokens, self.row)

    def __repr__(self) -> str:
        return f"AnsweredQuestion({self.question!r} → {self.text!r})"


class TextAnswerer:
    """A model that answers, as `open_answerer` gives it."""

    def __init__(self, model: Any, tokens: EncoderTokenizer, settings: AnswerSettings, threshold: float | None) -> None:
        self.model, self.tokens, self.settings, self.threshold = model.eval(), tokens, settings, threshold
        self.encoder = settings.make_window_encoder(tokens)

    def answer(
        self,
        passage: str,
        questions: Sequence[str],
        *,
        n_best: int = 1,
        max_answer: int | None = None,
        only: int | None = None,
    ) -> list[AnsweredQuestion]:
        """The answer to each question, a span of the passage, and with `n_best` more spans after it.

        `max_answer` are tokens; as trained unless given. `only` is the one window of the passage that is read.
        """
        if isinstance(questions, str):
            raise DataError("one question came, but several were wanted; give a list of questions")
        for name, text in (("passage", passage), *(("question", one) for one in questions)):
            must_be_text(name, text)
        encoded = self.encoder.encode_passages([passage])[0]
        framed = [list(self.encoder.frame(one, encoded)) for one in self.encoder.encode_questions(questions)]
        asked = [AskedRows(encoded, rows if only is None else rows[only : only + 1]) for rows in framed]
        longest = self.settings.max_answer if max_answer is None else max_answer
        chosen = choose_answers(
            self.model, asked, max_answer=longest, count=n_best, knows_null=self.threshold is not None
        )
        return [AnsweredQuestion(self, *one) for one in zip(questions, asked, chosen)]

    def frame(self, passage: str, question: str) -> list[WindowRow]:
        """What the model reads of a question and a passage: a row for each window."""
        [asked], [encoded] = self.encoder.encode_questions([question]), self.encoder.encode_passages([passage])
        return list(self.encoder.frame(asked, encoded))


def answers_questions(folder: Path) -> bool:
    """Whether the model in a folder was trained to answer questions."""
    if not (folder / store.MANIFEST).exists():
        return False
    facts = store.describe(folder)
    return facts.get("task", facts.get("name")) == "answer"


def must_be_text(name: str, text: str) -> None:
    """Refuse a text without words, and one that is none."""
    if not text.strip():
        raise DataError(f"the {name} is empty; give some words").with_code("text.empty")
    if "\0" in text:
        raise DataError(f"the {name} holds NUL, which no text has; leave it out").with_code("text.nul")


def open_answerer(where: str | Path) -> TextAnswerer:
    """The model that answers questions of this name, or in this folder of a run or of a model.

    >>> open_answerer("nowhere")
    Traceback (most recent call last):
    regard.errors.ModelError: there is no model that answers questions 'nowhere': ...
    """
    folder = locate_trained(where, noun="model that answers questions", train=TRAIN)
    if not answers_questions(folder):
        raise ModelError(f"{where} was not trained to answer questions; train a model with: {TRAIN}")
    model, facts = store.read(folder), store.describe(folder)
    assert isinstance(model, Bert)
    settings = settings_from(AnswerSettings, facts.get("settings") or {})
    threshold = (facts.get("scores") or {}).get("best_f1_thresh")
    return TextAnswerer(model, EncoderTokenizer.wrap(read_tokenizer(folder)), settings, threshold)
