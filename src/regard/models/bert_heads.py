"""What stands on top of a BERT: its hidden states as logits of words, classes or replaced tokens."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.dropout import Dropout
from regard.layers.feedforward import ACTIVATIONS, GATED
from regard.layers.norm import make_norm

BENDS = {name: bend for name, bend in ACTIVATIONS.items() if name not in GATED} | {"tanh": torch.tanh}


class PretrainLogits(NamedTuple):
    """Both answers of a BERT in pre-training."""

    words: Float[Tensor, "b t n"]  # of the word at each position
    order: Float[Tensor, "b 2"]  # whether the second text follows the first (0), or is any other (1)


class MaskedWordsHead(nn.Module):
    r"""Hidden states → logits of the word at each position: $\mathrm{norm}(\mathrm{bend}(x W + b))\, E^\top + c$.

    E is the table of the embeddings, which comes with each call, or, with `tied=False`, one of its own
    (Devlin et al. 2019, appendix A; the transform is that of the published code).

    >>> head = MaskedWordsHead(8, 6, 11)
    >>> head(torch.ones(2, 3, 8), torch.ones(11, 6)).shape
    torch.Size([2, 3, 11])
    """

    def __init__(
        self,
        width: int,
        embed_width: int,
        vocab_size: int,
        *,
        activation: str = "gelu",
        norm_eps: float = 1e-12,
        tied: bool = True,
    ) -> None:
        super().__init__()
        self.bend = find_bend(activation)
        self.dense = nn.Linear(width, embed_width)
        self.norm = make_norm("layer", embed_width, eps=norm_eps)
        self.out = None if tied else nn.Linear(embed_width, vocab_size, bias=False)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, hidden: Float[Tensor, "*b m"], table: Float[Tensor, "n e"]) -> Float[Tensor, "*b n"]:
        return F.linear(self.transform(hidden), self.choose_table(table), self.bias)

    def transform(self, hidden: Float[Tensor, "*b m"]) -> Float[Tensor, "*b e"]:
        """What is multiplied with the table: a loss may do that without ever holding the logits."""
        return self.norm(BENDS[self.bend](self.dense(hidden)))

    def choose_table(self, table: Float[Tensor, "n e"]) -> Float[Tensor, "n e"]:
        """The table of the embeddings that came, or its own where it has one."""
        return table if self.out is None else self.out.weight


class DenseHead(nn.Module):
    """Hidden states → classes, through one more layer: $\\mathrm{bend}(x W + b)\\, V + c$.

    >>> DenseHead(8, 3, activation="tanh")(torch.ones(2, 8)).shape
    torch.Size([2, 3])
    """

    def __init__(self, width: int, labels: int, *, activation: str, dropout: float = 0.0) -> None:
        super().__init__()
        self.bend = find_bend(activation)
        self.dense, self.out = nn.Linear(width, width), nn.Linear(width, labels)
        self.dropout = Dropout(dropout)

    def forward(self, hidden: Float[Tensor, "*b m"]) -> Float[Tensor, "*b n"]:
        return self.out(self.dropout(BENDS[self.bend](self.dense(hidden))))


def find_bend(activation: str) -> str:
    """The name itself, if there is such an activation."""
    if activation not in BENDS:
        raise ValueError(f"the activation of a head is {activation!r}; choose one of {', '.join(map(repr, BENDS))}")
    return activation
