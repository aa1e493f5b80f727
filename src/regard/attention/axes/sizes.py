"""The sizes of a map."""

from typing import NamedTuple


class Sizes(NamedTuple):
    """The axes of a map: those before the last two (the last of them is heads), queries, keys."""

    lead: tuple[int, ...]
    q: int
    k: int

    @property
    def offset(self) -> int:
        """How far the queries stand behind the keys: the last query stands at the last key."""
        return self.k - self.q

    @property
    def batch(self) -> tuple[int, ...]:
        """The axes before heads."""
        return self.lead[:-1]

    @property
    def heads(self) -> int:
        """How many heads there are; one where q has no head axis."""
        return self.lead[-1] if self.lead else 1
