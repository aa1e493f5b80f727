"""A position bias over keys that do not stand side by side."""

from collections.abc import Iterator

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.score.bias import Bias


class PlacedBias:
    """A bias asked by index that answers for the positions `at`: a cache with `keep_first` has a gap in it."""

    def __init__(self, bias: Bias, at: Int[Tensor, " k"]) -> None:
        self.bias, self.heads, self.at = bias, bias.heads, at

    def block(
        self, queries: Int[Tensor, " r"], keys: Int[Tensor, " c"], of: Int[Tensor, " g"] | None = None
    ) -> Float[Tensor, "g r c"]:
        return self.bias.block(self.at[queries], self.at[keys], of)

    def parameters(self) -> Iterator[nn.Parameter]:
        """What the bias learns, so that `attend` keeps its gradients."""
        yield from getattr(self.bias, "parameters", list)()
