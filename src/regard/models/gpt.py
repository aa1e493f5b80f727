"""A decoder-only model: tokens in, and at each position the logits of the next one (Radford et al. 2019)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from regard.attention.attend import Maskable
from regard.attention.mask import causal
from regard.attention.score.bias import Bias
from regard.eager import readable
from regard.errors import CacheError, DtypeError, PositionError, ShapeError
from regard.layers import EncoderBlock, KeyValueCache, MultiHead, Residual
from regard.layers.dropout import Dropout
from regard.layers.norm import make_norm
from regard.models.config import ModelConfig
from regard.models.parts import attention_positions, input_positions, must_be_positions, must_be_sizes
from regard.positions import Learned, Rotary, Sinusoid

POSITIONS = ("learned", "sinusoid", "rotary", "alibi", "none")


class GPT(nn.Module):
    r"""Embed, look back layer by layer, and say how likely each token is to come next (Radford et al. 2019, §2.3).

    Every block is $x + \mathrm{attend}(\mathrm{norm}(x))$, then the same with a feed-forward network of `hidden`
    channels (4 · width unless given; with 0 the model is attention alone, Elhage et al. 2021); a last norm stands
    before the head. `positions` is "learned" (GPT-2), "sinusoid", "rotary" (Llama), "alibi" or "none"; a learned
    table ends at `context`, the others know every position. `tied` uses the embeddings as the head. `kv_heads`,
    `norm`, `activation`, `bias` and `dropout` are those of `EncoderBlock`. `transformers`' GPT-2 with the same
    weights gives the same logits.

    >>> import torch
    >>> model = GPT(vocabulary=10, width=8, heads=2, layers=2, context=16).eval()
    >>> ids = torch.tensor([[3, 1, 4]])
    >>> model(ids).shape
    torch.Size([1, 3, 10])
    >>> model.generate(ids, steps=5).shape
    torch.Size([1, 8])
    """

    head: nn.Linear | None
    added: Learned | Sinusoid | None

    def __init__(
        self,
        vocabulary: int,
        width: int,
        heads: int,
        layers: int,
        context: int,
        *,
        positions: str = "learned",
        kv_heads: int | None = None,
        hidden: int | None = None,
        activation: str = "gelu",
        norm: str = "layer",
        dropout: float = 0.0,
        bias: bool = True,
        tied: bool = True,
    ) -> None:
        super().__init__()
        must_be_sizes(vocabulary=vocabulary, width=width, layers=layers, context=context)
        must_be_positions(positions, POSITIONS)
        self.vocabulary, self.width, self.context = vocabulary, width, context
        self.embed = nn.Embedding(vocabulary, width)
        self.added = input_positions(positions, context, width)
        self.dropout = Dropout(dropout)
        inside = attention_positions(positions, width, heads)
        hidden = 4 * width if hidden is None else hidden
        self.blocks = nn.ModuleList(
            EncoderBlock(
                width,
                heads,
                hidden,
                kv_heads=kv_heads,
                dropout=dropout,
                order="pre",
                norm=norm,
                activation=activation,
                positions=inside,
                bias=bias,
            )
            if hidden
            else AttentionBlock(
                width, heads, kv_heads=kv_heads, dropout=dropout, norm=norm, positions=inside, bias=bias
            )
            for _ in range(layers)
        )
        self.norm = make_norm(norm, width, bias=bias)
        self.head = None if tied else nn.Linear(width, vocabulary, bias=False)
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
        """The logits of the token after each of `ids` (b, t), as (b, t, vocabulary).

        With a `cache`, one `KeyValueCache` per layer as `make_cache()` gives them, ids are what comes after all that
        the cache has seen.
        """
        self._check(ids, cache)
        x = self.embed(ids)  # b t m
        if self.added is not None:
            x = self.added(x, 0 if cache is None else cache[0].seen)
        x = self.dropout(x)
        for i, block in enumerate(self.blocks):
            x = block(x, mask=causal(), cache=None if cache is None else cache[i])
        x = self.norm(x)
        return F.linear(x, self.embed.weight) if self.head is None else self.head(x)

    def make_cache(self, capacity: int | None = None) -> list[KeyValueCache]:
        """Empty caches, one per layer."""
        return [KeyValueCache(capacity=capacity) for _ in self.blocks]

    @torch.no_grad()
    def generate(
        self, ids: Tensor, steps: int, *, temperature: float | int = 0, generator: Generator | None = None
    ) -> Int[Tensor, "b t"]:
        """`ids` (b, t) followed by `steps` more tokens, each the likeliest, or drawn where `temperature` is above 0.

        Each token is read once, with a cache; the last one is not read at all. Drawing divides the logits by the
        temperature, and takes its random numbers from `generator`, or torch's own. Call `eval()` first: a model that
        is still training drops out here too.
        """
        self._check(ids, None)
        if steps < 0 or temperature < 0:
            raise ValueError(f"steps={steps} and temperature={temperature} came; give 0 or more of each")
        if not ids.shape[1]:
            raise ShapeError("there is no token to begin with; give ids of shape (b, t) with t of 1 or more")
        last = ids.shape[1] + steps - 1  # is not read
        if isinstance(self.added, Learned) and steps and last > self.context:
            raise PositionError(
                f"{ids.shape[1]} tokens and {steps} steps came, but this model reads at most {self.context}; "
                f"ask for at most {max(0, self.context + 1 - ids.shape[1])} steps"
            )
        cache, told = self.make_cache(), [ids]
        for _ in range(steps):
            logits = self(told[-1], cache)[:, -1]  # b n
            told.append(choose(logits, temperature, generator).to(ids.dtype))
        return torch.cat(told, 1)

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
            if low < 0 or high >= self.vocabulary:
                raise ShapeError(
                    f"an id is {low if low < 0 else high}, but this model knows {self.vocabulary} tokens; "
                    f"give ids from 0 to {self.vocabulary - 1}"
                )
        seen = 0 if cache is None else cache[0].seen
        if isinstance(self.added, Learned) and seen + ids.shape[1] > self.context:
            raise PositionError(
                f"{seen + ids.shape[1]} tokens came, but this model reads at most {self.context}; shorten the input"
            )

    def extra_repr(self) -> str:
        return f"vocabulary={self.vocabulary}, width={self.width}, context={self.context}, tied={self.head is None}"


class AttentionBlock(nn.Module):
    """`EncoderBlock` in pre-norm order without its feed-forward half: x plus what it attended to."""

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        kv_heads: int | None,
        dropout: float,
        norm: str,
        positions: Rotary | Bias | None,
        bias: bool,
    ) -> None:
        super().__init__()
        self.attention = MultiHead(width, heads, kv_heads=kv_heads, bias=bias, positions=positions, dropout=dropout)
        self.around_attention = Residual(width, "pre", norm, dropout, bias=bias)

    def forward(
        self, x: Float[Tensor, "*b t m"], *, mask: Maskable | None = None, cache: KeyValueCache | None = None
    ) -> Float[Tensor, "*b t m"]:
        return self.around_attention(x, lambda y: self.attention(y, mask=mask, cache=cache))


def choose(logits: Float[Tensor, "b n"], temperature: float | int, generator: Generator | None) -> Int[Tensor, "b 1"]:
    """One token per row: the likeliest, or one drawn from softmax(logits / temperature)."""
    if not temperature:
        return logits.argmax(-1, keepdim=True)
    return torch.multinomial((logits.float() / temperature).softmax(-1), 1, generator=generator)


@dataclass(frozen=True)
class GPTConfig(ModelConfig):
    """The sizes of a `GPT`, as they stand in a manifest.

    >>> GPTConfig(vocabulary=10, width=8, heads=2, layers=1, context=16, hidden=0).build().blocks[0].attention
    MultiHead(
      8, heads=2, head_width=4, dropout=0.0
      ...
    """

    vocabulary: int  # how many tokens there are
    width: int  # channels of a token
    heads: int  # heads of a layer
    layers: int  # blocks
    context: int  # how many tokens it is made to read
    positions: str = "learned"  # how it knows where a token stands: "learned", "sinusoid", "rotary", "alibi", "none"
    kv_heads: int | None = None  # key heads of a layer; as many as heads unless given
    hidden: int | None = None  # channels of the feed-forward network; 4 · width unless given, 0 leaves it away
    activation: str = "gelu"  # what bends them: "relu", "gelu", "swiglu"
    norm: str = "layer"  # "layer" or "rms"
    dropout: float = 0.0  # share dropped in training
    bias: bool = True  # whether projections and norms add one
    tied: bool = True  # whether the embeddings are the head, too

    def build(self) -> GPT:
        """A model of these sizes with random weights."""
        return GPT(
            self.vocabulary,
            self.width,
            self.heads,
            self.layers,
            self.context,
            positions=self.positions,
            kv_heads=self.kv_heads,
            hidden=self.hidden,
            activation=self.activation,
            norm=self.norm,
            dropout=self.dropout,
            bias=self.bias,
            tied=self.tied,
        )
