"""An encoder–decoder in the middle of writing, without the modules of its decoder."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import CacheError
from regard.models.lean.beam_cache import EVEN, BeamCache
from regard.models.lean.decoder_weights import JoinedCross, join_decoder
from regard.models.lean.layer import (
    Shape,
    Turn,
    add_linear,
    add_network,
    apply_norm,
    attend_beams,
    multiply,
    norm_after,
    norm_before,
    project_heads,
)
from regard.models.lean.obstacles import find_translator_obstacle, make_guard
from regard.models.translator_state import TranslatorState
from regard.positions import Learned, Rotary, Sinusoid


class LeanTranslatorState(TranslatorState):
    """The `TranslatorState` that computes what its model would, in fewer and larger steps.

    Before every call it looks whether it still may (`obstacles.py`); where not, it hands the keys and values that were
    written to the caches of the modules, which go on.
    """

    def __init__(self, plain: TranslatorState) -> None:
        super().__init__(plain.model, plain.source, plain.memory, plain.caches, plain.mask, plain.lengths)
        self.is_plain = False
        self.weights, model = join_decoder(self.model), self.model
        tables = (model.source_embed if model.target_embed is None else model.target_embed, model.head)
        self.may_go_on = make_guard(model, model.decoder, *(one for one in tables if one is not None))
        block: Any = self.model.decoder.blocks[0]
        attention = block.self_attention
        embed = self.weights.embed
        self.shape = Shape(
            attention.heads,
            attention.kv_heads,
            attention.head_width,
            attention.head_width**-0.5,
            block.feed_forward.activation,
            embed.new_zeros(()),
            block.around_self_attention.order == "post",
        )
        self.turn: Rotary | None = attention.positions
        self.tables: tuple[Tensor, ...] = ()  # a row per position: cosines and sines, or waves
        self.own = BeamCache(
            len(self.rows), len(self.weights.layers), attention.heads, embed.new_empty(0, attention.head_width)
        )
        self.across: list[tuple[Tensor, Tensor]] = []  # of the sources: keys (e · h, d, s), values (e · h, s, d)
        self.hidden_source: Tensor | None = None  # −∞ at the padding of the sources, (e · h, 1, s)
        self.looked_at: Tensor | None = None  # the weights of the last layer in the last step, (e · h, w, s)

    def __call__(self, ids: Tensor) -> Tensor:
        """Reads the next tokens of every row; the logits of the token after the last of them."""
        hidden = self.hidden(ids)
        if self.is_plain:
            return F.linear(hidden, *self.head)
        return multiply(hidden[:, None], self.weights.head)[:, 0].contiguous()

    def hidden(self, ids: Tensor) -> Tensor:
        """The same before the head."""
        if not self._is_lean():
            self.looked_at = None
            return super().hidden(ids)
        if ids.shape[0] != self.own.rows:
            raise CacheError(
                f"{ids.shape[0]} rows came, but {self.own.rows} are being written; change them by reorder(index)"
            )
        for at in range(ids.shape[1] - 1):
            self._read(ids[:, at : at + 1])
        return self._read(ids[:, -1:])

    def reorder(self, index: Tensor) -> None:
        """Row i becomes what row index[i] was."""
        if not len(index):
            self._hand_over()
        super().reorder(index)
        if not self.is_plain:
            self.own.reorder(index, len(self.rows) // max(1, len(self.held)))

    def take(self, entries: Tensor) -> None:
        """Hold these entries of the memory, in this order."""
        super().take(entries)
        self.across = []

    def attention(self) -> Tensor | None:
        """Where the last step looked in the source: the mean over the heads of the last layer; None where nowhere."""
        if self.looked_at is None:
            return super().attention()
        size = self.memory.shape[1]
        last = self.looked_at[..., :size].unflatten(0, (-1, self.shape.heads)).mean(1).flatten(0, 1)  # b s
        return last if self.since is None else last[self.since]

    def _is_lean(self) -> bool:
        """Whether the shortcut is still right; if not, the modules get everything, once and for all."""
        if not self.is_plain and not self.may_go_on():
            self._hand_over()
        return not self.is_plain

    def _hand_over(self) -> None:
        """Give the modules the keys and values that were written; they go on from here."""
        if self.own.seen and not self.is_plain:
            for layer, (own, _) in enumerate(self.caches):
                own.append(*self.own.find_rows(layer))
        self.is_plain = True
        self.own.clear()

    @torch.no_grad()
    def _read(self, ids: Tensor) -> Tensor:
        """What the head makes the logits of, (b, m), after one token of each row."""
        x = self._embed(ids)  # b 1 m
        turn = None if self.turn is None else self._find_turn()
        if not self.across:
            self._project_sources()
        hidden = self.own.add_slots()
        weights: Tensor | None = None
        for number, ((own, cross), source) in enumerate(zip(self.weights.layers, self.across)):
            q, k, v = project_heads(norm_before(x, own.attention_norm, self.shape), own, self.shape, turn)
            mix, _ = attend_beams(q, *self.own.write(number, k, v), self.shape, hidden)
            x = norm_after(add_linear(x, mix, own.out), own.attention_norm, self.shape)
            mix, weights = attend_beams(self._ask(x, cross), *source, self.shape, self.hidden_source)
            x = norm_after(add_linear(x, mix, cross.out), cross.norm, self.shape)
            x = add_network(x, own, self.shape)
        self.looked_at, self.since = weights, None
        return x[:, 0] if self.weights.norm is None else apply_norm(x[:, 0], self.weights.norm)

    def _embed(self, ids: Tensor) -> Tensor:
        """The embedding of the next token of each row, with its position."""
        table, added, seen = self.weights.embed, self.model.decoder.added, self.own.seen
        x, scale = F.embedding(ids, table), math.sqrt(table.shape[-1])
        if isinstance(added, Learned):
            return added(x * scale, seen)
        if isinstance(added, Sinusoid):
            return torch.add(self._find_rows(added, seen)[0], x, alpha=scale)
        return x * scale

    def _find_turn(self) -> Turn:
        """Cosines and sines of the next token."""
        assert self.turn is not None
        return Turn(*self._find_rows(self.turn, self.own.seen))

    def _find_rows(self, positions: Rotary | Sinusoid, at: int) -> list[Tensor]:
        """What is computed of one position, (1, c) each."""
        if not self.tables or len(self.tables[0]) <= at:
            self.tables = positions.compute(torch.arange(max(64, 2 * at)), self.weights.embed.dtype)
        return [table[at : at + 1] for table in self.tables]

    def _ask(self, x: Tensor, cross: JoinedCross) -> Tensor:
        """The queries for the sources, (b, 1, h, d)."""
        q = multiply(norm_before(x, cross.norm, self.shape), cross.q).view(
            -1, 1, self.shape.heads, self.shape.head_width
        )
        return q if cross.q_norm is None else apply_norm(q, cross.q_norm)

    def _project_sources(self) -> None:
        """Keys and values of the sources as products take them, and what in them is padding: short ones get some."""
        entries, size = self.memory.shape[:2]
        more = (0, 0, 0, max(0, EVEN - size))
        self.across = [
            (F.pad(others.keys, more).flatten(0, 1).mT, F.pad(others.values, more).flatten(0, 1))
            for _, others in self.caches
        ]
        self.hidden_source = None
        if size < EVEN or (self.mask is not None and self.lengths is not None):
            lengths = torch.full((entries,), size) if self.lengths is None else self.lengths
            is_padding = torch.arange(max(size, EVEN)) >= lengths[:, None]  # e s
            bias = self.weights.embed.new_zeros(is_padding.shape).masked_fill_(is_padding, -torch.inf)
            self.hidden_source = bias.repeat_interleave(self.shape.heads, 0)[:, None]


def shorten(plain: TranslatorState) -> TranslatorState:
    """The lean state of the same source where nothing speaks against it, else the one that came."""
    if not len(plain.rows) or find_translator_obstacle(plain.model) is not None:
        return plain
    return LeanTranslatorState(plain)
