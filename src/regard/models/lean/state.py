"""A decoder-only model in the middle of writing, without its modules: joined weights, and caches written in place."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import CacheError
from regard.models.causal_inputs import must_be_readable, must_fit_context, place_tokens
from regard.models.causal_state import CausalState
from regard.models.lean.cache import SlotCache
from regard.models.lean.joined import JoinedLinear, join_weights
from regard.models.lean.layer import (
    Shape,
    Turn,
    add_linear,
    add_network,
    apply_norm,
    attend_many,
    attend_one,
    multiply,
    project_heads,
)
from regard.models.lean.obstacles import find_obstacle, make_guard
from regard.positions import Rotary


class LeanState:
    """The `DecoderState` that computes what a `CausalState` would, in fewer and larger steps.

    Before every call it looks whether it still may (`obstacles.py`); where not, it hands all that it holds to the plain
    state, which goes on. Of a prompt only the last position goes through the head.
    """

    def __init__(self, plain: CausalState) -> None:
        self.plain, self.model = plain, plain.model
        self.is_plain = False
        self.weights, self.may_go_on = join_weights(self.model), make_guard(self.model)
        attention: Any = self.model.blocks[0].attention
        network: Any = getattr(self.model.blocks[0], "feed_forward", None)
        self.turn: Rotary | None = attention.positions
        self.shape = Shape(
            attention.heads,
            attention.kv_heads,
            attention.head_width,
            attention.head_width**-0.5,
            "" if network is None else network.activation,
            self.weights.embed.new_zeros(()),
        )
        self.left_padding, self.seen, self.expected = plain.left_padding, 0, 0
        self.slots = [SlotCache(cache.window, cache.keep_first) for cache in plain.cache]
        self.angles: tuple[Tensor, ...] = ()

    def __call__(self, ids: Tensor) -> Tensor:
        """Reads the next tokens of every row; the logits of the token after the last of them."""
        if not self._is_lean():
            return self.plain(ids)
        logits = multiply(self._read(ids)[:, None], JoinedLinear(self.weights.head, None))
        return logits[:, 0].contiguous()

    def hidden(self, ids: Tensor) -> Tensor:
        """The same before the head."""
        return self._read(ids) if self._is_lean() else self.plain.hidden(ids)

    @property
    def head(self) -> tuple[Tensor, Tensor | None]:
        """What makes the logits: a weight, and no bias."""
        return self.plain.head

    def take_prompt(self, rows: int, steps: int) -> Tensor:
        """The tokens to read first, where so many rows are to be written in so many steps."""
        prompt = self.plain.take_prompt(rows, steps)
        self.expected = prompt.shape[1] + steps
        return prompt

    def reorder(self, index: Tensor) -> None:
        """Row i becomes what row index[i] was."""
        self.plain.reorder(index)
        if not self.is_plain:
            for slots in self.slots:
                slots.reorder(index, self.shape.kv_heads)
            self.left_padding = self.plain.left_padding

    def crop(self, length: int) -> None:
        """Go back to when `length` positions had been read; a window that has dropped keys cannot."""
        if self.is_plain:
            self.plain.crop(length)
            return
        if any(slots.most is not None and self.seen > slots.most for slots in self.slots):
            raise CacheError(f"crop to {length} tokens came, but a window has dropped some of the {self.seen} seen")
        for slots in self.slots:
            slots.first = slots.first if length >= slots.sinks else None
        self.seen = length

    def attention(self) -> None:
        """There is no source to look at."""

    @property
    def repeatable(self) -> bool:
        """Whether a second pass computes what the first one did."""
        return self.plain.repeatable

    def again(self, written: Sequence[Sequence[int]], begin: int) -> None:
        """One pass over the prompts and what was written after each, by the modules themselves."""
        self.plain.again(written, begin)

    def _is_lean(self) -> bool:
        """Whether the shortcut is still right; if not, the plain state gets everything, once and for all."""
        if not self.is_plain and not self.may_go_on():
            self.is_plain = True
            for slots, cache in zip(self.slots, self.plain.cache):
                slots.fill(cache, self.seen, self.shape.kv_heads)
            self.slots = []
        return not self.is_plain

    @torch.no_grad()
    def _read(self, ids: Tensor) -> Tensor:
        """What the head makes the logits of, (b, m), after these tokens."""
        must_be_readable(self.model, ids, None, None)
        must_fit_context(self.model, self.seen + ids.shape[1])
        self._must_fit(ids)
        new = ids.shape[1]
        sizes = {slots.most for slots in self.slots if slots.most is not None}
        is_alone = self.seen or any(slots.sinks for slots in self.slots)  # each token that lets a key go
        if new > 1 and is_alone and any(self.seen + new > size for size in sizes):
            first = max(1, min(sizes) - self.seen)
            for part in (ids[:, :first], *(ids[:, at : at + 1] for at in range(first, new - 1))):
                self._read_part(part)
            ids = ids[:, -1:]
        return self._read_part(ids)

    def _must_fit(self, ids: Tensor) -> None:
        rows = self.slots[0].keys
        if rows is not None and len(rows) != len(ids) * self.shape.kv_heads:
            raise CacheError(
                f"{len(ids)} rows came, but {len(rows) // self.shape.kv_heads} are being written; "
                "change them by reorder(index)"
            )

    def _read_part(self, ids: Tensor) -> Tensor:
        """The same for tokens that can be read at once."""
        new, total = ids.shape[1], self.seen + ids.shape[1]
        places = place_tokens(self.left_padding, self.seen, new)
        x = F.embedding(ids, self.weights.embed)  # b t m
        if self.model.added is not None:
            x = self.model.added(x, self.seen if places is None else places)
        turn = None if self.turn is None else self._find_turn(places, new)
        self._make_room(len(ids), total)
        seen = self._hide(new) if new == 1 else self._mask(ids)
        last = len(self.slots) - 1
        for number, (layer, slots) in enumerate(zip(self.weights.layers, self.slots)):
            q, k, v = project_heads(apply_norm(x, layer.attention_norm), layer, self.shape, turn)
            hidden = seen.get(slots.most)
            if new == 1:
                self._write(slots, k, v)
                mix = attend_one(q, slots, slots.count(total), self.shape, hidden)
            else:
                keys, values = self._write_many(slots, k, v)
                if number == last:
                    x, q = x[:, -1:], q[:, -1:]
                    hidden = None if hidden is None else hidden[:, :, -1:]
                mix = attend_many(q, keys, values, self.shape, hidden)
            x = add_network(add_linear(x, mix, layer.out), layer, self.shape)
        self.seen = total
        return apply_norm(x[:, -1], self.weights.norm)

    def _find_turn(self, places: Tensor | None, new: int) -> Turn:
        """Cosines and sines of the new tokens, beside (b, t, h, d)."""
        assert self.turn is not None
        stop = self.seen + new
        if not self.angles or self.angles[0].shape[0] < stop:
            room = max(self.expected, 1 << stop.bit_length())
            self.angles = self.turn.compute(torch.arange(room), self.weights.embed.dtype)
        if places is None:
            return Turn(*(table[self.seen : stop, None] for table in self.angles))
        return Turn(*(table[places][:, :, None] for table in self.angles))

    def _make_room(self, rows: int, total: int) -> None:
        """Slots for the tokens that came, and for those that are expected."""
        like = self.weights.embed.new_empty(0, self.shape.head_width)
        wanted = total
        if self.slots[0].keys is None:
            wanted = max(total, self.expected)
        elif total > self.slots[0].keys.shape[1]:
            wanted = max(2 * total, self.expected)
        for slots in self.slots:
            if slots.keys is None or slots.most is None:
                slots.make_room(rows * self.shape.kv_heads, like, self.seen, wanted)

    def _write(self, slots: SlotCache, k: Tensor, v: Tensor) -> None:
        """Put the key and the value of one new token of each row into its slot."""
        assert slots.keys is not None
        assert slots.values is not None
        at = slots.find_slot(self.seen)
        slots.keys[:, at] = k.reshape(-1, self.shape.head_width)
        slots.values[:, at] = v.reshape(-1, self.shape.head_width)
        if slots.sinks and self.turn is not None:
            gap = self.seen + 1 - slots.count(self.seen + 1)
            if slots.first is None and self.seen + 1 >= slots.sinks:
                slots.first = slots.keys[:, : slots.sinks].clone()
            if gap and slots.first is not None:
                slots.keys[:, : slots.sinks] = self.turn.shift(slots.first, gap)

    def _write_many(self, slots: SlotCache, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Put many into their slots; keys and values that these tokens may look at, (b, g, k, d)."""
        assert slots.keys is not None
        assert slots.values is not None
        k, v = k.transpose(1, 2), v.transpose(1, 2)  # b g t d
        rows, total = k.shape[:2], self.seen + k.shape[2]
        keys, values = slots.keys.unflatten(0, rows), slots.values.unflatten(0, rows)
        if slots.most is None or total <= slots.most:
            keys[:, :, self.seen : total], values[:, :, self.seen : total] = k, v
            if slots.sinks and slots.first is None and total >= slots.sinks:
                slots.first = slots.keys[:, : slots.sinks].clone()
            return (k, v) if not self.seen else (keys[:, :, :total], values[:, :, :total])
        at = [slots.find_slot(position) for position in range(total - slots.most, total)]
        keys[:, :, at], values[:, :, at] = k[:, :, -slots.most :], v[:, :, -slots.most :]
        return k, v

    def _hide(self, new: int) -> dict[int | None, Tensor]:
        """By the size of a window, −∞ at padding for one new token of each row, (b · g, h / g, k); empty without."""
        if self.left_padding is None:
            return {}
        hidden: dict[int | None, Tensor] = {}
        group = self.shape.heads // self.shape.kv_heads
        for size in {slots.most for slots in self.slots}:
            slots = next(one for one in self.slots if one.most == size)
            positions = slots.find_positions(self.seen + new)
            is_padding = positions < self.left_padding[:, None]  # b k
            bias = self.weights.embed.new_zeros(is_padding.shape).masked_fill_(is_padding, -torch.inf)
            hidden[size] = bias.repeat_interleave(self.shape.kv_heads, 0)[:, None].expand(-1, group, -1)
        return hidden

    def _mask(self, ids: Tensor) -> dict[int | None, Tensor]:
        """By the size of a window, which keys each of many new tokens may look at, (b, 1, t, k); none: all before."""
        total = self.seen + ids.shape[1]
        masks: dict[int | None, Tensor] = {}
        for size in {slots.most for slots in self.slots}:
            is_short = size is not None and total > size
            if self.left_padding is None and not is_short and not self.seen:
                continue
            queries, keys = torch.arange(self.seen, total)[:, None], torch.arange(total)
            mask = keys <= queries
            if is_short and size is not None:
                mask &= keys > queries - size
            if self.left_padding is not None:
                mask = (mask & (keys >= self.left_padding[:, None, None])) | (keys == queries)  # padding sees itself
            masks[size] = mask[:, None] if mask.dim() == 3 else mask[None, None]
        return masks


class LeanEngine:
    """The loop of torch, as `CausalModel.begin` chooses it."""

    least_size = 0

    def find_obstacle(self, model: Any) -> str | None:
        """Why this model cannot be computed so now."""
        return find_obstacle(model)

    def begin(self, plain: CausalState) -> LeanState:
        """The lean state of the same prompt."""
        return LeanState(plain)


LEAN = LeanEngine()
