"""Which word of a translation stands for which word of its source: what the model shows against what is true."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.grammar import AlignedPair, word_spans
from regard.data.special import END
from regard.errors import DataError
from regard.tasks.read_and_written import label_ids, trace_example
from regard.tasks.text_translator import TextTranslator, check_looks_across

Span = tuple[int, int]


class AlignmentScores(NamedTuple):
    """Alignment error rates, over sentences whose true alignment is known."""

    error_rate: float  # of the layer that aligns best
    layer: int  # which of the layers that look across
    by_layer: tuple[float, ...]
    chance: float  # of a straight line from the first to the last word


def error_rate(found: set[tuple[int, int]], true: set[tuple[int, int]]) -> float:
    """1 − 2 |found ∩ true| / (|found| + |true|): Och & Ney 2003 with sure links only.

    >>> error_rate({(0, 1), (1, 1)}, {(0, 1)})
    0.33333333333333337
    """
    return 1.0 - 2.0 * len(found & true) / max(1, len(found) + len(true))


def merge_to_words(
    weights: Float[Tensor, "t s"],
    rows: Sequence[Span],
    columns: Sequence[Span],
    targets: Sequence[Span],
    sources: Sequence[Span],
) -> Float[Tensor, "_t _s"]:
    """Weights between tokens as weights between words: columns of a word add up, its rows are averaged.

    `rows` and `columns` are the characters of each token, `targets` and `sources` those of each word.
    """  # fmt: skip
    down, across = overlap_matrix(rows, targets), overlap_matrix(columns, sources)
    return (down / down.sum(1, keepdim=True).clamp_min(1)) @ weights.double() @ across.T


def overlap_matrix(tokens: Sequence[Span], words: Sequence[Span]) -> Float[Tensor, "w t"]:
    """1 where a token has a character of a word."""
    found = torch.zeros(len(words), len(tokens), dtype=torch.float64)
    for i, (first, stop) in enumerate(words):
        for j, (start, end) in enumerate(tokens):
            found[i, j] = float(max(first, start) < min(stop, end))
    return found


@torch.no_grad()
def score_alignment(translator: TextTranslator, pairs: Sequence[AlignedPair]) -> AlignmentScores:
    """How well each cross-attention, mean over its heads, finds the words that mean each other.

    The true translation is fed, so that every word has its true partner. Each target word that has one is linked to
    the source word it looks at most.
    """
    check_looks_across(translator)
    if not pairs:
        raise DataError("there are no sentences to align; give some")
    totals: list[list[int]] = []
    straight = [0, 0]
    for pair in pairs:
        sources, targets = word_spans(pair)
        linked = sorted({target for target, _ in pair.links})
        true = set(pair.links)
        read, written = [*translator.source.encode(pair.source), END], translator.target.encode(pair.target)
        fed = label_ids(translator.source, translator.target, read, written)
        crossing = [layer for layer in trace_example(translator.model, fed).layers if layer.kind != "self"]
        totals = totals or [[0, 0] for _ in crossing]
        rows, columns = translator.target.offsets(pair.target), translator.source.offsets(pair.source)
        for number, layer in enumerate(crossing):
            weights = layer.weights[0].dense().mean(0)[: len(rows), : len(columns)]
            words = merge_to_words(weights, rows, columns, targets, sources)
            count(totals[number], {(t, int(words[t].argmax())) for t in linked}, true)
        slope = (len(sources) - 1) / max(1, len(targets) - 1)
        count(straight, {(t, round(t * slope)) for t in linked}, true)
    rates = tuple(1.0 - 2.0 * hits / max(1, size) for hits, size in totals)
    best = min(range(len(rates)), key=rates.__getitem__)
    return AlignmentScores(rates[best], best, rates, 1.0 - 2.0 * straight[0] / max(1, straight[1]))


def count(total: list[int], found: set[tuple[int, int]], true: set[tuple[int, int]]) -> None:
    total[0] += len(found & true)
    total[1] += len(found) + len(true)
