"""Which words of a text mattered for its class, asked in three ways: attention, gradient × attention, leave-one-out."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.examples import RaggedArray
from regard.models.text_classifier import TextClassifier
from regard.tasks.classify_texts import BATCH_TOKENS, classify_ids
from regard.tasks.trained_classifier import TrainedClassifier
from regard.tokens import Tokens, read
from regard.tokens.merge import groups, merge_tokens
from regard.trace.measure.gradient import gradient_map
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace
from regard.trace.watch import watch

WAYS = ("attention", "gradient", "leave_one_out")
POOLED = "pooling"  # the name of the layer that pools by attention
ROWS = {
    "mean": "all rows alike, as the mean pools them",
    "max": "rows by how many channels of the maximum they give",
    "cls": "the row of the first token, which is all that is pooled",
}


class WordImportance(NamedTuple):
    """What each word of a text counted, (w,) each; above 0 it spoke for the class, below 0 against it.

    `attention` are shares, which have no sign. What they leave to 1 fell on special tokens.
    """

    words: tuple[str, ...]
    attention: Float[Tensor, " w"]
    gradient: Float[Tensor, " w"]  # attention · ∂(log-odds of the class) / ∂ attention
    leave_one_out: Float[Tensor, " w"]  # log-odds of the class with the word, less those without it
    source: str  # of which layer the attention is, and how its rows are taken together


def find_log_odds(logits: Float[Tensor, "*b n"], chosen: int) -> Float[Tensor, "*b"]:
    r"""$\log p_c / (1 - p_c) = z_c - \log \sum_{j \ne c} e^{z_j}$, exact also where p is nearly 1.

    >>> find_log_odds(torch.tensor([2.0, 0.5]), 0)
    tensor(1.5000)
    """
    others = torch.arange(logits.shape[-1], device=logits.device) != chosen
    return logits[..., chosen] - logits[..., others].logsumexp(-1)


def word_groups(tokens: Tokens, unknown: int | None = None) -> list[slice]:
    """Where the pieces of each word stand; special tokens and blanks are none, but what is `unknown` is a word.

    >>> word_groups(Tokens.of(["[CLS]", "play", "##ing", "cats", "[SEP]"]))
    [slice(1, 3, None), slice(3, 4, None)]
    """
    special, ids = tokens.special or (False,) * len(tokens), tokens.ids or (None,) * len(tokens)
    return [
        one
        for one in groups(tokens)
        if (unknown is not None and ids[one.start] == unknown) or (not special[one.start] and covers_text(tokens, one))
    ]


def covers_text(tokens: Tokens, group: slice) -> bool:
    if tokens.text is None or tokens.offsets is None:
        return True
    spans = [span for span in tokens.offsets[group] if span is not None]
    return any(tokens.text[first:stop].strip() for first, stop in spans)


def explain_ids(
    opened: TrainedClassifier, ids: Sequence[int], *, chosen: int | None = None, batch_tokens: int = BATCH_TOKENS
) -> WordImportance:
    """What each word counted for the class number `chosen`, for the likeliest one unless given."""
    tokens = read(opened.tokens.tokenizer, list(ids))
    found = word_groups(tokens, opened.tokens.unknown)
    merged = merge_tokens(tokens)
    starts = [group.start for group in groups(tokens)]
    names = tuple(merged.shown[starts.index(group.start)] for group in found)
    trace, logits = watch_with_gradient(opened.model, ids, chosen)
    chosen = int(logits.argmax()) if chosen is None else chosen
    layer, rows, source = pooled_rows(opened, trace, ids)
    weights = layer.weights[0].dense()  # h q k
    attention = rows.to(weights) @ weights.mean(0)  # k
    gradient = gradient_map(layer).received()[0].sum(0)  # k
    without = leave_out(opened.model, ids, found, batch_tokens)
    drop = find_log_odds(logits, chosen) - find_log_odds(without, chosen)
    return WordImportance(names, add_pieces(attention, found), add_pieces(gradient, found), drop, source)


def watch_with_gradient(model: Any, ids: Sequence[int], chosen: int | None) -> tuple[Trace, Float[Tensor, " n"]]:
    """The trace of a text, with the gradient of the log-odds of its class; no gradient is left in the model."""
    device = next(model.parameters()).device
    weight = model.embed.weight
    wanted = weight.requires_grad
    try:
        weight.requires_grad_(True)  # all attention lies between it and the logits
        with torch.inference_mode(False), torch.enable_grad(), watch(model, gradients=True) as trace:
            logits = model(torch.tensor([list(ids)], device=device), lengths=[len(ids)])[0]
            number = int(logits.argmax()) if chosen is None else chosen
            torch.autograd.grad(find_log_odds(logits, number), weight)
    finally:
        weight.requires_grad_(wanted)
    return trace, logits.detach()


def pooled_rows(opened: TrainedClassifier, trace: Trace, ids: Sequence[int]) -> tuple[Layer, Float[Tensor, " q"], str]:
    """The layer from which the vector of the text is pooled, what each of its rows counts, and the same in words."""
    if opened.pooling == "attention":
        layer = next(one for one in trace.layers if one.name == POOLED)
        return layer, torch.ones(1, dtype=torch.float64), "the pooling layer, whose one row looks at the tokens"
    layer = trace.layers[-1]
    count = layer.weights.shape[-2]
    rows = torch.zeros(count, dtype=torch.float64)
    if opened.pooling == "mean":
        rows += 1 / count
    elif opened.pooling == "max":
        rows += count_maxima(opened.model, ids)
    else:
        rows[0] = 1.0
    return layer, rows, f"the mean over the heads of the last layer ({layer.name}), {ROWS[opened.pooling]}"


@torch.no_grad()
def count_maxima(model: TextClassifier, ids: Sequence[int]) -> Float[Tensor, " t"]:
    """The share of channels in which each token is the largest."""
    hidden = model.hidden(torch.tensor([list(ids)], device=next(model.parameters()).device), lengths=[len(ids)])[0]
    return torch.bincount(hidden.argmax(0), minlength=len(hidden)).cpu().double() / hidden.shape[1]


def leave_out(
    model: Any, ids: Sequence[int], found: Sequence[slice], batch_tokens: int = BATCH_TOKENS
) -> Float[Tensor, "w n"]:
    """The logits of the text without each word, its pieces taken out, all in a batch or few."""
    rows = [np.asarray([*ids[: one.start], *ids[one.stop :]], dtype=np.int32) for one in found]
    return classify_ids(model, RaggedArray(rows), batch_tokens=batch_tokens)


def add_pieces(values: Float[Tensor, " k"], found: Sequence[slice]) -> Float[Tensor, " w"]:
    """The sum over the pieces of each word."""
    return torch.stack([values[one].sum() for one in found]).detach().cpu() if found else values.new_zeros(0)
