"""A decoder-only model: tokens in, and at each position the logits of the next one (Radford et al. 2019)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.attend import Maskable
from regard.attention.mask import causal
from regard.attention.score.bias import Bias
from regard.eager import readable
from regard.errors import CacheError, DtypeError, PositionError, ShapeError
from regard.layers import BlockConfig, EncoderBlock, KeyValueCache, Residual
from regard.layers.dropout import Dropout
from regard.layers.norm import make_norm
from regard.models.config import ModelConfig
from regard.models.decoder_state import DecoderState
from regard.models.parts import attention_positions, input_positions, must_be_positions, must_be_sizes
from regard.positions import Learned, Rotary, Sinusoid

POSITIONS = ("learned", "sinusoid", "rotary", "alibi", "none")


@dataclass(frozen=True)
class GPTConfig(ModelConfig):
    """The sizes of a `GPT`, as they stand in a manifest.

    >>> GPTConfig(vocab_size=10, width=8, heads=2, layers=1, context=16, hidden=0).build().blocks[0].attention
    MultiHead(
      8, heads=2, head_width=4, dropout=0.0
      ...
    """

    vocab_size: int  # how many tokens there are
    width: int  # channels of a token
    heads: int  # heads of a layer
    layers: int  # blocks
    context: int  # how many tokens it is made to read
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
            4 * self.width if self.hidden is None else self.hidden,
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


class GPT(nn.Module):
    r"""Embed, look back layer by layer, and say how likely each token is to come next (Radford et al. 2019, §2.3).

    Every block is $x + \mathrm{attend}(\mathrm{norm}(x))$, then the same with a feed-forward network of `hidden`
    channels (4 · width unless given; with 0 the model is attention alone, Elhage et al. 2021); a last norm stands
    before the head. `positions` is "learned" (GPT-2), "sinusoid", "rotary" (Llama), "alibi" or "none"; a learned
    table ends at `context`, the others know every position. `tied` uses the embeddings as the head. All sizes are
    those of its `config`, a `GPTConfig`. `transformers`' GPT-2 with the same weights gives the same logits.

    `begin` gives what `regard.greedy`, `regard.sample` and `regard.beam` write with.

    >>> import regard, torch
    >>> model = GPT(GPTConfig(vocab_size=10, width=8, heads=2, layers=2, context=16)).eval()
    >>> ids = torch.tensor([[3, 1, 4]])
    >>> model(ids).shape
    torch.Size([1, 3, 10])
    >>> limits = regard.Limits(longest=5, end=None, never=())
    >>> len(regard.greedy(model.begin(ids), 1, limits=limits)[0].ids)
    5
    """

    head: nn.Linear | None
    added: Learned | Sinusoid | None

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        must_be_sizes(vocab_size=config.vocab_size, width=config.width, layers=config.layers, context=config.context)
        must_be_positions(config.positions, POSITIONS)
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.width)
        self.added = input_positions(config.positions, config.context, config.width)
        self.dropout = Dropout(config.dropout)
        inside = attention_positions(config.positions, config.width, config.heads, config.rotary_base)
        block = EncoderBlock if config.block.hidden else AttentionBlock
        self.blocks = nn.ModuleList(block(config.block, positions=inside) for _ in range(config.layers))
        self.norm = make_norm(config.norm, config.width, bias=config.bias, eps=config.norm_eps)
        self.head = None if config.tied else nn.Linear(config.width, config.vocab_size, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew: deviation 0.02, what is added to x less by √(how often) (Radford et al. 2019)."""
        halves = sum(isinstance(module, Residual) for module in self.modules())
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.02 / math.sqrt(halves) if name.endswith("to_out") else 0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            elif isinstance(module, nn.LayerNorm | nn.RMSNorm | Learned):
                module.reset_parameters()

    def forward(self, ids: Tensor, cache: Sequence[KeyValueCache] | None = None) -> Float[Tensor, "b t n"]:
        """The logits of the token after each of `ids` (b, t), as (b, t, vocab_size).

        With a `cache`, one `KeyValueCache` per layer as `make_cache()` gives them, ids are what comes after all that
        the cache has seen.
        """
        return F.linear(self.hidden(ids, cache), self.head_weight)

    def hidden(self, ids: Tensor, cache: Sequence[KeyValueCache] | None = None) -> Float[Tensor, "b t m"]:
        """The same before the head: logits are `hidden @ head_weight.T`."""
        self._check(ids, cache)
        x = self.embed(ids)  # b t m
        if self.added is not None:
            x = self.added(x, 0 if cache is None else cache[0].seen)
        x = self.dropout(x)
        for i, block in enumerate(self.blocks):
            x = block(x, mask=causal(), cache=None if cache is None else cache[i])
        return self.norm(x)

    def begin(self, prompt: Tensor) -> DecoderState:
        """Ready to write after each row of `prompt` (b, t), of which nothing is read yet."""
        from regard.models.gpt_state import GPTState

        self._check(prompt, None)
        return GPTState(self, prompt)

    def make_cache(self, capacity: int | None = None) -> list[KeyValueCache]:
        """Empty caches, one per layer."""
        return [KeyValueCache(capacity=capacity) for _ in self.blocks]

    @property
    def head_weight(self) -> Float[Tensor, "n m"]:
        return self.embed.weight if self.head is None else self.head.weight

    @property
    def head_bias(self) -> Float[Tensor, " n"] | None:
        """None: this head has none."""
        return None

    @property
    def longest(self) -> int | None:
        """How many tokens it can read; None where positions end nowhere."""
        return self.config.context if isinstance(self.added, Learned) else None

    def _check(self, ids: Tensor, cache: Sequence[KeyValueCache] | None) -> None:
        if ids.dtype not in (torch.int64, torch.int32):
            raise DtypeError(f"ids came as {ids.dtype}, wanted whole numbers; convert them with ids.long()")
        if ids.dim() != 2:
            raise ShapeError(f"ids came with shape {tuple(ids.shape)}, wanted (b, t); give one row per sequence")
        if cache is not None and len(cache) != len(self.blocks):
            raise CacheError(
                f"{len(cache)} caches came for {len(self.blocks)} layers; give one each, as model.make_cache() does"
            )
        if ids.numel() and readable(ids):
            low, high = (int(end) for end in ids.aminmax())
            if low < 0 or high >= self.config.vocab_size:
                raise ShapeError(
                    f"an id is {low if low < 0 else high}, but this model knows {self.config.vocab_size} tokens; "
                    f"give ids from 0 to {self.config.vocab_size - 1}"
                )
        tokens = ids.shape[1] + (0 if cache is None else cache[0].seen)
        if self.longest is not None and tokens > self.longest:
            raise PositionError(f"{tokens} tokens came, but this model reads at most {self.longest}; shorten the input")

    def extra_repr(self) -> str:
        sizes = self.config
        return f"vocab_size={sizes.vocab_size}, width={sizes.width}, context={sizes.context}, tied={sizes.tied}"


class AttentionBlock(nn.Module):
    """`EncoderBlock` in pre-norm order without its feed-forward half: x plus what it attended to."""

    def __init__(self, config: BlockConfig, *, positions: Rotary | Bias | None = None) -> None:
        super().__init__()
        self.attention = config.make_attention(positions)
        self.around_attention = config.make_residual()

    def forward(
        self, x: Float[Tensor, "*b t m"], *, mask: Maskable | None = None, cache: KeyValueCache | None = None
    ) -> Float[Tensor, "*b t m"]:
        return self.around_attention(x, lambda y: self.attention(y, mask=mask, cache=cache))
