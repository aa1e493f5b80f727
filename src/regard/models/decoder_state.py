"""A model in the middle of writing, as decoding sees it."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class DecoderState(Protocol):
    """What a model has read and written so far, one row per text."""

    def __call__(self, ids: Tensor) -> Tensor:
        """Reads the next tokens of every row, (b, t); the logits of the token after the last of them, (b, n)."""
        ...

    def reorder(self, index: Tensor) -> None:
        """Row i becomes what row index[i] was. There may be fewer rows than before, or more."""
        ...

    def attention(self) -> Tensor | None:
        """Where the last step looked in the source, (b, s), mean over the heads of the last layer; None without."""
        ...


@runtime_checkable
class HasHead(Protocol):
    """A `DecoderState` that also tells what its head reads, so that a search can keep the logits where it wants."""

    def hidden(self, ids: Tensor) -> Tensor:
        """Reads as `__call__` does; what the head makes the logits of, (b, m)."""
        ...

    @property
    def head(self) -> tuple[Tensor, Tensor | None]:
        """Its weight (n, m), and its bias (n,) where it has one."""
        ...


@runtime_checkable
class Replayable(Protocol):
    """A `DecoderState` of a model that can read what was written once more, all of it in one pass."""

    @property
    def repeatable(self) -> bool:
        """Whether a second pass computes what the first one did: nothing is dropped."""
        ...

    def again(self, written: Sequence[Sequence[int]], begin: int) -> None:
        """One pass over the sources, and BEGIN and what was written for each."""
        ...


@runtime_checkable
class HasPrompt(Protocol):
    """A `DecoderState` that goes on with texts of its own instead of beginning with BEGIN."""

    def take_prompt(self, rows: int, steps: int) -> Tensor:
        """What the first of so many steps reads, (rows, t); refused where the tokens of the others do not fit."""
        ...
