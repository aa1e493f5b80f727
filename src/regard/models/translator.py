"""The Transformer as it began: an encoder that reads one text, and a decoder that writes another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Maskable
from regard.attention.mask import causal, padding
from regard.layers import BlockConfig, DecoderBlock, EncoderBlock, KeyValueCache
from regard.layers.dropout import Dropout
from regard.layers.norm import make_norm
from regard.models.config import ModelConfig
from regard.models.decoder_state import DecoderState
from regard.models.padded import lengths_of, must_be_ids, must_fit
from regard.models.parts import attention_positions, input_positions, must_be_positions, must_be_sizes, must_share
from regard.positions import Learned, Sinusoid

POSITIONS = ("sinusoid", "learned", "rotary", "alibi", "none")
Caches = Sequence[tuple[KeyValueCache, KeyValueCache]]


@dataclass(frozen=True)
class TranslatorConfig(ModelConfig):
    """The sizes of a `Translator`, as they stand in a manifest.

    >>> TranslatorConfig(11, 13, width=8, heads=2, layers=1).build().head_weight.shape
    torch.Size([13, 8])
    """

    source_vocab_size: int  # how many tokens there are to read
    target_vocab_size: int  # how many there are to write
    width: int  # channels of a token
    heads: int  # heads of a layer
    layers: int  # blocks of the encoder
    decoder_layers: int | None = None  # blocks of the decoder; as many unless given
    hidden: int | None = None  # channels of the feed-forward networks; 4 · width unless given
    order: str = "pre"  # where norms stand: "pre" or "post"
    positions: str = "sinusoid"  # how it knows where a token stands: "sinusoid", "learned", "rotary", "alibi", "none"
    context: int = 512  # how many tokens it is made to read, where positions are learned
    shared: bool = False  # whether both sides have one table of embeddings
    tied: bool = True  # whether the embeddings of the target are the head, too
    attention: str = "scaled dot"  # how a query is compared with a key
    dropout: float = 0.0  # share dropped in training
    norm: str = "layer"  # "layer" or "rms"
    activation: str = "relu"  # what bends the feed-forward networks: "relu", "gelu", "swiglu"
    bias: bool = True  # whether projections and norms add one
    pad: int = 0  # the id that fills up short texts

    @property
    def block(self) -> BlockConfig:
        """The sizes of each block."""
        return BlockConfig(
            self.width,
            self.heads,
            4 * self.width if self.hidden is None else self.hidden,
            dropout=self.dropout,
            order=self.order,
            norm=self.norm,
            activation=self.activation,
            bias=self.bias,
            score=self.attention,
        )

    def build(self) -> "Translator":
        """A model of these sizes with random weights."""
        return Translator(self)


class Translator(nn.Module):
    r"""Read a source, and say at each position of a target how likely each next token is (Vaswani et al. 2017).

    Tokens become $\sqrt{m}$ times their embedding, plus a position; `layers` encoder blocks read the source,
    `decoder_layers` (as many unless given) look back at the target and across at what was read. `order` is "pre",
    with one more norm behind each stack, or "post" as in the paper. `positions` is "sinusoid" (the paper), "learned"
    (up to `context`), "rotary", "alibi" or "none". `shared` uses one table of embeddings for both sides, `tied` the
    embeddings of the target as the head. `attention` names the score: "scaled dot", "dot", "additive", "bilinear",
    "cosine", "gaussian". `hidden` is 4 · width unless given; `norm`, `activation`, `bias` and `dropout` are those of
    the blocks, and `dropout` falls on the embeddings too. All of them stand in its `config`, a `TranslatorConfig`.

    Id `pad` fills up short texts on the right; in the source nobody looks at it. What the model says at padded
    positions of the target means nothing. `nn.Transformer` with the same weights gives the same numbers.

    >>> import torch
    >>> model = Translator(TranslatorConfig(11, 13, width=8, heads=2, layers=1)).eval()
    >>> source, target = torch.tensor([[5, 6, 2], [7, 2, 0]]), torch.tensor([[1, 4, 9, 8], [1, 3, 0, 0]])
    >>> model(source, target).shape
    torch.Size([2, 4, 13])
    >>> steps = model.begin(source)
    >>> torch.allclose(steps(target[:, :1]), model(source, target)[:, 0], atol=1e-6)
    True
    """

    target_embed: nn.Embedding | None
    head: nn.Linear | None

    def __init__(self, config: TranslatorConfig) -> None:
        super().__init__()
        decoder_layers = config.layers if config.decoder_layers is None else config.decoder_layers
        must_be_sizes(
            source_vocab_size=config.source_vocab_size, target_vocab_size=config.target_vocab_size,
            width=config.width, heads=config.heads, layers=config.layers, decoder_layers=decoder_layers,
            context=config.context,
        )  # fmt: skip
        must_share(config.shared, config.source_vocab_size, config.target_vocab_size)
        must_be_positions(config.positions, POSITIONS)
        self.config = config
        self.source_embed = nn.Embedding(config.source_vocab_size, config.width)
        self.target_embed = None if config.shared else nn.Embedding(config.target_vocab_size, config.width)
        inside = attention_positions(config.positions, config.width, config.heads)
        encoders = (EncoderBlock(config.block, positions=inside) for _ in range(config.layers))
        decoders = (DecoderBlock(config.block, positions=inside) for _ in range(decoder_layers))
        added = [input_positions(config.positions, config.context, config.width) for _ in range(2)]
        norms = [
            make_norm(config.norm, config.width, bias=config.bias) if config.order == "pre" else nn.Identity()
            for _ in range(2)
        ]
        self.encoder = Encoder(nn.ModuleList(encoders), added[0], norms[0], config.dropout)
        self.decoder = Decoder(nn.ModuleList(decoders), added[1], norms[1], config.dropout)
        self.head = None if config.tied else nn.Linear(config.width, config.target_vocab_size, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew: Glorot & Bengio 2010 for projections, embeddings with deviation 1/√width."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                # Three that stand side by side are as wide as one of (3 · width, width), which is what they once were.
                gain = math.sqrt(0.5) if name.endswith(("to_q", "to_k", "to_v")) else 1.0
                nn.init.xavier_uniform_(module.weight, gain=gain)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=self.config.width**-0.5)
            elif isinstance(module, nn.LayerNorm | nn.RMSNorm | Learned):
                module.reset_parameters()

    def forward(self, source: Tensor, target: Tensor) -> Float[Tensor, "b t n"]:
        """The logits of the token after each of `target` (b, t), given `source` (b, s): (b, t, target_vocab_size)."""
        return F.linear(self.hidden(source, target), self.head_weight)

    def hidden(self, source: Tensor, target: Tensor) -> Float[Tensor, "b t m"]:
        """The same before the head: logits are `hidden @ head_weight.T`."""
        must_be_ids("target", target, self.config.target_vocab_size)
        must_fit(source, target)
        memory, mask, _ = self._read(source)
        return self.decoder(target, self.target_table, memory, memory_mask=mask)

    def begin(self, source: Tensor) -> DecoderState:
        """The source read once, and nothing written yet: feed it the token that begins a text."""
        from regard.models.translator_state import TranslatorState

        memory, mask, lengths = self._read(source)
        return TranslatorState(self, source, memory, self.decoder.make_caches(memory), mask, lengths)

    @property
    def head_weight(self) -> Float[Tensor, "n m"]:
        return self.target_table if self.head is None else self.head.weight

    @property
    def head_bias(self) -> Float[Tensor, " n"] | None:
        """None: this head has none."""
        return None

    @property
    def target_table(self) -> Float[Tensor, "n m"]:
        """The embeddings of the target."""
        return (self.source_embed if self.target_embed is None else self.target_embed).weight

    def _read(self, source: Tensor) -> tuple[Tensor, Maskable | None, Tensor | None]:
        """What the encoder made of the source, who may be looked at in it, and how long each row is."""
        must_be_ids("source", source, self.config.source_vocab_size)
        lengths = lengths_of(source, self.config.pad)
        mask = None if lengths is None else padding(lengths)  # one for all layers, which then draw it once
        return self.encoder(source, self.source_embed.weight, mask=mask), mask, lengths

    def extra_repr(self) -> str:
        one, shared, tied = self.config, self.config.shared, self.config.tied
        return f"{one.source_vocab_size}, {one.target_vocab_size}, width={one.width}, {shared=}, {tied=}"


class Encoder(nn.Module):
    """Ids → what was read, (b, s, m)."""

    def __init__(
        self, blocks: nn.ModuleList, added: Learned | Sinusoid | None, norm: nn.Module, dropout: float
    ) -> None:
        super().__init__()
        self.blocks, self.added, self.norm = blocks, added, norm
        self.dropout = Dropout(dropout)

    def embed(self, ids: Tensor, table: Tensor, first: int = 0) -> Float[Tensor, "b t m"]:
        """√m times the embedding of each id, at the positions from `first` on."""
        x = F.embedding(ids, table) * math.sqrt(table.shape[-1])
        return self.dropout(x if self.added is None else self.added(x, first))

    def forward(
        self, ids: Int[Tensor, "b s"], table: Float[Tensor, "n m"], *, mask: Maskable | None = None
    ) -> Float[Tensor, "b s m"]:
        x = self.embed(ids, table)
        for block in self.blocks:
            x = block(x, mask=mask)
        return self.norm(x)


class Decoder(Encoder):
    """Ids and what was read → what stands before the head, (b, t, m)."""

    def forward(  # type: ignore[override]
        self,
        ids: Int[Tensor, "b t"],
        table: Float[Tensor, "n m"],
        memory: Float[Tensor, "_b s m"],
        *,
        memory_mask: Maskable | None = None,
        cache: Caches | None = None,
    ) -> Float[Tensor, "b t m"]:
        """With a `cache`, a pair per block, ids are what comes after all that it has seen."""
        x = self.embed(ids, table, 0 if cache is None else cache[0][0].seen)
        mask = causal()  # one for all layers, as above
        for i, block in enumerate(self.blocks):
            x = block(x, memory, mask=mask, memory_mask=memory_mask, cache=None if cache is None else cache[i])
        return self.norm(x)

    def make_caches(self, memory: Float[Tensor, "b s m"]) -> Caches:
        """A pair per block for `forward`, in which the memory is already projected."""
        return [block.make_cache(memory) for block in self.blocks if isinstance(block, DecoderBlock)]
