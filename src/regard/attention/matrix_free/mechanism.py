"""What `attend(…, by=…)` takes: another way to the mix, that never makes the matrix."""

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from regard.attention.map.computed import Computed
from regard.attention.map.implied import Implied
from regard.attention.weigh.softmax import softmax
from regard.eager import version
from regard.errors import PathError, ShapeError, Stale


class Cost(NamedTuple):
    """What one head costs at one length: multiply-adds, numbers held beside q, k, v and the mix, and how both grow.

    >>> import regard
    >>> regard.Linformer(1024, rank=128).cost(512, width=64)
    Cost(time=16777216, memory=16384, text='O(n·k·d) time, O(k·d) memory, with n = 512, k = 128, d = 64')
    """

    time: int
    memory: int
    text: str


@runtime_checkable
class Mechanism(Protocol):
    """A mechanism that stands in for exact attention.

    `attend` hands it what exact attention would be computed from, and v; the mix comes back, with the map that the
    mechanism amounts to, computed where somebody looks. It honours the mask or refuses it by name.
    """

    name: str  # what `Attended.path` says

    def check(self, heads: int, kv_heads: int, width: int) -> None:
        """Raise `ShapeError` where it was made for other heads or another width."""

    def attend(self, computed: Computed, v: Tensor) -> tuple[Tensor, Implied]:
        """The mix, (…, h, q, e) in the dtype of v, and the map."""

    def cost(self, n: int) -> Cost:
        """What n queries and n keys cost, per head."""


def must_serve(by: Mechanism, **computed: object) -> None:
    """Raise `PathError` naming the first of these that only exact attention has; None and 0 are not asked for."""
    for name, value in computed.items():
        if value is None or (isinstance(value, float | int) and not value):
            continue
        if (name == "score" and getattr(value, "is_dot", False)) or (name == "weigh" and value is softmax):
            continue
        raise PathError(
            f"{name}= came with by={type(by).__name__}, which makes neither scores nor weights that it could apply to; "
            f"leave out {name}= or by="
        )


SEED = 2009_14794  # not 0, that others draw their q and k from: directions must know nothing of them


def make_generator(generator: Generator | None) -> Generator:
    """Where random numbers come from: what was given, or a fixed seed; never the global state."""
    return torch.Generator().manual_seed(SEED) if generator is None else generator


class VersionedTensor:
    """A tensor that a mechanism had when it made a map; the map cannot be computed once it has changed."""

    def __init__(self, name: str, tensor: Tensor) -> None:
        self.name, self.tensor, self.version = name, tensor, version(tensor)

    def __call__(self) -> Tensor:
        if self.version is not None and version(self.tensor) != self.version:
            raise Stale(
                f"{self.name} was written to after the map was made, by an optimiser for example, so the map can no "
                "longer be computed; look before changing it"
            )
        return self.tensor

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.version = version(self.tensor)


def must_count(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ShapeError(f"{name} is {size}, but there is at least one; give 1 or more")
