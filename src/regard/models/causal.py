"""What decoder-only models share: tokens in, and at each position the logits of the next one (Radford et al. 2018)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.layers import KeyValueCache, Residual
from regard.layers.dropout import Dropout
from regard.models.causal_inputs import CausalMasks, must_be_readable, place_tokens, split_for_gaps
from regard.models.config import ModelConfig
from regard.models.decoder_state import DecoderState
from regard.models.parts import must_be_sizes
from regard.positions import Learned, Rotary, Sinusoid


@dataclass(frozen=True)
class CausalConfig(ModelConfig):
    """The sizes that every decoder-only model has."""

    vocab_size: int  # how many tokens there are
    width: int  # channels of a token
    heads: int  # heads of a layer
    layers: int  # blocks
    context: int  # how many tokens it is made to read


class CausalModel(nn.Module):
    r"""Embed, look back layer by layer, and say how likely each token is to come next.

    Every block is $x + \mathrm{attend}(\mathrm{norm}(x))$, then the same with a feed-forward network; a last norm
    stands before the head, which is the table of embeddings itself without a `head`. `added` are the positions that
    are added to the embeddings, where the model has such. `windows` say for each block how many tokens a token looks
    at, itself among them; None: all before it. `GPT`, `Gpt2` and `Llama` are made of this.

    `begin` gives what `regard.greedy`, `regard.sample` and `regard.beam` write with.
    """

    config: Any
    head: nn.Linear | None
    added: Learned | Sinusoid | None

    def __init__(
        self,
        config: CausalConfig,
        *,
        added: Learned | Sinusoid | None,
        blocks: Iterable[nn.Module],
        norm: nn.Module,
        tied: bool,
        dropout: float = 0.0,
        windows: Sequence[int | None] = (),
    ) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.width)
        self.added = added
        self.dropout = Dropout(dropout)
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm
        self.head = None if tied else nn.Linear(config.width, config.vocab_size, bias=False)
        self.windows = tuple(windows) or (None,) * len(self.blocks)
        self.is_rotary = any(isinstance(module, Rotary) for module in self.modules())
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

    def forward(
        self, ids: Tensor, cache: Sequence[KeyValueCache] | None = None, *, left_padding: Tensor | None = None
    ) -> Float[Tensor, "b t n"]:
        """The logits of the token after each of `ids` (b, t), as (b, t, vocab_size).

        With a `cache`, one `KeyValueCache` per layer as `make_cache()` gives them, ids are what comes after all that
        the cache has seen. `left_padding` (b,) says how many positions at the front of each row are padding, counted
        over the whole text, what the cache has seen included: they are not looked at, and positions count from the
        first token after them, so that a row gives what it gives alone.
        """
        return F.linear(self.hidden(ids, cache, left_padding=left_padding), self.head_weight)

    def hidden(
        self, ids: Tensor, cache: Sequence[KeyValueCache] | None = None, *, left_padding: Tensor | None = None
    ) -> Float[Tensor, "b t m"]:
        """The same before the head: logits are `hidden @ head_weight.T`."""
        must_be_readable(self, ids, cache, left_padding)
        parts = split_for_gaps(ids, cache)
        if len(parts) > 1:
            return torch.cat([self.hidden(part, cache, left_padding=left_padding) for part in parts], 1)
        seen = 0 if cache is None else cache[0].seen
        places = place_tokens(left_padding, seen, ids.shape[1])
        masks = CausalMasks(self.windows, left_padding, seen + ids.shape[1])
        x = self.embed(ids)  # b t m
        if self.added is not None:
            x = self.added(x, seen if places is None else places)
        x = self.dropout(x)
        for i, block in enumerate(self.blocks):
            own = None if cache is None else cache[i]
            x = block(x, mask=masks.at(i, own, ids.shape[1]), cache=own, places=places if self.is_rotary else None)
        return self.norm(x)

    def begin(
        self,
        prompt: Tensor | Sequence[Sequence[int] | Tensor],
        *,
        window: int | None = None,
        sinks: int = 0,
        engine: str | None = None,
    ) -> DecoderState:
        """Ready to write after each row of `prompt`, of which nothing is read yet.

        `prompt` is (b, t), or a list of rows of different lengths, which give what each gives alone. With `window` a
        token looks at itself, at the `window` tokens before it and at the first `sinks` of all, so that a text has no
        end; positions are counted among the keys that are held (Xiao et al. 2023, §3.2).

        `engine` is "plain", the modules themselves, which can be watched and edited; "lean", the same numbers by a
        loop of torch without them; "fast", kernels compiled by numba. None takes the quickest that is right: plain as
        long as anybody watches or edits, in training, and for models that are not made of these layers alone.
        """
        from regard.models.engines import begin_decoding

        return begin_decoding(self, prompt, window=window, sinks=sinks, engine=engine)

    def make_cache(
        self, capacity: int | None = None, *, window: int | None = None, sinks: int = 0
    ) -> list[KeyValueCache]:
        """Empty caches, one per layer; `window` and `sinks` are those of `begin`."""

        def make(own: int | None) -> KeyValueCache:
            kept = [size for size in (window, None if own is None else own - 1) if size is not None]
            if not kept:
                return KeyValueCache(capacity=capacity)
            return KeyValueCache(window=min(kept), keep_first=sinks, close_gap=sinks > 0)

        return [make(own) for own in self.windows]

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

    def extra_repr(self) -> str:
        sizes = self.config
        return f"vocab_size={sizes.vocab_size}, width={sizes.width}, context={sizes.context}, tied={sizes.tied}"


def must_have_sizes(config: CausalConfig) -> CausalConfig:
    """Refuse a config with a size below 1."""
    must_be_sizes(vocab_size=config.vocab_size, width=config.width, layers=config.layers, context=config.context)
    return config
