"""The class of a text that a recurrent network reads: its states, what a learned query takes of them, and logits."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import ShapeError
from regard.layers.dropout import Dropout
from regard.models.config import ModelConfig
from regard.models.padded import lengths_of, must_be_ids
from regard.models.parts import must_be_sizes
from regard.models.pooling import AttentionPooling
from regard.models.recurrent import RecurrentEncoder


@dataclass(frozen=True)
class RecurrentClassifierConfig(ModelConfig):
    """The sizes of a `RecurrentClassifier`, as they stand in a manifest.

    >>> RecurrentClassifierConfig(vocab_size=11, width=8, labels=3).build().classifier
    Linear(in_features=8, out_features=3, bias=True)
    """

    vocab_size: int  # how many tokens there are
    width: int  # channels of a token, and of the states of both directions together
    layers: int = 1  # recurrent layers
    cell: str = "lstm"  # "gru" or "lstm"
    labels: int = 2  # how many classes there are
    context: int = 512  # tokens that are read of a text; the weights would take any number
    dropout: float = 0.0  # share dropped in training
    pad: int = 0  # the id that fills up short texts

    @property
    def pooling(self) -> str:
        """How the tokens become one vector: a learned query looks at their states."""
        return "attention"

    def build(self) -> "RecurrentClassifier":
        """A model of these sizes with random weights."""
        return RecurrentClassifier(self)


class RecurrentClassifier(nn.Module):
    r"""Texts → logits of their classes, (b, labels): a recurrent network reads both ways, and attention pools.

    $h_t$ are the states of both directions side by side, the text is $s = \sum_t w_t h_t$ by `AttentionPooling`, and
    the logits are $W \tanh(W' s + b') + b$ (Yang et al. 2016, §2.2, for one sentence). Padding is not read.

    >>> model = RecurrentClassifier(RecurrentClassifierConfig(vocab_size=11, width=8, labels=3)).eval()
    >>> ids = torch.tensor([[2, 4, 3, 5], [2, 3, 0, 0]])
    >>> logits = model(ids)
    >>> logits.shape, torch.allclose(logits[1], model(ids[1:, :2])[0], atol=1e-6)
    (torch.Size([2, 3]), True)
    """

    def __init__(self, config: RecurrentClassifierConfig) -> None:
        super().__init__()
        must_be_sizes(
            vocab_size=config.vocab_size, width=config.width, layers=config.layers, labels=config.labels,
            context=config.context,
        )  # fmt: skip
        if config.width % 2:
            raise ShapeError(f"width is {config.width}, but two directions have half of it each; give an even width")
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.width)
        nn.init.normal_(self.embed.weight, std=0.1)
        self.encoder = RecurrentEncoder(
            config.width, config.width, cell=config.cell, layers=config.layers, bidirectional=True,
            dropout=config.dropout,
        )  # fmt: skip
        self.dropout = Dropout(config.dropout)
        self.pooling = AttentionPooling(config.width)
        self.dense = nn.Linear(config.width, config.width)
        self.classifier = nn.Linear(config.width, config.labels)

    def forward(self, ids: Tensor, *, lengths: Tensor | Sequence[int] | None = None) -> Float[Tensor, "b n"]:
        """The logits of each row of `ids` (b, t).

        `lengths` are the tokens of each row before its padding; unless given, those before id `pad`.
        """
        lengths = lengths_of(ids, self.config.pad, "input") if lengths is None else lengths
        vectors = self.dropout(self.pooling(self.dropout(self.hidden(ids, lengths=lengths)), lengths))
        return self.classifier(self.dropout(torch.tanh(self.dense(vectors))))

    def hidden(self, ids: Tensor, *, lengths: Tensor | Sequence[int] | None = None) -> Float[Tensor, "b t m"]:
        """The same before the pooling: the states of both directions at each position."""
        must_be_ids("input", ids, self.config.vocab_size)
        if ids.shape[1] > self.longest:
            raise ShapeError(
                f"the input came with {ids.shape[1]} tokens, but this model reads at most {self.longest}; cut it, or "
                "make it with a larger context"
            )
        lengths = lengths_of(ids, self.config.pad, "input") if lengths is None else lengths
        states, _ = self.encoder(ids, self.embed.weight, None if lengths is None else torch.as_tensor(lengths))
        return states

    @property
    def longest(self) -> int:
        """How many tokens it reads."""
        return self.config.context

    @property
    def gives_states(self) -> bool:
        """Whether what comes out are hidden states: here logits do."""
        return False
