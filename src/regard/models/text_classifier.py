"""The class of a text: an encoder, one vector for all its tokens, and a logit for each class."""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.attend import Maskable
from regard.errors import ModelError
from regard.models.bert import Bert
from regard.models.bert_config import BertConfig
from regard.models.padded import lengths_of
from regard.models.pooling import POOLINGS, AttentionPooling, mark_tokens, must_pool, pool_tokens

CLASSIFIER_POOLINGS = ("attention", *POOLINGS)


@dataclass(frozen=True)
class TextClassifierConfig(BertConfig):
    """The sizes of a `TextClassifier`: those of its `Bert`, and how its tokens become one vector.

    >>> TextClassifierConfig(vocab_size=11, width=8, heads=2, layers=1, labels=3).build().classifier
    Linear(in_features=8, out_features=3, bias=True)
    """

    pooling: str = "attention"  # what a learned query looks at; or "mean", "max" of the tokens, or the first: "cls"

    def build(self) -> "TextClassifier":
        """A model of these sizes with random weights."""
        return TextClassifier(self)


class TextClassifier(Bert):
    r"""Texts → logits of their classes, (b, labels): embed, self-attention, pool, $W x + b$.

    The blocks are those of `Bert`, so any encoder can be the beginning of it; what is pooled from the tokens,
    `AttentionPooling` or `pool_tokens`, goes through one linear layer (Devlin et al. 2019, §4.1, without its pooler).
    Padding changes nothing.

    >>> import torch
    >>> model = TextClassifier(TextClassifierConfig(vocab_size=11, width=8, heads=2, layers=1, labels=3)).eval()
    >>> ids = torch.tensor([[2, 4, 3, 5], [2, 3, 0, 0]])
    >>> logits = model(ids)
    >>> logits.shape, torch.allclose(logits[1], model(ids[1:, :2])[0], atol=1e-6)
    (torch.Size([2, 3]), True)
    """

    config: TextClassifierConfig
    classifier: nn.Linear

    def __init__(self, config: TextClassifierConfig) -> None:
        must_pool(config.pooling, CLASSIFIER_POOLINGS)
        if config.head != "none":
            raise ModelError(f"head is {config.head!r}, but a text classifier has its own; leave head out")
        super().__init__(config)
        self.pooling = AttentionPooling(config.width) if config.pooling == "attention" else None
        self.classifier = nn.Linear(config.width, config.labels)
        nn.init.normal_(self.classifier.weight, std=0.02)
        nn.init.zeros_(self.classifier.bias)

    def forward(
        self,
        ids: Tensor,
        token_types: Tensor | None = None,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        mask: Maskable | None = None,
    ) -> Float[Tensor, "b n"]:
        """The logits of each row of `ids` (b, t).

        `lengths` are the tokens of each row before its padding, which are pooled; unless given, those before id `pad`.
        `token_types` and `mask` are those of `Bert`.
        """
        lengths = lengths_of(ids, self.config.pad, "input") if lengths is None else lengths
        hidden = self.hidden(ids, token_types, lengths=lengths, mask=mask)
        if self.pooling is not None:
            vectors = self.pooling(hidden, lengths)
        else:
            real = None if lengths is None else mark_tokens(ids, lengths)
            vectors = pool_tokens(hidden, real, pooling=self.config.pooling)
        return self.classifier(self.dropout(vectors))

    @property
    def gives_states(self) -> bool:
        """Whether what comes out are hidden states: here logits do."""
        return False
