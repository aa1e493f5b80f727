"""Keys as they stand in a cache, for comparing what comes next with what was there."""

import torch
from torch import Tensor

INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class KeyBuffer:
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

    def last_place(self, k: Tensor, count: int) -> int | None:
        """The last place from which the first `count` columns of `k` are held; None where there is none."""
        if k.shape[:2] != self.kept.shape[:2] or k.device != self.kept.device:
            return None
        begins = (self.kept[:, :, : self.used - count + 1] == k[:, :, :1]).all(-1).all(1).all(0)
        for at in reversed(begins.nonzero().flatten().tolist()):
            if self.equals(k, at, count):
                return int(at)
        return None

    def origins(self, k: Tensor, at: int, count: int) -> Tensor | None:
        """(b, b): whether entry i of `k` may continue entry j, whose columns from `at` on are the same.

        None where some entry continues none. Entries with equal columns are all named: which of them it was, these
        columns cannot tell.
        """
        if k.shape[:2] != self.kept.shape[:2] or k.device != self.kept.device:
            return None
        new, old = k[:, :, :count], self.kept[:, :, at : at + count]
        likes, mine = marks(new), marks(old)
        same = torch.zeros(len(new), len(old), dtype=torch.bool)
        first: list[int] = []  # the first entry that each one is equal to
        for i in range(len(old)):
            first.append(next(j for j in (*first, i) if mine[j] == mine[i] and torch.equal(old[j], old[i])))
        for i, mark in enumerate(likes):
            for j in set(first):
                if mine[j] == mark and torch.equal(new[i], old[j]):
                    same[i] = torch.tensor([one == j for one in first])
                    break
            else:
                return None
        return same

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


def marks(x: Tensor) -> list[int]:
    """One number for each entry that equal entries share: the sum of their bits, which no order of adding changes."""
    bits = x.contiguous().view(INTEGERS[x.element_size()])
    return [int(mark) for mark in bits.flatten(1).sum(1, dtype=torch.int64)]
