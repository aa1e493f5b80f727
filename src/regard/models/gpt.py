"""A decoder-only model whose every part can be chosen: positions, norm, activation, attention alone."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Maskable
from regard.attention.score.bias import Bias
from regard.layers import BlockConfig, EncoderBlock, KeyValueCache
from regard.layers.norm import make_norm
from regard.models.causal import CausalConfig, CausalModel, must_have_sizes
from regard.models.parts import attention_positions, choose_hidden, input_positions, must_be_positions
from regard.positions import Rotary

POSITIONS = ("learned", "sinusoid", "rotary", "alibi", "none")


@dataclass(frozen=True)
class GPTConfig(CausalConfig):
    """The sizes of a `GPT`, as they stand in a manifest.

    >>> GPTConfig(vocab_size=10, width=8, heads=2, layers=1, context=16, hidden=0).build().blocks[0].attention
    MultiHead(
      8, heads=2, head_width=4, dropout=0.0
      ...
    """

    positions: str = "learned"  # how it knows where a token stands: "learned", "sinusoid", "rotary", "alibi", "none"
    kv_heads: int | None = None  # key heads of a layer; as many as heads unless given
    hidden: int | None = None  # channels of the feed-forward network; 4 · width unless given, 0 leaves it away
    activation: str = "gelu"  # what bends them: "relu", "gelu", "gelu_tanh", "swiglu"
    norm: str = "layer"  # "layer" or "rms"
    dropout: float = 0.0  # share dropped in training
    bias: bool = True  # whether projections and norms add one
    tied: bool = True  # whether the embeddings are the head, too
    norm_eps: float | None = None  # what norms add before the root; 1e-5 ("layer") or 1e-6 ("rms") unless given
    rotary_base: float = 10000.0  # of the wavelengths of rotary positions

    @property
    def block(self) -> BlockConfig:
        """The sizes of each block."""
        return BlockConfig(
            self.width,
            self.heads,
            choose_hidden(self.width, self.hidden),
            kv_heads=self.kv_heads,
            dropout=self.dropout,
            order="pre",
            norm=self.norm,
            norm_eps=self.norm_eps,
            activation=self.activation,
            bias=self.bias,
        )

    def build(self) -> "GPT":
        """A model of these sizes with random weights."""
        return GPT(self)


class GPT(CausalModel):
    r"""Embed, look back layer by layer, and say how likely each token is to come next (Radford et al. 2019, §2.3).

    Every block is $x + \mathrm{attend}(\mathrm{norm}(x))$, then the same with a feed-forward network of `hidden`
    channels (4 · width unless given; with 0 the model is attention alone, Elhage et al. 2021); a last norm stands
    before the head. `positions` is "learned" (GPT-2), "sinusoid", "rotary" (Llama), "alibi" or "none"; a learned
    table ends at `context`, the others know every position. `tied` uses the embeddings as the head. All sizes are
    those of its `config`, a `GPTConfig`. What other libraries publish is a `Gpt2` or a `Llama` here.

    >>> import regard, torch
    >>> model = GPT(GPTConfig(vocab_size=10, width=8, heads=2, layers=2, context=16)).eval()
    >>> ids = torch.tensor([[3, 1, 4]])
    >>> model(ids).shape
    torch.Size([1, 3, 10])
    >>> limits = regard.Limits(longest=5, end=None, never=())
    >>> len(regard.greedy(model.begin(ids), 1, limits=limits)[0].ids)
    5
    """

    config: GPTConfig

    def __init__(self, config: GPTConfig) -> None:
        must_have_sizes(config)
        must_be_positions(config.positions, POSITIONS)
        inside = attention_positions(config.positions, config.width, config.heads, config.rotary_base)
        block = EncoderBlock if config.block.hidden else AttentionBlock
        super().__init__(
            config,
            added=input_positions(config.positions, config.context, config.width),
            blocks=(block(config.block, positions=inside) for _ in range(config.layers)),
            norm=make_norm(config.norm, config.width, bias=config.bias, eps=config.norm_eps),
            tied=config.tied,
            dropout=config.dropout,
        )


class AttentionBlock(nn.Module):
    """`EncoderBlock` in pre-norm order without its feed-forward half: x plus what it attended to."""

    def __init__(self, config: BlockConfig, *, positions: Rotary | Bias | None = None) -> None:
        super().__init__()
        self.attention = config.make_attention(positions)
        self.around_attention = config.make_residual()

    def forward(
        self,
        x: Float[Tensor, "*b t m"],
        *,
        mask: Maskable | None = None,
        cache: KeyValueCache | None = None,
        places: Int[Tensor, "*_p t"] | None = None,
    ) -> Float[Tensor, "*b t m"]:
        return self.around_attention(x, lambda y: self.attention(y, mask=mask, cache=cache, places=places))
