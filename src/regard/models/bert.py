"""An encoder that reads a text in both directions, with what it was trained to answer (Devlin et al. 2019)."""

from collections.abc import Sequence

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Maskable
from regard.attention.mask import padding
from regard.errors import PositionError, ShapeError
from regard.layers import EncoderBlock
from regard.layers.dropout import Dropout
from regard.layers.norm import make_norm
from regard.models.bert_config import HEADS, BertConfig
from regard.models.bert_heads import BENDS, DenseHead, MaskedWordsHead, PretrainLogits, find_bend
from regard.models.padded import lengths_of, must_be_ids
from regard.models.parts import must_be_sizes
from regard.positions import Learned


class Bert(nn.Module):
    r"""Embed, let every token look at every other, layer by layer, and answer with a head (Devlin et al. 2019, §3).

    Embeddings of token, segment and position are added and normed; the blocks are post-norm. `head` is what comes out:

    - "none": hidden states, (b, t, m)
    - "masked_words": logits of the word at each position, (b, t, n)
    - "next_sentence": whether the second text follows the first, (b, 2)
    - "pretrain": both of them, as `PretrainLogits`
    - "classify": classes of the whole text, (b, labels); "tags": of every token, (b, t, labels)
    - "span": where an answer starts and ends, (b, t, 2)
    - "discriminate": whether each token was replaced, (b, t) (ELECTRA, Clark et al. 2020, §2)

    RoBERTa (Liu et al. 2019), ELECTRA and DistilBERT are fields of its `config`, a `BertConfig`. `transformers` with
    the same weights gives the same numbers.

    Id `pad` fills up short texts on the right, and nobody looks at it; `lengths` say it otherwise.

    >>> import torch
    >>> model = Bert(BertConfig(vocab_size=11, width=8, heads=2, layers=1, head="masked_words")).eval()
    >>> ids = torch.tensor([[2, 4, 3, 5], [2, 3, 0, 0]])
    >>> model(ids).shape, model.hidden(ids).shape
    (torch.Size([2, 4, 11]), torch.Size([2, 4, 8]))
    >>> torch.allclose(model(ids)[1, :2], model(ids[1:, :2])[0], atol=1e-6)
    True
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        must_be_sizes(
            vocab_size=config.vocab_size, width=config.width, heads=config.heads, layers=config.layers,
            context=config.context, labels=config.labels,
        )  # fmt: skip
        if config.head not in HEADS:
            raise ValueError(f"head is {config.head!r}; choose one of {', '.join(map(repr, HEADS))}")
        self.config = config
        embed_width = config.width if config.embed_width is None else config.embed_width
        self.embed = nn.Embedding(config.vocab_size, embed_width)
        self.types = nn.Embedding(config.token_types, embed_width) if config.token_types else None
        self.added = Learned(config.context, embed_width)
        self.embed_norm = make_norm("layer", embed_width, eps=config.norm_eps)
        self.project = nn.Linear(embed_width, config.width) if embed_width != config.width else None
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(EncoderBlock(config.block) for _ in range(config.layers))
        find_bend(config.pool_activation)
        self.pooler = nn.Linear(config.width, config.width) if config.has_pooler else None
        self.words = self._make_words(embed_width) if config.head in ("masked_words", "pretrain") else None
        self.order = nn.Linear(config.width, 2) if config.head in ("next_sentence", "pretrain") else None
        self.classifier = self._make_classifier() if config.head in ("classify", "tags") else None
        self.span = nn.Linear(config.width, 2) if config.head == "span" else None
        self.discriminator = (
            DenseHead(config.width, 1, activation=config.head_activation) if config.head == "discriminate" else None
        )
        self.reset_parameters()

    def _make_words(self, embed_width: int) -> MaskedWordsHead:
        one = self.config
        return MaskedWordsHead(
            one.width, embed_width, one.vocab_size,
            activation=one.head_activation, norm_eps=one.norm_eps, tied=one.tied,
        )  # fmt: skip

    def _make_classifier(self) -> nn.Linear | DenseHead:
        one = self.config
        if one.head == "classify" and one.head_dense:
            return DenseHead(one.width, one.labels, activation=one.pool_activation, dropout=one.dropout)
        return nn.Linear(one.width, one.labels)

    def reset_parameters(self) -> None:
        """Draws the weights anew, normal with deviation 0.02; biases are 0, norms 1 (Devlin et al. 2019)."""
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.LayerNorm | Learned):
                module.reset_parameters()

    def forward(
        self,
        ids: Tensor,
        token_types: Tensor | None = None,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        mask: Maskable | None = None,
    ) -> Tensor | PretrainLogits:
        """What the head answers to `ids` (b, t).

        `token_types` (b, t) say of which text each token is, 0 unless given. `lengths` are the tokens of each row
        before its padding; unless given, those before id `pad`. A `mask` is all there is, in place of both.
        """
        return self.apply_head(self.hidden(ids, token_types, lengths=lengths, mask=mask))

    def hidden(
        self,
        ids: Tensor,
        token_types: Tensor | None = None,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        mask: Maskable | None = None,
    ) -> Float[Tensor, "b t m"]:
        """The same before the head: what the last block gave at each position."""
        self._check(ids, token_types)
        if mask is None:
            lengths = lengths_of(ids, self.config.pad, "input") if lengths is None else lengths
            mask = None if lengths is None else padding(lengths)  # one for all layers, which then draw it once
        x = self._embed(ids, token_types)
        for block in self.blocks:
            x = block(x, mask=mask)
        return x

    def apply_head(self, hidden: Float[Tensor, "*b m"]) -> Tensor | PretrainLogits:
        """What the head makes of hidden states; "masked_words" also of some of them, (…, m), to save the others."""
        if self.words is not None:
            words = self.words(hidden, self.embed.weight)
            return words if self.order is None else PretrainLogits(words, self.order(self.pool(hidden)))
        if self.order is not None:
            return self.order(self.pool(hidden))
        if self.classifier is not None:
            if self.config.head == "classify":
                hidden = hidden[:, 0] if self.config.head_dense else self.pool(hidden)
            return self.classifier(self.dropout(hidden))
        if self.discriminator is not None:
            return self.discriminator(hidden).squeeze(-1)
        return hidden if self.span is None else self.span(hidden)

    def pool(self, hidden: Float[Tensor, "b t m"]) -> Float[Tensor, "b m"]:
        """The first token's state through the pooler, (b, m): $\\tanh(x_0 W + b)$."""
        if self.pooler is None:
            raise ShapeError("this model has no pooler; make it with pooler=True, or take hidden[:, 0]")
        return BENDS[self.config.pool_activation](self.pooler(hidden[:, 0]))

    @property
    def gives_states(self) -> bool:
        """Whether what comes out are hidden states, and no logits."""
        return self.config.head == "none"

    @property
    def longest(self) -> int:
        """How many tokens it can read."""
        return self.config.context - (self.config.pad + 1 if self.config.after_pad else 0)

    def _embed(self, ids: Int[Tensor, "b t"], token_types: Tensor | None) -> Float[Tensor, "b t m"]:
        x = self.embed(ids)
        if self.types is not None:
            x = x + (self.types.weight[0] if token_types is None else self.types(token_types))
        x = self.dropout(self.embed_norm(self.added(x, self._positions(ids))))  # b t e
        return x if self.project is None else self.project(x)

    def _positions(self, ids: Int[Tensor, "b t"]) -> Int[Tensor, "b t"] | None:
        """Where each token stands; None where that is its place in the row."""
        if not self.config.after_pad:
            return None
        tokens = ids != self.config.pad
        return tokens.cumsum(1) * tokens + self.config.pad

    def _check(self, ids: Tensor, token_types: Tensor | None) -> None:
        must_be_ids("input", ids, self.config.vocab_size)
        if ids.shape[1] > self.longest:
            raise PositionError(
                f"{ids.shape[1]} tokens came, but this model reads at most {self.longest}; shorten the input"
            )
        if token_types is not None:
            if self.types is None:
                raise ShapeError("token types came, but this model tells no texts apart; leave token_types out")
            must_be_ids("token types", token_types, self.config.token_types)
            if token_types.shape != ids.shape:
                raise ShapeError(
                    f"token types of shape {tuple(token_types.shape)} came for ids of shape {tuple(ids.shape)}; "
                    "give one for each token"
                )

    def extra_repr(self) -> str:
        one = self.config
        return f"vocab_size={one.vocab_size}, width={one.width}, context={one.context}, head={one.head!r}"
