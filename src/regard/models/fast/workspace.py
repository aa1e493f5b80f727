"""The memory of one text, or one batch, in the middle of decoding: cache, activations, scratch of each thread."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from regard.models.fast.share import Counters
from regard.models.fast.step import FEW_TOKENS, SPLIT
from regard.models.fast.tables import MEMORY, pad
from regard.models.fast.weights import StoredWeights

MOST_TOKENS = 64  # that one call reads
PLACES = 256  # by which a cache grows at least


class Workspace:
    """Keys and values of `rows` texts, with room that doubles, and what a step needs besides.

    Keys are (layer, row, kv head, block of 16 places, channel, place), values (layer, row, kv head, place, channel),
    their channels filled up to a multiple of 16: see attention.py for why.
    """

    def __init__(self, weights: StoredWeights, rows: int, threads: int) -> None:
        self.weights, self.rows, self.threads, self.capacity = weights, rows, threads, 0
        self.record: NDArray[Any] = np.zeros(1, MEMORY)
        self.keys, self.values = self._allocate(rows, 0)
        config = weights.config
        channels = weights.head_width
        mixed, keys = pad(config.heads * channels), pad(weights.kv_heads * channels)
        room = pad(max(config.width, config.hidden, config.heads * channels), 32)
        scratch = MOST_TOKENS * (2 * room + room // 8 + 32)
        sizes = {"x": pad(config.width), "qkv": mixed + 2 * keys, "mix": mixed, "hidden": pad(config.hidden)}
        self.buffers = {name: torch.zeros(MOST_TOKENS, size) for name, size in sizes.items()}
        self.buffers["scratch"] = torch.zeros(threads, scratch)
        for name, buffer in self.buffers.items():
            self.record[name] = buffer.data_ptr()
        self.record["room"], self.record["scratch_size"] = 4 * room, 4 * scratch
        self.counters = Counters(7 * config.layers + 2)

    def _allocate(self, rows: int, capacity: int) -> tuple[Tensor, Tensor]:
        layers, heads, channels = len(self.weights.layers), self.weights.kv_heads, self.weights.head_width
        with torch.inference_mode(False):  # such tensors cannot be written to outside of it
            keys = torch.zeros(layers, rows, heads, capacity // 16, channels, 16)
            return keys, torch.zeros(layers, rows, heads, capacity, pad(channels))

    def make_room(self, places: int) -> None:
        """Room for so many places of every row."""
        if places > self.capacity:
            self._resize(self.rows, pad(max(places, 2 * self.capacity), PLACES), slice(None))

    def reorder(self, index: Int[Tensor, " c"]) -> None:
        """Row i becomes what row index[i] was."""
        self._resize(len(index), self.capacity, index)

    def find_pair(self, layer: int, places: int) -> tuple[Float[Tensor, "b h t d"], Float[Tensor, "b h t d"]]:
        """Keys and values of one layer, as other caches have them."""
        keys = self.keys[layer].transpose(-1, -2).flatten(2, 3)
        return keys[:, :, :places], self.values[layer, :, :, :places, : self.weights.head_width]

    def set_pair(self, layer: int, keys: Float[Tensor, "b h t d"], values: Float[Tensor, "b h t d"]) -> None:
        """Writes the first keys and values of one layer."""
        places = keys.shape[2]
        whole = torch.nn.functional.pad(keys, (0, 0, 0, -places % 16)).unflatten(2, (-1, 16))
        self.keys[layer, :, :, : whole.shape[2]] = whole.transpose(-1, -2)
        self.values[layer, :, :, :places, : self.weights.head_width] = values

    def _resize(self, rows: int, capacity: int, index: Any) -> None:
        keys, values = self._allocate(rows, capacity)
        keys[:, :, :, : self.capacity // 16] = self.keys[:, index]
        values[:, :, :, : self.capacity] = self.values[:, index]
        self.keys, self.values, self.rows, self.capacity = keys, values, rows, capacity

    def count_splits(self, tokens: int, places: int) -> int:
        """Into how many parts the keys of one token are cut: where tokens are few, threads need more to share."""
        return 1 if tokens >= FEW_TOKENS else max(1, -(-places // SPLIT))

    def point(self, tokens: int, splits: int, logits: Float[Tensor, "c n"]) -> None:
        """Tells the kernels where everything is, for one call."""
        config, padded = self.weights.config, pad(self.weights.head_width)
        group = config.heads // self.weights.kv_heads
        size = tokens * self.weights.kv_heads * splits * ((padded + 16) * group + 32)
        if "partial" not in self.buffers or self.buffers["partial"].numel() < size:
            self.buffers["partial"] = torch.zeros(size)
            self.record["partial"] = self.buffers["partial"].data_ptr()
        self.record["keys"], self.record["values"] = self.keys.data_ptr(), self.values.data_ptr()
        self.record["rows"], self.record["capacity"] = self.rows, self.capacity
        self.record["logits"] = logits.data_ptr()
