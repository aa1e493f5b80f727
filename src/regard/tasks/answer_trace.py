"""What a model that answers looks at: traces in which question and passage have their names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.tasks.answer_spans import AskedRows, choose_answers, read_spans
from regard.tasks.answer_windows import TokenRange, WindowRow
from regard.tasks.encoder_tokens import EncoderTokenizer
from regard.tasks.read_and_written import ShownExample, save_examples
from regard.tokens import read
from regard.trace.record.trace import Trace
from regard.trace.watch import watch


@torch.no_grad()
def trace_row(model: nn.Module, tokens: EncoderTokenizer, row: WindowRow) -> Trace:
    """The trace of a model that reads a question and a window of a passage, with its tokens."""
    device = next(model.parameters()).device
    ids, types = (torch.tensor([part], device=device) for part in (row.ids, row.types))
    with watch(model) as trace:
        read_spans(model, ids, types, torch.tensor([len(row.ids)]))
    name_row(trace, tokens, row)
    return trace


def name_row(trace: Trace, tokens: EncoderTokenizer, row: WindowRow) -> None:
    """Name the tokens of a pass over a row."""
    named = read(tokens.tokenizer, row.ids)
    for layer in trace.layers:
        layer.queries, layer.keys = (named,), (named,)


class AnsweringHead(NamedTuple):
    """A head of a trace, and how much of its attention goes from the question to the answer."""

    layer: int  # counted in the trace
    head: int
    share: float


def find_answering_head(trace: Trace, asked: TokenRange, answer: tuple[int, int]) -> AnsweringHead:
    """The head in which the tokens of the question look most at those of the answer, first and last included."""
    rows, columns = slice(*asked), slice(answer[0], answer[1] + 1)
    shares = [layer.weights[0][:, rows, columns].sum(-1).mean(-1) for layer in trace.layers]  # h each
    best = max(range(len(shares)), key=lambda number: float(shares[number].max()))
    return AnsweringHead(best, int(shares[best].argmax()), float(shares[best].max()))


def question_to_passage(
    trace: Trace, head: AnsweringHead, row: WindowRow, places: TokenRange
) -> tuple[list[str], list[str], Float[Tensor, "q k"]]:
    """The tokens of the question, those of the row at `places`, and how much each of the first takes of the others."""
    layer = trace.layers[head.layer]
    assert layer.queries is not None
    names = layer.queries[0].shown
    weights = layer.weights[0][head.head, slice(*row.asked), slice(*places)]
    return list(names[slice(*row.asked)]), list(names[slice(*places)]), weights


def show_answers(
    model: Any, tokens: EncoderTokenizer, asked: Sequence[AskedRows], folder: Path, *, max_answer: int
) -> None:
    """Write a few questions with their answers, each with the trace of the window that the answer stands in."""
    shown = []
    for one, answer in zip(asked, choose_answers(model, asked, max_answer=max_answer)):
        best = answer.spans[0] if answer.spans else None
        row = one.rows[best.row if best else 0]
        first, last = best.tokens if best else (0, -1)
        names = read(tokens.tokenizer, row.ids).shown
        shown.append(ShownExample(names, names[first : last + 1], trace_row(model, tokens, row)))
    save_examples(folder, shown)
