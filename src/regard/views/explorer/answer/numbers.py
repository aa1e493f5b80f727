"""The whole computation of some rows and columns of one head, as one would do it by hand."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.map.source import MapPiece
from regard.attention.weigh.softmax import softmax
from regard.trace.record.even import even_softmax
from regard.trace.record.layer import Layer
from regard.views.explorer.answer import questions
from regard.views.explorer.answer.head_rows import HeadRows, scratch_for
from regard.views.explorer.answer.pack import Answer
from regard.views.explorer.answer.pieces import allowed_at, pieces_touching, scores_at
from regard.views.explorer.answer.rows import answer_top, check_place

SMALL = 1024  # weights up to which all of a map is shown
SHOWN = 10  # keys of a larger one


class ShownPart(NamedTuple):
    """Which rows and columns are shown: queries and keys in rising order."""

    rows: Tensor
    columns: Tensor


def answer_numbers(head: HeadRows, layer: Layer, at: questions.NumbersQuestion) -> Answer:
    """q, k, their products, bias, scores, mask, weights, v and the mix, for the part around one query and key."""
    check_place(at.query, head.q, "query", "queries")
    check_place(at.key, head.k, "key", "keys")
    part = choose_part(head, at)
    rows, columns = part
    with scratch_for(head.source) as scratch:
        where = slice(int(rows[0]), int(rows[-1]) + 1)  # all of them, or one
        weights = head.weights(where, slice(0, head.k), scratch).double().cpu()
    allowed = allowed_at(head.source, rows)
    scores = scores_at(head.source, rows)
    others = torch.ones(head.k, dtype=torch.bool)
    others[columns] = False
    v = values_of(layer, at)
    pieces = head.source.pieces()
    arrays = {
        "rows": rows,
        "columns": columns,
        **products_of(pieces, part),
        "v": None if v is None else v[columns],
        "bias": bias_of(pieces, part),
        "scores": None if scores is None else scores[:, columns],
        "allowed": allowed[:, columns],
        "weights": weights[:, columns],
        "rest": weights[:, others].sum(-1),
        "mix": None if v is None else weights @ v.double(),
        "kernel": kernel_of(layer, at),
        **normalisers(pieces, rows, scores, allowed),
    }
    first = pieces[0].source if pieces else None
    q = arrays["q"]
    facts = {
        "scale": 1.0 if first is None else float(first.scale),
        "softcap": None if first is None or first.softcap is None else float(first.softcap),
        "d": 0 if q is None else q.shape[-1],
        "e": 0 if v is None else v.shape[-1],
    }
    return Answer(facts, arrays)


def choose_part(head: HeadRows, at: questions.NumbersQuestion) -> ShownPart:
    """All of a small map; of a large one the row in hand, its strongest keys and the key in hand."""
    if head.q * head.k <= SMALL:
        return ShownPart(torch.arange(head.q), torch.arange(head.k))
    keys = answer_top(head, at.query, 1, SHOWN).arrays["keys"]
    assert keys is not None
    some = {at.key, *(int(key) for key in keys.flatten() if key >= 0)}
    return ShownPart(torch.tensor([at.query]), torch.tensor(sorted(some)))


def products_of(pieces: Sequence[MapPiece], part: ShownPart) -> dict[str, Tensor | None]:
    """q, k and q · k where the score is a product; NaN where a query and a key never met."""
    if not pieces or any(piece.source.score is not None and not piece.source.score.is_dot for piece in pieces):
        return {"q": None, "k": None, "dot": None}
    rows, columns = part
    width = pieces[0].source.q.shape[-1]
    q, k = torch.full((len(rows), width), torch.nan), torch.full((len(columns), width), torch.nan)
    dot = torch.full((len(rows), len(columns)), torch.nan)
    for piece in pieces:
        there, keys = columns_within(piece, columns)
        k[there] = piece.source.k.index_select(-2, keys.to(piece.source.device)).float().cpu()
    for piece, here, at in pieces_touching(pieces, rows):
        there, keys = columns_within(piece, columns)
        q[here] = piece.source.q.index_select(-2, at).float().cpu()
        k[there] = piece.source.k.index_select(-2, keys.to(piece.source.device)).float().cpu()  # as these rows saw it
        dot[here[:, None], there] = (q[here].double() @ k[there].double().mT).float()
    return {"q": q, "k": k, "dot": dot}


def bias_of(pieces: Sequence[MapPiece], part: ShownPart) -> Tensor | None:
    """What is added to the scores."""
    if all(piece.source.bias is None for piece in pieces):
        return None
    rows, columns = part
    biases = torch.full((len(rows), len(columns)), torch.nan)
    for piece, here, at in pieces_touching(pieces, rows):
        there, keys = columns_within(piece, columns)
        bias = torch.zeros(1, 1)
        if piece.source.bias is not None:
            bias = piece.source.bias_at(at, keys.to(piece.source.device)).float().cpu()
        biases[here[:, None], there] = bias.expand(len(here), len(there))
    return biases


def columns_within(piece: MapPiece, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Which of these columns a piece has (places in `columns`), and their numbers in the piece."""
    there = ((columns >= piece.columns.start) & (columns < piece.columns.stop)).nonzero().flatten()
    return there, columns[there] - piece.column


def normalisers(
    pieces: Sequence[MapPiece], rows: Tensor, scores: Tensor | None, allowed: Tensor
) -> dict[str, Tensor | None]:
    """The largest score of each row, Σ exp(score − largest) with the sink in it, and the sink; for softmax only.

    A row that sees nothing has −inf and 0.
    """
    soft = bool(pieces) and all(piece.source.weigh in (softmax, even_softmax) for piece in pieces)
    if scores is None or not soft:
        return {"highest": None, "total": None, "sink": None}
    seen = scores.double().masked_fill(~allowed, -torch.inf)
    highest = seen.amax(-1)
    blind = highest == -torch.inf
    base = highest.masked_fill(blind, 0.0)
    total = (seen - base[:, None]).exp().sum(-1)
    sink = None
    if any(piece.source.sink is not None for piece in pieces):
        sink = torch.full((len(rows),), -torch.inf, dtype=torch.float64)
        for piece, here, _ in pieces_touching(pieces, rows):
            if piece.source.sink is not None:
                sink[here] = piece.source.sink.double().cpu().flatten()[0]
        total = total + (sink - base).exp().masked_fill(blind, 0.0)
    return {"highest": highest, "total": total, "sink": sink}


def values_of(layer: Layer, at: questions.NumbersQuestion) -> Tensor | None:
    """The values of one head, (k, e); heads of a group share theirs."""
    v = layer.v
    if v is None or v.ndim != 4 or v.shape[-2] != layer.weights.shape[-1]:
        return None
    head = at.head * v.shape[1] // layer.heads
    return v[at.batch if v.shape[0] > 1 else 0, head].detach().float().cpu()


def kernel_of(layer: Layer, at: questions.NumbersQuestion) -> Tensor | None:
    """What the model's own kernel gave for the row in hand, where it was copied and nothing was dropped."""
    seen = layer.seen
    if seen is None or seen.mix is None or seen.dropout or at.query not in seen.rows:
        return None
    return seen.mix[at.batch, at.head, seen.rows.index(at.query)].detach().float().cpu()
