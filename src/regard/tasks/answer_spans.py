"""Start and end logits of the windows of a passage → the best spans of it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.data.batches import batches
from regard.tasks.answer_windows import EncodedPassage, WindowRow, choose_contexts

AT_ONCE = 8192  # tokens of a batch


class BestSpans(NamedTuple):
    """The best spans of each row, as places in the row, best first; -inf is the score where there are no more."""

    scores: Float[Tensor, "b n"]
    starts: Int[Tensor, "b n"]
    ends: Int[Tensor, "b n"]  # the last token, included
    total: Float[Tensor, " b"]  # log Σ exp of the scores of all spans
    null: Float[Tensor, " b"]  # the score of no answer: of place 0


def find_spans(
    logits: Float[Tensor, "b t 2"],
    starts: Bool[Tensor, "b t"],
    ends: Bool[Tensor, "b t"],
    *,
    max_answer: int,
    count: int,
) -> BestSpans:
    r"""The `count` best spans of each row: $\mathrm{start}_i + \mathrm{end}_j$ with $i \le j < i +$ `max_answer`.

    `starts` and `ends` say where a span may begin and end (Devlin et al. 2019, §4.2). All spans are looked at.

    >>> logits = torch.tensor([[[0.0, 0.0], [3.0, 1.0], [1.0, 2.0], [0.0, 9.0]]])
    >>> inside = torch.tensor([[False, True, True, True]])
    >>> best = find_spans(logits, inside, inside, max_answer=2, count=2)
    >>> best.starts.tolist(), best.ends.tolist(), best.scores.tolist()
    ([[2, 3]], [[3, 3]], [[10.0, 9.0]])
    """
    null = logits[:, 0].sum(-1)
    max_answer = min(max_answer, logits.shape[1])
    start = logits[..., 0].masked_fill(~starts, -torch.inf)  # b t
    end = logits[..., 1].masked_fill(~ends, -torch.inf)
    band = start[..., None] + F.pad(end, (0, max_answer - 1), value=-torch.inf).unfold(1, max_answer, 1)  # b t a
    flat = band.flatten(1)
    best = flat.topk(min(count, flat.shape[1]))
    first = best.indices // max_answer
    return BestSpans(best.values, first, first + best.indices % max_answer, flat.logsumexp(1), null)


class SpanChoice(NamedTuple):
    """One span of a passage that may answer a question, as characters of the passage."""

    start: int
    stop: int
    score: float  # start logit + end logit
    probability: float  # among all spans of the passage, and no answer where the model knows that
    row: int  # the row of the window that it was found in, among those of the question
    tokens: tuple[int, int]  # its first and last place in that row


class AnswerChoices(NamedTuple):
    """What a model answers to one question: spans, best first, and how much better no answer would be."""

    spans: list[SpanChoice]
    null_score: float  # score of no answer - best score

    def cut_best(self, passage: str) -> str:
        """The best span of the passage; "" where there is none."""
        return passage[self.spans[0].start : self.spans[0].stop] if self.spans else ""


class AskedRows(NamedTuple):
    """The rows of one question, and the passage that they are windows of."""

    passage: EncodedPassage
    rows: Sequence[WindowRow]


@torch.inference_mode()
def choose_answers(
    model: Any, asked: Sequence[AskedRows], *, max_answer: int, count: int = 1, knows_null: bool = False
) -> list[AnswerChoices]:
    """The `count` best spans for each question, over all windows of its passage.

    A span counts in the window that shows most around its first token, and its score is the plain sum of the two
    logits. Of no answer, the least score of any window counts: only what no window can answer has none. Rows of like
    length go together, so that little is computed for padding.
    """
    rows = [row for one in asked for row in one.rows]
    found: list[BestSpans | None] = [None] * len(rows)
    allowed = [mask for one in asked for mask in allowed_places(one)]
    lengths = np.asarray([len(row.ids) for row in rows], dtype=np.int64)
    device = next(model.parameters()).device
    most = int(max([AT_ONCE, *lengths]))
    for some in batches({"ids": lengths}, tokens=most, seed=0, epoch=0):
        logits = read_rows(model, [rows[i] for i in some], device)
        starts, ends = (pad_rows([allowed[i][side] for i in some], logits.shape[1]) for side in (0, 1))
        best = find_spans(logits, starts, ends, max_answer=max_answer, count=count)
        for place, number in enumerate(some.tolist()):
            found[number] = BestSpans(*(part[place] for part in best))
    answers, first = [], 0
    for one in asked:
        last = first + len(one.rows)
        answers.append(merge_windows(one, [best for best in found[first:last] if best], count, knows_null))
        first = last
    return answers


def read_rows(model: Any, rows: Sequence[WindowRow], device: torch.device) -> Float[Tensor, "b t 2"]:
    """The logits of some rows, in float32 at least."""
    lengths = [len(row.ids) for row in rows]
    ids, types = (torch.zeros(len(rows), max(lengths), dtype=torch.int64) for _ in range(2))
    for at, row in enumerate(rows):
        ids[at, : lengths[at]] = torch.as_tensor(row.ids)
        types[at, : lengths[at]] = torch.as_tensor(row.types)
    logits: Tensor = read_spans(model, ids.to(device), types.to(device), torch.tensor(lengths))
    return logits.to("cpu", torch.promote_types(logits.dtype, torch.float32))


def read_spans(model: Any, ids: Tensor, types: Tensor, lengths: Tensor) -> Tensor:
    """What the span head says (b, t, 2); a model that tells no texts apart is not told which is which."""
    return model(ids, types if model.types is not None else None, lengths=lengths)


def allowed_places(one: AskedRows) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each row: where an answer may begin, and where it may end."""
    nonempty = one.passage.nonempty
    if not len(nonempty):
        return [(np.zeros(len(row.ids), dtype=bool),) * 2 for row in one.rows]
    contexts = choose_contexts([row.window for row in one.rows])
    made = []
    for number, row in enumerate(one.rows):
        inside = slice(*row.inside)
        starts, ends = (np.zeros(len(row.ids), dtype=bool) for _ in range(2))
        window = slice(*row.window)
        starts[inside] = nonempty[window] & (contexts[window] == number)
        ends[inside] = nonempty[window]
        made.append((starts, ends))
    return made


def pad_rows(masks: Sequence[np.ndarray], length: int) -> Bool[Tensor, "b t"]:
    padded = np.zeros((len(masks), length), dtype=bool)
    for row, mask in zip(padded, masks):
        row[: len(mask)] = mask
    return torch.from_numpy(padded)


def merge_windows(one: AskedRows, found: Sequence[BestSpans], count: int, knows_null: bool) -> AnswerChoices:
    """The best spans of all windows of a passage, as characters."""
    null = min(float(best.null) for best in found)
    totals = torch.stack([best.total for best in found])
    if knows_null:
        totals = torch.cat([totals, totals.new_tensor([null])])
    total = float(totals.logsumexp(0))
    spans = []
    for number, (row, best) in enumerate(zip(one.rows, found)):
        shift = row.window.start - row.inside.start
        for score, start, end in zip(best.scores.tolist(), best.starts.tolist(), best.ends.tolist()):
            if score > -np.inf:
                characters = one.passage.cut(start + shift, end + shift)
                spans.append(SpanChoice(*characters, score, float(np.exp(score - total)), number, (start, end)))
    spans.sort(key=lambda span: -span.score)
    spans = spans[:count]
    return AnswerChoices(spans, null - spans[0].score if spans else np.inf)
