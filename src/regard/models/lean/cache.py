"""Keys and values of all layers in tensors of fixed size that are written in place."""

import torch
from torch import Tensor

from regard.layers import KeyValueCache


class SlotCache:
    """Keys (b · g, slots, d) and values of one layer, g key heads; a token has a slot, and a window reuses slots.

    Without a window slot i is token i, and slots grow by doubling. With one there are `sinks` + `window` + 1 slots: the
    first tokens stay, the others go around. Attention does not mind the order of keys. With sinks, `first` holds
    their keys as they were turned when they came; in their slots they are turned on to stand before the window.
    """

    def __init__(self, window: int | None, sinks: int) -> None:
        self.sinks = sinks if window is not None else 0
        self.most = None if window is None else self.sinks + window + 1
        self.keys: Tensor | None = None
        self.values: Tensor | None = None
        self.first: Tensor | None = None

    def find_slot(self, position: int) -> int:
        """The slot of the token at a position."""
        if self.most is None or position < self.most:
            return position
        return self.sinks + (position - self.sinks) % (self.most - self.sinks)

    def count(self, seen: int) -> int:
        """How many slots are filled after so many tokens."""
        return seen if self.most is None else min(seen, self.most)

    def order(self, seen: int) -> list[int]:
        """The slots that are filled, in the order of time."""
        if self.most is None or seen <= self.most:
            return list(range(seen))
        return [*range(self.sinks), *(self.find_slot(at) for at in range(seen - (self.most - self.sinks), seen))]

    def find_positions(self, seen: int) -> Tensor:
        """The position of the token in each slot that is filled."""
        if self.most is None or seen <= self.most:
            return torch.arange(seen)
        slots = torch.tensor(self.order(seen))
        positions = torch.arange(seen - len(slots), seen)
        positions[: self.sinks] = torch.arange(self.sinks)
        return torch.empty_like(slots).scatter_(0, slots, positions)

    def make_room(self, rows: int, like: Tensor, held: int, wanted: int) -> None:
        """Slots for so many tokens; what is held stays."""
        slots = wanted if self.most is None else self.most
        if self.keys is not None and self.keys.shape[1] >= slots:
            return
        with torch.inference_mode(False):  # such tensors cannot be written to outside of it
            new = [like.new_empty(rows, slots, like.shape[-1]) for _ in range(2)]
        if self.keys is not None and self.values is not None and held:
            new[0][:, :held], new[1][:, :held] = self.keys[:, :held], self.values[:, :held]
        self.keys, self.values = new

    def reorder(self, index: Tensor, heads: int) -> None:
        """Row i becomes what row index[i] was."""
        rows = (index[:, None] * heads + torch.arange(heads)).flatten()
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]
        if self.first is not None:
            self.first = self.first[rows]

    def fill(self, cache: KeyValueCache, seen: int, heads: int) -> None:
        """Hand all that is held to an empty cache of the layer itself."""
        if self.keys is None or self.values is None:
            return
        keys, values = (one[:, self.order(seen)] for one in (self.keys, self.values))
        if self.first is not None:
            keys[:, : self.sinks] = self.first
        cache.append(*(one.unflatten(0, (-1, heads)) for one in (keys, values)))
        cache.seen = seen
