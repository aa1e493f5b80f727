"""Texts → vectors by a sentence encoder: sorted by length, so that little is padding, and given back in their order."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.batches import cut
from regard.data.examples import RaggedArray
from regard.errors import ConfigError
from regard.models.sentence_encoder import SentenceEncoder
from regard.tasks.encoder_tokens import EncoderTokenizer
from regard.trace.census.census import eval_mode

BATCH_TOKENS = 1024  # read at once on a CPU, where more leave its cache; elsewhere 16 times as many keep it busy


class TextVectors(NamedTuple):
    """The vectors of texts, one row each in their order, and how many texts were too long to be read whole."""

    vectors: Float[Tensor, "n m"]
    truncated: int


def encode_texts(
    model: SentenceEncoder,
    tokens: EncoderTokenizer,
    texts: Sequence[str],
    *,
    batch_tokens: int | None = None,
    max_length: int | None = None,
    advance: Callable[[int], None] | None = None,
) -> TextVectors:
    """The vector of each text, in float32 on the CPU; the model is in eval mode meanwhile, and nothing has a gradient.

    Of a text of more than `max_length` tokens (what the model takes, unless given; special tokens included) the first
    are read. A batch of r texts, padded to the longest of them, has at most `batch_tokens` tokens, or one text; unless
    given, as many as the device likes.
    `advance` is called with how many more texts are done. An empty text has the vector of its special tokens alone.

    >>> from regard.models import SentenceEncoderConfig, embedded
    >>> tokens = EncoderTokenizer.wrap(embedded.tokenizer("filler"))
    >>> model = SentenceEncoderConfig(vocab_size=4096, width=8, heads=2, layers=1, context=9).build()
    >>> vectors, truncated = encode_texts(model, tokens, ["A cat.", "A dog and a cat sat on the mat there.", "A cat."])
    >>> vectors.shape, bool(vectors[0].equal(vectors[2])), truncated
    (torch.Size([3, 8]), True, 1)
    """
    rows, truncated = frame_texts(tokens, texts, choose_length(model, tokens, max_length))
    return TextVectors(encode_rows(model, rows, batch_tokens=batch_tokens, advance=advance), truncated)


def frame_texts(tokens: EncoderTokenizer, texts: Sequence[str], max_length: int) -> tuple[RaggedArray, int]:
    """The ids of each text between special tokens, at most `max_length` of them, and how many texts had more."""
    most = max_length - len(tokens.before) - len(tokens.after)
    plain = tokens.encode_ids(texts)
    framed = [np.asarray(tokens.frame(ids[:most]).ids, dtype=np.int32) for ids in plain]
    return RaggedArray(framed), sum(len(ids) > most for ids in plain)


def choose_length(model: SentenceEncoder, tokens: EncoderTokenizer, max_length: int | None) -> int:
    """How many tokens of a text are read, special ones included; refused where that is none, or more than it takes."""
    least = len(tokens.before) + len(tokens.after) + 1
    length = model.longest if max_length is None else max_length
    if not least <= length <= model.longest:
        raise ConfigError(
            f"max_length is {length}, but this model reads {least} to {model.longest} tokens, special ones included; "
            "give one of these"
        )
    return length


def encode_rows(
    model: SentenceEncoder,
    rows: RaggedArray,
    *,
    batch_tokens: int | None = None,
    advance: Callable[[int], None] | None = None,
) -> Float[Tensor, "n m"]:
    """The vectors of texts that are ids already, special tokens and all."""
    vectors = torch.empty(len(rows.lengths), model.config.width)
    order = np.argsort(rows.lengths, kind="stable")
    with eval_mode(model) as device, torch.inference_mode():
        size = batch_tokens or BATCH_TOKENS * (1 if device.type == "cpu" else 16)
        for batch in cut(order, [rows.lengths], max(size, int(rows.lengths.max(initial=0)))):
            if not len(batch):
                continue
            lengths = torch.from_numpy(rows.lengths[batch]).to(device)
            ids = torch.from_numpy(rows.pad(batch)).to(device)
            vectors[torch.from_numpy(batch)] = model(ids, lengths=lengths).float().cpu()
            if advance is not None:
                advance(len(batch))
    return vectors
