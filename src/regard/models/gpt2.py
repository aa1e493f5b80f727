"""GPT-2: learned positions, layer norms before each half, and a tanh in its GELU (Radford et al. 2019)."""

from dataclasses import dataclass

from regard.layers import BlockConfig, EncoderBlock
from regard.layers.norm import make_norm
from regard.models.causal import CausalConfig, CausalModel, must_have_sizes
from regard.models.parts import choose_hidden
from regard.positions import Learned


@dataclass(frozen=True)
class Gpt2Config(CausalConfig):
    """The sizes of a `Gpt2`, as they stand in a manifest.

    >>> Gpt2Config(vocab_size=10, width=8, heads=2, layers=1, context=16).block.hidden
    32
    """

    hidden: int | None = None  # channels of the feed-forward network; 4 · width unless given
    activation: str = "gelu_tanh"  # what bends them: "relu", "gelu", "gelu_tanh"
    norm_eps: float = 1e-5  # what norms add before the root
    tied: bool = True  # whether the embeddings are the head, too
    dropout: float = 0.0  # share dropped in training

    @property
    def block(self) -> BlockConfig:
        """The sizes of each block."""
        return BlockConfig(
            self.width,
            self.heads,
            choose_hidden(self.width, self.hidden),
            dropout=self.dropout,
            order="pre",
            norm_eps=self.norm_eps,
            activation=self.activation,
        )

    def build(self) -> "Gpt2":
        """A model of these sizes with random weights."""
        return Gpt2(self)


class Gpt2(CausalModel):
    """The decoder-only model of Radford et al. 2019, §2.3, with the sizes of its `config`, a `Gpt2Config`.

    `GPT2LMHeadModel` of `transformers` with the same weights gives the same logits; `from_transformers` of
    `regard.models.convert` takes them over.

    >>> import torch
    >>> model = Gpt2(Gpt2Config(vocab_size=10, width=8, heads=2, layers=2, context=16)).eval()
    >>> model(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3, 10])
    """

    config: Gpt2Config

    def __init__(self, config: Gpt2Config) -> None:
        must_have_sizes(config)
        super().__init__(
            config,
            added=Learned(config.context, config.width),
            blocks=(EncoderBlock(config.block) for _ in range(config.layers)),
            norm=make_norm("layer", config.width, eps=config.norm_eps),
            tied=config.tied,
            dropout=config.dropout,
        )
