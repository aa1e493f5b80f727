"""What is known of the tensors of a run: by the memory they lie in, since a view comes back as another object."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from regard.trace.doors.call_site import Tree
from regard.trace.residual.kept import KeptTensor
from regard.trace.residual.terms import Term

SWEEP = 64  # tensors that are remembered before memory that is gone is forgotten

Geometry: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...]]


class MadeTensor(NamedTuple):
    """A tensor that is no term: which operator made it, in which modules, innermost first, and what it seems to be."""

    operator: str
    chain: tuple[str, ...]
    kind: str


@dataclass(eq=False)
class StorageEntry:
    """The tensors that lie in one memory, and what is kept there by reference."""

    memory: StorageWeakRef  # while this is held, no other memory gets its number
    tensors: dict[Geometry, Term | MadeTensor] = field(default_factory=dict)
    kept: list[KeptTensor] = field(default_factory=list)


class KnownTensors:
    """What each tensor of a run is, as long as its memory lives and nobody writes to it."""

    def __init__(self) -> None:
        self.entries: dict[int, StorageEntry] = {}
        self.limit = SWEEP

    def of(self, x: Tensor) -> Term | MadeTensor | None:
        entry = self.entries.get(x.untyped_storage()._cdata)
        return None if entry is None else entry.tensors.get(geometry(x))

    def entry(self, x: Tensor) -> StorageEntry:
        storage = x.untyped_storage()
        if storage._cdata not in self.entries:
            if len(self.entries) >= self.limit:
                self.entries = {key: one for key, one in self.entries.items() if not one.memory.expired()}
                self.limit = max(SWEEP, 2 * len(self.entries))
            self.entries[storage._cdata] = StorageEntry(StorageWeakRef(storage))
        return self.entries[storage._cdata]

    def bind(self, x: Tensor, to: Term | MadeTensor) -> None:
        self.entry(x).tensors[geometry(x)] = to

    def keep(self, x: Tensor) -> KeptTensor:
        """The tensor as it is now; copied only when somebody is about to write to it."""
        found = KeptTensor(x)
        self.entry(found.tensor).kept.append(found)
        return found

    def note_write(self, x: Tensor) -> None:
        """Somebody is about to write to this memory: what it was is copied where it is kept, and else forgotten."""
        entry = self.entries.pop(x.untyped_storage()._cdata, None)
        for one in entry.kept if entry is not None else ():
            one.copy()


def geometry(x: Tensor) -> Geometry:
    """Where in its memory a tensor lies; the step along an axis of one place says nothing."""
    shape = tuple(x.shape)
    return int(x.storage_offset()), shape, tuple(0 if n == 1 else step for n, step in zip(shape, x.stride()))


def weights_of(tree: Tree) -> dict[int, str]:
    """The module that holds each weight and buffer, by the number of its memory."""
    found: dict[int, str] = {}
    for path, module in tree.values():
        for name, x in (*module._parameters.items(), *module._buffers.items()):
            if x is not None and is_plain(x):
                found.setdefault(x.untyped_storage()._cdata, path or name)
    return found


def is_plain(x: object) -> bool:
    """Whether this is a tensor of numbers that lies in memory of its own."""
    if not isinstance(x, Tensor) or type(x) not in (Tensor, nn.Parameter, nn.Buffer):
        return False
    return not (x.is_meta or x.is_nested or x.is_sparse or x.is_quantized) and x.layout == torch.strided
