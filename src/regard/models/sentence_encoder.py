"""A text as one vector: an encoder, and the mean of what it made of the tokens (Reimers & Gurevych 2019)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.attend import Maskable
from regard.errors import ModelError
from regard.models.bert import Bert
from regard.models.bert_config import BertConfig
from regard.models.padded import lengths_of

POOLINGS = ("mean", "cls", "max")


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
        if config.pooling not in POOLINGS:
            raise ValueError(f"pooling is {config.pooling!r}; choose one of {', '.join(map(repr, POOLINGS))}")
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
        vectors = self.pool_tokens(hidden, None if lengths is None else mark_tokens(ids, lengths))
        return F.normalize(vectors, dim=-1) if self.config.normalize else vectors

    def pool_tokens(
        self, hidden: Float[Tensor, "b t m"], real: Bool[Tensor, "b t"] | None = None
    ) -> Float[Tensor, "b m"]:
        """One vector for each text; `real` are the tokens that are no padding, all unless given."""
        if self.config.pooling == "cls":
            return hidden[:, 0]
        if self.config.pooling == "max":
            return (hidden if real is None else hidden.masked_fill(~real[..., None], -torch.inf)).amax(1)
        if real is None:
            return hidden.mean(1)
        return hidden.masked_fill(~real[..., None], 0).sum(1) / real.sum(1, keepdim=True)


def mark_tokens(ids: Tensor, lengths: Tensor | Sequence[int]) -> Bool[Tensor, "b t"]:
    """True at the first so many tokens of each row."""
    return torch.arange(ids.shape[1], device=ids.device) < torch.as_tensor(lengths, device=ids.device)[:, None]
