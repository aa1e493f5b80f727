"""What computed attention in a run and was not heard."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Missed:
    """Attention-like products of one module that no door heard: where, what they looked like, and how many."""

    name: str  # the path of the module
    what: str  # what it looked like, with its shapes
    count: int = 1

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.name} was not heard: {self.what}{times}"
