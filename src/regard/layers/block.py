"""Attention and feed-forward, each with its residual: what encoders and decoders are stacked from."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Maskable
from regard.attention.mask import causal
from regard.attention.score.bias import Bias
from regard.layers.block_config import BlockConfig
from regard.layers.cache import KeyValueCache
from regard.positions import Rotary


class EncoderBlock(nn.Module):
    """Self-attention, then feed-forward; the shape of x stays (Vaswani et al. 2017, §3.1, figure 1 left).

    Without a mask every position sees every other. Given `causal()` and a cache it is the block of a decoder-only
    model (GPT, Llama). `config` lists its sizes; `positions` are those of `MultiHead`. With `order="pre"` the last
    block of a stack wants one more norm behind it. `nn.TransformerEncoderLayer` with the same weights gives the same
    numbers.

    >>> import regard, torch
    >>> block = EncoderBlock(BlockConfig(24, heads=8, hidden=48))
    >>> block(torch.ones(2, 100, 24), mask=regard.padding([3, 2])).shape
    torch.Size([2, 100, 24])
    """

    def __init__(self, config: BlockConfig, *, positions: Rotary | Bias | None = None) -> None:
        super().__init__()
        self.attention = config.make_attention(positions)
        self.feed_forward = config.make_feed_forward()
        self.around_attention, self.around_feed_forward = (config.make_residual() for _ in range(2))

    def forward(
        self,
        x: Float[Tensor, "*b t m"],
        *,
        mask: Maskable | None = None,
        cache: KeyValueCache | None = None,
        places: Int[Tensor, "*_p t"] | None = None,
    ) -> Float[Tensor, "*b t m"]:
        """x after both sublayers; `mask`, `cache` and `places` go to the attention."""
        x = self.around_attention(x, lambda y: self.attention(y, mask=mask, cache=cache, places=places))
        return self.around_feed_forward(x, self.feed_forward)


class DecoderBlock(nn.Module):
    """Self-attention, attention to a memory, then feed-forward (Vaswani et al. 2017, §3.1, figure 1 right).

    `memory` is what an encoder read, of width `memory_width` (the same as x unless given). `config` lists the sizes;
    `positions` are for self-attention alone. `nn.TransformerDecoderLayer` with the same weights gives the same
    numbers under a causal mask.

    >>> import regard, torch
    >>> block = DecoderBlock(BlockConfig(24, heads=8, hidden=48))
    >>> x, memory = torch.ones(2, 7, 24), torch.ones(2, 100, 24)
    >>> block(x, memory, memory_mask=regard.padding([3, 2])).shape
    torch.Size([2, 7, 24])
    """

    def __init__(
        self, config: BlockConfig, *, memory_width: int | None = None, positions: Rotary | Bias | None = None
    ) -> None:
        super().__init__()
        self.self_attention = config.make_attention(positions)
        self.cross_attention = config.make_attention(source_width=memory_width)
        self.feed_forward = config.make_feed_forward()
        self.around_self_attention, self.around_cross_attention, self.around_feed_forward = (
            config.make_residual() for _ in range(3)
        )

    def forward(
        self,
        x: Float[Tensor, "*b t m"],
        memory: Float[Tensor, "*_s k n"],
        *,
        mask: Maskable | None = None,
        memory_mask: Maskable | None = None,
        cache: tuple[KeyValueCache, KeyValueCache] | None = None,
        places: Int[Tensor, "*_p t"] | None = None,
    ) -> Float[Tensor, "*b t m"]:
        """x after the three sublayers.

        `mask` is who sees whom in x, `causal()` where none is given; one that is given is all there is, so write
        `causal() & padding(lengths)`. `memory_mask` is who sees what of the memory. `cache` is a pair: the first
        grows with x, the second holds the memory from the first call on.
        """
        mask = causal() if mask is None else mask
        own, others = (None, None) if cache is None else cache
        x = self.around_self_attention(x, lambda y: self.self_attention(y, mask=mask, cache=own, places=places))
        x = self.around_cross_attention(x, lambda y: self._across(y, memory, memory_mask, others))
        return self.around_feed_forward(x, self.feed_forward)

    def _across(
        self, x: Tensor, memory: Tensor, mask: Maskable | None, cache: KeyValueCache | None
    ) -> Float[Tensor, "*b t m"]:
        """What x finds in the memory. Queries do not see each other, so all rows of one entry ask as one."""
        if x.dim() != 3 or x.shape[0] == memory.shape[0]:
            return self.cross_attention(x, memory, mask=mask, cache=cache)
        together = x.reshape(memory.shape[0], -1, x.shape[-1])
        return self.cross_attention(together, memory, mask=mask, cache=cache).view(x.shape)

    def make_cache(self, memory: Float[Tensor, "*_s k n"]) -> tuple[KeyValueCache, KeyValueCache]:
        """The pair that `forward` takes: an empty one, and one that holds this memory, projected once and for all."""
        others = KeyValueCache()
        others.store(*self.cross_attention._keys_values(memory, memory, 0))
        return KeyValueCache(), others
