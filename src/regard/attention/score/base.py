"""What every score function offers: prepare each side once, then compare any block of pairs."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor


@runtime_checkable
class Score(Protocol):
    """How well a query fits a key, in two steps, so that any part of the map can be computed later.

    `prepare` works on each side alone and costs O(n·d); `compare` takes any rows of the prepared queries
    and any rows of the prepared keys and gives their scores, unscaled.
    `is_dot` says that `compare` is the plain product q kᵀ, so that fused kernels can serve it.
    """

    is_dot: bool

    def prepare(
        self, q: Float[Tensor, "*_b q d"], k: Float[Tensor, "*_c k e"]
    ) -> tuple[Float[Tensor, "*_b q f"], Float[Tensor, "*_c k f"]]:
        """Both sides as `compare` wants them."""
        ...

    def compare(self, q: Float[Tensor, "*_b q f"], k: Float[Tensor, "*_c k f"]) -> Float[Tensor, "*_e q k"]:
        """The score of every given query with every given key."""
        ...

    def scale(self, width: int) -> float:
        """What the scores are multiplied by when the caller names no scale; `width` is q's last size."""
        ...
