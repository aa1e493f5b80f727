"""Many texts through a classifier: sorted by length, so that hardly anything is computed for padding."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.examples import RaggedArray
from regard.data.labelled import clean_text
from regard.tasks.encoder_tokens import EncoderTokenizer
from regard.tasks.labelled_examples import frame_texts

BATCH_TOKENS = 2048  # on a processor more do not fit its cache, fewer leave its vector units waiting
ENOUGH = 4  # a batch that is this part of a whole one ends where longer texts begin
AT_ONCE = 4096  # texts encoded at a time


def sort_batches(lengths: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Batches of about equally long rows, each at most `batch_tokens` with its padding, every row in one of them.

    >>> [batch.tolist() for batch in sort_batches(np.array([5, 2, 5, 3, 2]), 10)]
    [[1, 4], [3], [0, 2]]
    """
    order = np.argsort(lengths, kind="stable")
    made, start = [], 0
    sizes = lengths[order].tolist()
    for at, size in enumerate(sizes):
        rows = at - start
        longer = rows and size > sizes[at - 1] and rows * sizes[at - 1] * ENOUGH > batch_tokens
        if rows and ((rows + 1) * size > batch_tokens or longer):
            made.append(order[start:at])
            start = at
    return [*made, order[start:]] if len(order) else []


@torch.inference_mode()
def classify_ids(model: Any, rows: RaggedArray, *, batch_tokens: int = BATCH_TOKENS) -> Float[Tensor, "n classes"]:
    """The logits of each row of ids, in the order they came, in float32 at least; the model is used as it is."""
    device = next(model.parameters()).device
    made: Tensor | None = None
    for chosen in sort_batches(rows.lengths, batch_tokens):
        lengths = rows.lengths[chosen]
        ids = torch.from_numpy(rows.pad(chosen)).to(device)
        padded = lengths[0] != lengths[-1]
        logits = model(ids, lengths=torch.from_numpy(lengths).to(device) if padded else None)
        if made is None:
            made = logits.new_empty((len(rows.lengths), logits.shape[-1]))
        made[torch.from_numpy(chosen).to(device)] = logits
    if made is None:
        return torch.empty(0, int(model.config.labels))
    return made.float() if made.dtype.itemsize < 4 else made


def classify_texts(
    model: Any,
    tokens: EncoderTokenizer,
    texts: Iterable[str],
    *,
    batch_tokens: int = BATCH_TOKENS,
    max_length: int | None = None,
) -> Float[Tensor, "n classes"]:
    """The probability of each class for each text, in the order they came.

    `max_length` is how many tokens of a text are read, as many as the model can unless given: of a longer one the
    beginning and the end. `batch_tokens` are computed at a time, padding included.

    >>> from regard.models import embedded
    >>> from regard.models.text_classifier import TextClassifierConfig
    >>> tokens = EncoderTokenizer.wrap(embedded.tokenizer("filler"))
    >>> model = TextClassifierConfig(vocab_size=4096, width=8, heads=2, layers=1, labels=3).build().eval()
    >>> classify_texts(model, tokens, ["a good film", "bad"]).sum(1).round(decimals=4)
    tensor([1., 1.])
    """
    longest = model.longest if max_length is None else min(max_length, model.longest)
    ids: list[np.ndarray] = []
    some: list[str] = []
    for text in texts:
        some.append(clean_text(text))
        if len(some) == AT_ONCE:
            ids += encode_rows(tokens, some, longest)
            some = []
    ids += encode_rows(tokens, some, longest)
    return classify_ids(model, RaggedArray(ids), batch_tokens=batch_tokens).softmax(-1)


def encode_rows(tokens: EncoderTokenizer, texts: Sequence[str], longest: int) -> list[np.ndarray]:
    return [np.asarray(ids, dtype=np.int32) for ids, _ in frame_texts(tokens, texts, longest)]
