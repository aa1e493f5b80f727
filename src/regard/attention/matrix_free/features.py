"""Random features: vectors whose products are, on average, the exponentials of products."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor

KINDS = ("positive", "hyperbolic", "trigonometric")


def draw(
    features: int, width: int, *, orthogonal: bool, generator: Generator, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "m d"]:
    """Directions, each a standard normal vector; `orthogonal` ones stand at right angles in blocks of `width`.

    The length of each is drawn for itself, so that one direction alone is normal either way (Choromanski et al.
    2021, §2.4). Orthogonality lowers the error of features for every width (theorem 2).

    >>> rows = draw(2, 3, orthogonal=True, generator=torch.Generator().manual_seed(0))
    >>> bool((rows[0] @ rows[1]).abs() < 1e-6)
    True
    """
    options = {"generator": generator, "dtype": dtype, "device": generator.device}
    drawn = torch.randn(features, width, **options)  # type: ignore[call-overload]
    if not orthogonal:
        return drawn
    blocks = torch.randn(-(-features // width), width, width, **options)  # type: ignore[call-overload]
    turned, upper = torch.linalg.qr(blocks)
    turned = turned * upper.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)  # else not every rotation is as likely
    return turned.mT.flatten(0, 1)[:features] * drawn.norm(dim=-1, keepdim=True)


class Powers(NamedTuple):
    """Features as factor · exp(exponent), apart so that a maximum can be taken out of the exponent first."""

    exponent: Float[Tensor, "*b n f"]  # f is 1 where all features of a vector share it
    factor: Float[Tensor, "*b n g"] | None  # None stands for 1

    def lower(self, top: Float[Tensor, "*_b _n _f"]) -> Float[Tensor, "*_c n g"]:
        """factor · exp(exponent − top), in the memory of the exponent."""
        grown = self.exponent.sub_(top).exp_()
        return grown if self.factor is None else grown * self.factor


def powers(x: Float[Tensor, "*b n d"], directions: Float[Tensor, "m d"], kind: str, half_scale: float | None) -> Powers:
    r"""Features $φ(x)$ of $x$ up to a factor that all have in common.

    With $ω$ the directions: positive $e^{ωx - |x|²/2}$, hyperbolic $e^{±ωx - |x|²/2}$, trigonometric
    $e^{|x|²/2}$ times cos and sin of $ωx$. `half_scale` is what stands for the ½ before |x|²; None leaves this
    term out, for queries: there it cancels against the normaliser.
    """
    along = x @ directions.mT  # … n m
    if kind == "trigonometric":
        factor = torch.cat([along.cos(), along.sin()], -1)
        zero = along.new_zeros(*along.shape[:-1], 1)
        return Powers(zero if half_scale is None else x.square().sum(-1, keepdim=True) * half_scale, factor)
    if kind == "hyperbolic":
        along = torch.cat([along, -along], -1)
    if half_scale is not None:
        along = along.sub_(x.square().sum(-1, keepdim=True) * half_scale)
    return Powers(along, None)


def features(
    x: Float[Tensor, "*b n d"], directions: Float[Tensor, "m d"], kind: str = "positive"
) -> Float[Tensor, "*b n f"]:
    r"""$φ(x)$, with $E[φ(x) \cdot φ(y)] = e^{x \cdot y}$ over the draws (Choromanski et al. 2021, lemma 1 and eq. 5).

    Positive features are m numbers, hyperbolic and trigonometric ones 2 m: each direction is used twice. The
    textbook form; a `Performer` takes the maxima out before it calls exp.

    >>> directions = draw(50_000, 2, orthogonal=False, generator=torch.Generator().manual_seed(0))
    >>> x, y = torch.tensor([[0.3, 0.4]]), torch.tensor([[0.5, -0.1]])
    >>> [round((features(x, directions, kind) @ features(y, directions, kind).mT).item(), 2) for kind in KINDS]
    [1.12, 1.12, 1.12]
    >>> round((x @ y.mT).exp().item(), 2)
    1.12
    """
    found = powers(x, directions, kind, 0.5)
    repeats = 2 if kind == "hyperbolic" else 1
    return found.lower(torch.zeros_like(found.exponent[..., :1])) / (repeats * directions.shape[0]) ** 0.5
