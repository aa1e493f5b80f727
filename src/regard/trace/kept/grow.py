"""Keys as they stand in a cache, for comparing what comes next with what was there."""

import torch
from torch import Tensor


class Grow:
    """Keys in memory that doubles, so that a step copies only its own column."""

    def __init__(self, kept: Tensor) -> None:
        self.kept, self.used, self.own = kept, kept.shape[2], False

    def __len__(self) -> int:
        return self.used

    def equals(self, k: Tensor, at: int, count: int) -> bool:
        """Whether the first `count` columns of `k` are those held from `at` on."""
        if k.shape[:2] != self.kept.shape[:2] or k.device != self.kept.device:
            return False
        return torch.equal(k[:, :, :count], self.kept[:, :, at : at + count])

    def near(self, k: Tensor, count: int) -> bool:
        """The same up to rounding: a longer call may take another kernel."""
        mine = self.kept[:, :, :count]
        return k.shape[:2] == mine.shape[:2] and torch.allclose(k[:, :, :count], mine, rtol=1e-3, atol=1e-4)

    def parents(self, k: Tensor, count: int) -> Tensor | None:
        """Which entry of the batch each entry of `k` continues; None where some continues none."""
        found = []
        for entry in k[:, :, :count]:
            fits = [i for i, old in enumerate(self.kept[:, :, :count]) if torch.equal(entry, old)]
            if not fits:
                return None
            found.append(fits[0])
        return torch.tensor(found)

    def reorder(self, parents: Tensor) -> None:
        self.kept, self.own = self.kept.index_select(0, parents.to(self.kept.device)), True

    def append(self, k: Tensor) -> None:
        need = self.used + k.shape[2]
        if not self.own or need > self.kept.shape[2]:
            b, g, _, d = self.kept.shape
            room = self.kept.new_empty((b, g, max(64, 2 * need), d))
            room[:, :, : self.used] = self.kept[:, :, : self.used]
            self.kept, self.own = room, True
        self.kept[:, :, self.used : need] = k
        self.used = need

    def shrink(self, to: int) -> None:
        self.used = min(self.used, to)
