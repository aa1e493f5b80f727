"""Models of our own that answer questions: a question and a passage in one text, the answer and where it looked out."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from regard.app.protocol.messages import EditSpec, RunRequest
from regard.app.protocol.refusal import Refusal
from regard.app.runners.monitor import RunMonitor
from regard.app.runners.probabilities import Prediction
from regard.app.runners.runner import Inputs, Runner
from regard.app.runners.spelling import Names
from regard.attention.observe import muted
from regard.tasks.answer_spans import read_spans
from regard.tasks.answer_trace import name_row
from regard.tasks.text_answerer import AnsweredQuestion, TextAnswerer, open_answerer
from regard.trace.record.trace import Trace
from regard.trace.watch import watch


def split_question(text: str) -> tuple[str, str]:
    """The question and the passage: the first line and the rest, or in one line what ends in "?" and the rest.

    >>> split_question("Who sat?\\nThe cat sat."), split_question("Who sat? The cat sat.")
    (('Who sat?', 'The cat sat.'), ('Who sat?', 'The cat sat.'))
    """
    text = text.strip()
    mark = "\n" if "\n" in text else "？" if "？" in text else "?"
    question, found, passage = text.partition(mark)
    if not text:
        raise Refusal("the text is empty, so there is nothing to look at; give some words").with_code("text.empty")
    if not passage.strip() or not question.strip():
        raise Refusal(
            "the text holds no question and passage; give the question in the first line, and the passage below it"
        ).with_code("text.question")
    return (question + found).strip(), passage.strip()


class AnswerRunner(Runner):
    """A model that points at the answer. Of a long passage the window is watched that the answer stands in."""

    def __init__(self, name: str, answerer: TextAnswerer) -> None:
        self.name, self.answerer, self.model = name, answerer, answerer.model
        self.token_name = Names(answerer.tokens.tokenizer)

    def read(self, request: RunRequest, monitor: RunMonitor) -> Inputs:
        question, passage = split_question(request.text)
        with muted():
            [answered] = self.answerer.answer(passage, [question])
        monitor.must_go_on()
        return inputs_of(answered)

    @contextmanager
    def watch(self, inputs: Inputs) -> Iterator[Trace]:
        with watch(self.model) as trace:
            yield trace
        name_row(trace, self.answerer.tokens, self.answerer.frame(inputs["passage"], inputs["question"])[inputs["row"]])

    def forward(self, inputs: Inputs) -> Prediction:
        """Where the answer starts and ends: two rows, over the tokens of the passage in this window."""
        row = self.answerer.frame(inputs["passage"], inputs["question"])[inputs["row"]]
        logits = read_spans(
            self.model, torch.tensor([row.ids]), torch.tensor([row.types]), torch.tensor([len(row.ids)])
        )
        inside = row.ids[slice(*row.inside)]
        return Prediction(logits[0, slice(*row.inside)].mT, lambda number: self.token_name(inside[number]))

    def written_text(self, inputs: Inputs) -> str:
        return str(inputs["answer"])

    def rewrite(
        self, inputs: Inputs, layers: list[str], edits: list[EditSpec], monitor: RunMonitor, *, whole: bool
    ) -> str:
        """The answer in the same window."""
        with muted(), self.edit(layers, edits):
            [answered] = self.answerer.answer(inputs["passage"], [inputs["question"]], only=inputs["row"])
        return answered.text


def inputs_of(answered: AnsweredQuestion) -> Inputs:
    """A run as plain values, from which it can be made again."""
    row = answered.spans[0].row if answered.spans else 0
    return {"question": answered.question, "passage": answered.passage, "row": row, "answer": answered.text}


def open_answer_runner(name: str, folder: Path) -> AnswerRunner:
    """The runner of a model that answers questions, in its folder."""
    return AnswerRunner(name, open_answerer(folder))
