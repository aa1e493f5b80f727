"""The hyper-parameters of an encoder: BERT, and as fields RoBERTa, ELECTRA and DistilBERT."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.layers import BlockConfig
from regard.models.config import ModelConfig
from regard.models.parts import choose_hidden

if TYPE_CHECKING:
    from regard.models.bert import Bert

HEADS = ("none", "masked_words", "next_sentence", "pretrain", "classify", "tags", "span", "discriminate")


@dataclass(frozen=True)
class BertConfig(ModelConfig):
    """The sizes of a `Bert`, and which of its heads it has, as they stand in a manifest.

    >>> BertConfig(vocab_size=11, width=8, heads=2, layers=1, head="classify", labels=3).build().classifier
    Linear(in_features=8, out_features=3, bias=True)
    """

    vocab_size: int  # how many tokens there are
    width: int  # channels of a token
    heads: int  # heads of a layer
    layers: int  # blocks
    context: int = 512  # rows of the table of positions
    hidden: int | None = None  # channels of the feed-forward network; 4 · width unless given
    embed_width: int | None = None  # channels of the embeddings, then projected (ELECTRA); the width unless given
    token_types: int = 2  # how many sorts of segments there are: first text, second text; 0: none (DistilBERT)
    activation: str = "gelu"  # what bends the feed-forward network: "relu", "gelu", "gelu_tanh"
    norm_eps: float = 1e-12  # what norms add before the root
    dropout: float = 0.0  # share dropped in training
    pad: int = 0  # the id that fills up short texts
    after_pad: bool = False  # whether positions count the tokens that are no padding, from pad + 1 on (RoBERTa)
    head: str = "none"  # what it answers: see `Bert`
    labels: int = 2  # how many classes there are ("classify", "tags")
    tied: bool = True  # whether the embeddings are the head of the masked words, too
    pooler: bool = False  # whether it has a pooler even where its head needs none
    head_dense: bool = False  # whether "classify" has a layer of its own in place of the pooler (RoBERTa, ELECTRA)
    head_activation: str = "gelu"  # of "masked_words" and "discriminate"
    pool_activation: str = "tanh"  # of the pooler, or of the layer in its place: "tanh", "gelu", "relu"

    @property
    def block(self) -> BlockConfig:
        """The sizes of each block."""
        return BlockConfig(
            self.width,
            self.heads,
            choose_hidden(self.width, self.hidden),
            dropout=self.dropout,
            order="post",
            norm_eps=self.norm_eps,
            activation=self.activation,
        )

    @property
    def has_pooler(self) -> bool:
        """Whether the first token's state is pooled."""
        pooled = self.head in ("next_sentence", "pretrain") or (self.head == "classify" and not self.head_dense)
        return self.pooler or pooled

    def build(self) -> "Bert":
        """A model of these sizes with random weights."""
        from regard.models.bert import Bert

        return Bert(self)
