"""T5: an encoder–decoder whose attention knows how far apart tokens stand, and nothing else of positions."""

from collections.abc import Iterator
from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.layers import BlockConfig, DecoderBlock, EncoderBlock
from regard.layers.norm import make_norm
from regard.models.config import ModelConfig
from regard.models.encoder_decoder import Decoder, Encoder, EncoderDecoder
from regard.models.parts import choose_hidden, must_be_sizes
from regard.positions import Buckets


@dataclass(frozen=True)
class T5Config(ModelConfig):
    """The sizes of a `T5`, as they stand in a manifest; as they are here, those of the first version.

    >>> T5Config(vocab_size=11, width=8, heads=2, layers=1, hidden=16, head_width=3).build().head_weight.shape
    torch.Size([11, 8])
    """

    vocab_size: int  # how many tokens there are, to read and to write
    width: int  # channels of a token
    heads: int  # heads of a layer
    layers: int  # blocks of the encoder
    decoder_layers: int | None = None  # blocks of the decoder; as many unless given
    hidden: int | None = None  # channels of the feed-forward networks; 4 · width unless given
    head_width: int | None = None  # channels of a head; width / heads unless given
    buckets: int = 32  # how many ranges of distances have a bias of their own
    furthest: int = 128  # the distance from which on all are in one range
    activation: str = "relu"  # of the feed-forward networks: "relu", or "geglu_tanh" (version 1.1)
    norm_eps: float = 1e-6  # what norms add before the root
    tied: bool = True  # whether the embeddings are the head, too (not so in version 1.1)
    scaled: bool = True  # whether hidden states are divided by √width before the head (not so in version 1.1)
    dropout: float = 0.0  # share dropped in training
    pad: int = 0  # the id that fills up short texts
    begin: int = 0  # the id that begins what is written
    end: int = 1  # the id that ends a text

    @property
    def block(self) -> BlockConfig:
        """The sizes of each block."""
        return BlockConfig(
            self.width,
            self.heads,
            choose_hidden(self.width, self.hidden),
            head_width=self.head_width,
            dropout=self.dropout,
            order="pre",
            norm="rms",
            norm_eps=self.norm_eps,
            activation=self.activation,
            bias=False,
            score="dot",
        )

    @property
    def source_vocab_size(self) -> int:
        return self.vocab_size

    @property
    def target_vocab_size(self) -> int:
        return self.vocab_size

    def build(self) -> "T5":
        """A model of these sizes with random weights."""
        return T5(self)


class T5(EncoderDecoder):
    r"""Read a text, and say at each position of another how likely each next token is (Raffel et al. 2020, §2.1).

    Both sides share one table of embeddings. Scores are plain products $q \cdot k$ plus a learned bias for the range in
    which the distance of the two tokens falls (`Buckets`): one table for all blocks of the encoder, and one for those
    of the decoder; attention to the source has none. Norms are RMS norms, nothing adds a bias. All sizes are those of
    its `config`, a `T5Config`. `transformers` with the same weights gives the same logits.

    What is written begins with id `config.begin` and ends with `config.end`; id `config.pad` fills up short sources.

    >>> import regard, torch
    >>> model = T5(T5Config(vocab_size=11, width=8, heads=2, layers=1)).eval()
    >>> source, target = torch.tensor([[5, 6, 1], [7, 1, 0]]), torch.tensor([[0, 4, 9, 8], [0, 3, 2, 2]])
    >>> model(source, target).shape
    torch.Size([2, 4, 11])
    >>> limits = regard.Limits(longest=5, begin=0, end=1, never=(0,))
    >>> len(regard.greedy(model.begin(source), 2, limits=limits))
    2
    """

    config: T5Config

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        decoder_layers = config.layers if config.decoder_layers is None else config.decoder_layers
        must_be_sizes(
            vocab_size=config.vocab_size, width=config.width, heads=config.heads, layers=config.layers,
            decoder_layers=decoder_layers,
        )  # fmt: skip
        self.config = config
        self.source_embed, self.target_embed = nn.Embedding(config.vocab_size, config.width), None
        self.encoder_bias, self.decoder_bias = (
            Buckets(config.heads, buckets=config.buckets, furthest=config.furthest, both_ways=both_ways)
            for both_ways in (True, False)
        )
        encoders = (EncoderBlock(config.block, positions=SharedBias(self.encoder_bias)) for _ in range(config.layers))
        decoders = (DecoderBlock(config.block, positions=SharedBias(self.decoder_bias)) for _ in range(decoder_layers))
        norms = [make_norm("rms", config.width, eps=config.norm_eps) for _ in range(2)]
        self.encoder = Encoder(nn.ModuleList(encoders), None, norms[0], config.dropout, scaled=False)
        self.decoder = Decoder(nn.ModuleList(decoders), None, norms[1], config.dropout, scaled=False)
        self.head = None if config.tied else nn.Linear(config.width, config.vocab_size, bias=False)
        self.head_scale = config.width**-0.5 if config.scaled else 1.0
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew: deviation 1 for embeddings, else 1/√(inputs), for queries less (Raffel et al. 2020).

        Queries have 1/√(inputs · channels of a head), in place of the scale that the scores do without.
        """
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                channels = module.out_features // self.config.heads if name.endswith("to_q") else 1
                nn.init.normal_(module.weight, std=(module.in_features * channels) ** -0.5)
            elif isinstance(module, nn.RMSNorm):
                module.reset_parameters()
        for table, std in (
            (self.source_embed, 1.0),
            (self.head, 1.0),
            (self.encoder_bias.embedding, self.config.width**-0.5),
            (self.decoder_bias.embedding, self.config.width**-0.5),
        ):
            if table is not None:
                nn.init.normal_(table.weight, std=std)

    def extra_repr(self) -> str:
        one = self.config
        return f"{one.vocab_size}, width={one.width}, tied={one.tied}"


class SharedBias:
    """A bias that several layers use and none of them owns: its numbers stand once in the weights of the model."""

    def __init__(self, bias: Buckets) -> None:
        self.bias, self.heads = bias, bias.heads

    def block(
        self, queries: Int[Tensor, " r"], keys: Int[Tensor, " c"], of: Int[Tensor, " g"] | None = None
    ) -> Float[Tensor, "g r c"]:
        """As the bias itself answers."""
        return self.bias.block(queries, keys, of)

    def parameters(self) -> Iterator[nn.Parameter]:
        """What the bias learns, so that `attend` keeps its gradients."""
        yield from self.bias.parameters()
