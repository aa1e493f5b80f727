"""A text as one vector: an encoder, and the mean of what it made of the tokens (Reimers & Gurevych 2019)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.attention.attend import Maskable
from regard.errors import ModelError
from regard.models.bert import Bert
from regard.models.bert_config import BertConfig
from regard.models.padded import lengths_of
from regard.models.pooling import POOLINGS, mark_tokens, must_pool, pool_tokens


@dataclass(frozen=True)
class SentenceEncoderConfig(BertConfig):
    """The sizes of a `SentenceEncoder`: those of its `Bert`, and how its tokens become one vector.

    >>> SentenceEncoderConfig(vocab_size=11, width=8, heads=2, layers=1, pooling="max").build().config.normalize
    True
    """

    pooling: str = "mean"  # "mean" over the tokens, "max" over them, or the first one: "cls"
    normalize: bool = True  # whether vectors have length 1, so that their dot product is the cosine of their angle

    def build(self) -> "SentenceEncoder":
        """A model of these sizes with random weights."""
        return SentenceEncoder(self)


class SentenceEncoder(Bert):
    r"""Texts → vectors, (b, m), near each other where texts mean the same (Reimers & Gurevych 2019, §3).

    With "mean" it is $\sum_t x_t / n$ over the n tokens of a text that are no padding, x being the last hidden states;
    with `normalize` the vector is divided by its length. `sentence-transformers` gives the same vectors (MiniLM).

    >>> import torch
    >>> model = SentenceEncoder(SentenceEncoderConfig(vocab_size=11, width=8, heads=2, layers=1)).eval()
    >>> vectors = model(torch.tensor([[2, 4, 3, 5], [2, 3, 0, 0]]))
    >>> vectors.shape, bool(torch.isclose(vectors[0] @ vectors[0], torch.tensor(1.0)))
    (torch.Size([2, 8]), True)
    """

    config: SentenceEncoderConfig

    def __init__(self, config: SentenceEncoderConfig) -> None:
        must_pool(config.pooling, POOLINGS)
        if config.head != "none":
            raise ModelError(f"head is {config.head!r}, but a sentence encoder pools hidden states; leave head out")
        super().__init__(config)

    def forward(
        self,
        ids: Tensor,
        token_types: Tensor | None = None,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        mask: Maskable | None = None,
    ) -> Float[Tensor, "b m"]:
        """The vector of each row of `ids` (b, t).

        `lengths` are the tokens of each row before its padding, which are pooled; unless given, those before id `pad`.
        `token_types` and `mask` are those of `Bert`.
        """
        hidden = self.hidden(ids, token_types, lengths=lengths, mask=mask)
        lengths = lengths_of(ids, self.config.pad, "input") if lengths is None else lengths
        real = None if lengths is None else mark_tokens(ids, lengths)
        vectors = pool_tokens(hidden, real, pooling=self.config.pooling)
        return F.normalize(vectors, dim=-1) if self.config.normalize else vectors
