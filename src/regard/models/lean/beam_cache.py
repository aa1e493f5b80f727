"""Keys and values of texts with several beams, which stay where they were written when beams change places."""

from itertools import pairwise

import torch
from torch import Tensor

LEAST = 32  # steps of several beams that there is room for at once
EVEN = 16  # a softmax over fewer numbers is slow, and products like multiples of it


class BeamCache:
    """Keys and values of all layers, (l, 2, e, h, slots, d), of e groups of w rows that may take each other's place.

    Each step fills one slot per row of its group. When rows change places nothing is copied: `hidden` (e · w, slots) is
    −∞ where a slot holds a token of another text. So the rows of a group ask for the same keys, in one product, which
    costs less than moving the keys of every row at every step. `hidden` is None where each row sees all.
    """

    def __init__(self, rows: int, layers: int, heads: int, like: Tensor) -> None:
        self.groups, self.width = rows, 1
        self.layers, self.heads, self.like = layers, heads, like  # like: of a head's width
        self.slots = self.seen = 0  # how many slots are filled; how many tokens each row has
        self.clean = 0  # behind the slots that are filled there are zeros up to here
        self.memory: Tensor | None = None
        self.keys: tuple[Tensor, ...] = ()  # of every layer, (e · h, d, k)
        self.values: tuple[Tensor, ...] = ()  # of every layer, (e · h, k, d)
        self.newest: tuple[Tensor, ...] = ()  # where the keys of the newest tokens are, and values; (e, h, w, d) each
        self.hidden: Tensor | None = None
        self._arrange()

    @property
    def rows(self) -> int:
        """How many texts are being written."""
        return self.groups * self.width

    def add_slots(self) -> Tensor | None:
        """Room for one more token of each row; which slots each row may not see, (e · h, w, k), or None for all.

        Where there is something to hide, k is rounded up, and the slots behind the last are hidden zeros.
        """
        self.slots, self.seen = self.slots + self.width, self.seen + 1
        room = 0 if self.memory is None else self.memory.shape[-2]
        if self.slots > room:
            self._make_room(max(2 * self.slots, LEAST * self.width if self.width > 1 else EVEN))
        if self.hidden is None:
            self._find_views(self.slots)
            return None
        self.hidden = torch.cat((self.hidden, self.others), 1)
        k = -(-self.slots // EVEN) * EVEN
        if k > self.clean and self.memory is not None:
            self.memory[..., max(self.clean, self.slots - self.width) : k, :] = 0  # what is hidden counts 0 times
            self.clean = k
        self._find_views(k)
        hidden = torch.cat((self.hidden, self.behind[:, : k - self.slots]), 1)
        hidden = hidden.view(self.groups, 1, self.width, k).expand(-1, self.heads, -1, -1)
        return hidden.reshape(-1, self.width, k)

    def write(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Put keys and values (b, 1, h, d) of the new tokens into their slots; `keys` and `values` of the layer."""
        shape = (self.groups, self.width, *k.shape[2:])
        self.newest[2 * layer].copy_(k.view(shape).transpose(1, 2))
        self.newest[2 * layer + 1].copy_(v.view(shape).transpose(1, 2))
        return self.keys[layer], self.values[layer]

    def reorder(self, index: Tensor, width: int) -> None:
        """Row i becomes what row index[i] was; then so many rows at a time form a group, where they come from one."""
        parents = index // self.width
        if width == self.width and torch.equal(parents, self.parents):
            self.hidden = None if self.hidden is None else self.hidden[index]
            return
        grouped = parents.view(-1, width)
        if not bool((grouped == grouped[:, :1]).all()):
            self._separate()
            grouped, width = index[:, None], 1
        self.hidden = None if self.hidden is None else self.hidden[index]
        self._select(grouped[:, 0])
        self.groups, self.width = len(grouped), width
        self._arrange()

    def find_rows(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values of one layer for each row by itself, (b, h, t, d), in the order of time."""
        assert self.memory is not None
        keys, values = self.memory[layer, ..., : self.slots, :]
        if self.hidden is None:
            return keys, values
        own = (self.hidden == 0).nonzero()[:, 1].view(self.rows, self.seen)  # b t
        at = (self.parents[:, None], slice(None), own)
        return keys[at].transpose(1, 2), values[at].transpose(1, 2)

    def clear(self) -> None:
        """Let go of the memory."""
        self.memory = self.hidden = None
        self.keys = self.values = self.newest = ()

    def _separate(self) -> None:
        """A group for each row."""
        if self.hidden is None:
            return
        if self.memory is not None:
            pairs = [torch.stack(self.find_rows(layer)) for layer in range(self.layers)]
            with torch.inference_mode(False):
                self.memory = torch.stack(pairs).clone()
        self.groups, self.width, self.hidden, self.slots, self.clean = self.rows, 1, None, self.seen, 0
        self._arrange()

    def _arrange(self) -> None:
        """What follows from how many rows there are."""
        if self.hidden is None and self.width > 1:
            self.hidden = self.like.new_zeros(self.rows, self.slots)
        with torch.inference_mode(False):
            self.parents = torch.arange(self.groups).repeat_interleave(self.width)  # the group of each row
            block = self.like.new_full((self.width, self.width), -torch.inf).fill_diagonal_(0)
            self.others = block.repeat(self.groups, 1)  # which of the newest slots a row may not see
            self.behind = self.like.new_full((self.rows, EVEN), -torch.inf)

    def _select(self, groups: Tensor) -> None:
        """Keep these groups, in this order. Where some only leave, the others move up: new memory costs more."""
        if self.memory is None or torch.equal(groups, torch.arange(self.groups)):
            return
        kept, held = groups.tolist(), self.memory[..., : self.slots, :]
        if any(one >= other for one, other in pairwise(kept)):
            with torch.inference_mode(False):
                self.memory = self.memory.index_select(2, groups)
            return
        for at, group in enumerate(kept):
            if at != group:
                held[:, :, at] = held[:, :, group]
        self.memory = self.memory[:, :, : len(kept)]

    def _make_room(self, room: int) -> None:
        shape = (self.layers, 2, self.groups, self.heads, -(-room // EVEN) * EVEN, self.like.shape[-1])
        with torch.inference_mode(False):  # such tensors cannot be written to outside of it
            memory = self.like.new_empty(shape)
        if self.memory is not None:
            filled = self.slots - self.width
            memory[..., :filled, :] = self.memory[..., :filled, :]
        self.memory, self.clean = memory, 0

    def _find_views(self, k: int) -> None:
        """What products and copies take of the memory, for all layers at once: as few calls as there are."""
        assert self.memory is not None
        self.newest = self.memory[..., self.slots - self.width : self.slots, :].flatten(0, 1).unbind()
        keys, values = self.memory[..., :k, :].flatten(2, 3).unbind(1)  # l e·h k d
        self.keys, self.values = keys.mT.unbind(), values.unbind()
