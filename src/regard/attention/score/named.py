"""Score functions by name, as a configuration names them."""

from collections.abc import Callable
from dataclasses import dataclass

from regard.attention.score.additive import Additive
from regard.attention.score.base import Score
from regard.attention.score.bilinear import Bilinear
from regard.attention.score.cosine import Cosine
from regard.attention.score.dot import Dot
from regard.attention.score.gaussian import Gaussian


@dataclass(frozen=True)
class SharpCosine(Cosine):
    """The cosine times 10: softmax over numbers within ±1 alone would be nearly even, whatever the weights learn."""

    def scale(self, width: int) -> float:
        """10, where Swin v2 starts its own (Liu et al. 2022)."""
        return 10.0


SCORES: dict[str, Callable[[int], Score | None]] = {
    "scaled dot": lambda width: None,  # what `attend` does unless told otherwise, by its shortest way
    "dot": lambda width: Dot(),
    "additive": lambda width: Additive(query=width, key=width, hidden=width),
    "bilinear": lambda width: Bilinear(query=width, key=width),
    "general": lambda width: Bilinear(query=width, key=width),  # as Luong et al. 2015 call it
    "cosine": lambda width: SharpCosine(),
    # This width makes 2 q·k / (2 width²) the scaled dot product; what is left are the lengths of q and k.
    "gaussian": lambda width: Gaussian(width**0.25, learned=True),
}


def make_score(name: str, width: int) -> Score | None:
    """A new score of this name for queries and keys of `width` channels; None is the scaled dot product.

    >>> make_score("additive", 8)
    Additive(
      (query_to_hidden): Linear(in_features=8, out_features=8, bias=False)
      (key_to_hidden): Linear(in_features=8, out_features=8, bias=False)
    )
    """
    if name not in SCORES:
        raise ValueError(f"attention is {name!r}; choose one of {', '.join(map(repr, SCORES))}")
    return SCORES[name](width)
