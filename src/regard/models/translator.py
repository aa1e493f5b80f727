"""The Transformer as it began: an encoder that reads one text, and a decoder that writes another."""

import math
from dataclasses import dataclass

from torch import nn

from regard.layers import BlockConfig, DecoderBlock, EncoderBlock
from regard.layers.norm import make_norm
from regard.models.config import ModelConfig
from regard.models.encoder_decoder import Decoder, Encoder, EncoderDecoder
from regard.models.parts import (
    attention_positions,
    choose_hidden,
    input_positions,
    must_be_positions,
    must_be_sizes,
    must_share,
)
from regard.positions import Learned

POSITIONS = ("sinusoid", "learned", "rotary", "alibi", "none")


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
            choose_hidden(self.width, self.hidden),
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


class Translator(EncoderDecoder):
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

    def extra_repr(self) -> str:
        one, shared, tied = self.config, self.config.shared, self.config.tied
        return f"{one.source_vocab_size}, {one.target_vocab_size}, width={one.width}, {shared=}, {tied=}"
