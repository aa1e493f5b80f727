"""What models have in common that read one text with an encoder and write another with a decoder."""

import math
from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Maskable
from regard.attention.mask import Mask, causal, padding
from regard.layers import DecoderBlock, KeyValueCache
from regard.layers.dropout import Dropout
from regard.models.decoder_state import DecoderState
from regard.models.padded import lengths_of, must_be_ids, must_fit
from regard.positions import Learned, Sinusoid

Caches = Sequence[tuple[KeyValueCache, KeyValueCache]]


class EncoderDecoder(nn.Module):
    """Two stacks, their embeddings and a head, which a model that extends this makes; what is done with them is here.

    Id `config.pad` fills up short texts on the right; in the source nobody looks at it.
    """

    config: Any
    source_embed: nn.Embedding
    target_embed: nn.Embedding | None  # None: that of the source
    encoder: "Encoder"
    decoder: "Decoder"
    head: nn.Linear | None  # None: the embeddings of the target
    head_scale: float = 1.0  # what the decoder's hidden states are multiplied by before the head

    def forward(self, source: Tensor, target: Tensor) -> Float[Tensor, "b t n"]:
        """The logits of the token after each of `target` (b, t), given `source` (b, s): (b, t, target_vocab_size)."""
        return F.linear(self.hidden(source, target), self.head_weight)

    def hidden(self, source: Tensor, target: Tensor) -> Float[Tensor, "b t m"]:
        """The same before the head: logits are `hidden @ head_weight.T`."""
        must_be_ids("target", target, self.config.target_vocab_size)
        must_fit(source, target)
        memory, mask, _ = self._read(source)
        return self.decode_hidden(target, memory, memory_mask=mask)

    def decode_hidden(
        self, ids: Tensor, memory: Tensor, *, memory_mask: Maskable | None = None, cache: Caches | None = None
    ) -> Float[Tensor, "b t m"]:
        """The same of a source that is read already; with a `cache`, ids are what comes after all that it has seen."""
        hidden = self.decoder(ids, self.target_table, memory, memory_mask=memory_mask, cache=cache)
        return hidden if self.head_scale == 1 else hidden * self.head_scale

    def begin(self, source: Tensor) -> DecoderState:
        """The source read once, and nothing written yet: feed it the token that begins a text."""
        from regard.models.engines import begin_translating
        from regard.models.translator_state import TranslatorState

        memory, mask, lengths = self._read(source)
        return begin_translating(TranslatorState(self, source, memory, self.decoder.make_caches(memory), mask, lengths))

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

    def _read(self, source: Tensor) -> tuple[Tensor, Mask | None, Tensor | None]:
        """What the encoder made of the source, who may be looked at in it, and how long each row is."""
        must_be_ids("source", source, self.config.source_vocab_size)
        lengths = lengths_of(source, self.config.pad)
        mask = None if lengths is None else padding(lengths)  # one for all layers, which then draw it once
        return self.encoder(source, self.source_embed.weight, mask=mask), mask, lengths


class Encoder(nn.Module):
    """Ids → what was read, (b, s, m); with `scaled`, embeddings are multiplied by √m (Vaswani et al. 2017, §3.4)."""

    def __init__(
        self,
        blocks: nn.ModuleList,
        added: Learned | Sinusoid | None,
        norm: nn.Module,
        dropout: float,
        *,
        scaled: bool = True,
    ) -> None:
        super().__init__()
        self.blocks, self.added, self.norm, self.scaled = blocks, added, norm, scaled
        self.dropout = Dropout(dropout)

    def embed(self, ids: Tensor, table: Tensor, first: int = 0) -> Float[Tensor, "b t m"]:
        """The embedding of each id, at the positions from `first` on."""
        x = F.embedding(ids, table)
        x = x * math.sqrt(table.shape[-1]) if self.scaled else x
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
