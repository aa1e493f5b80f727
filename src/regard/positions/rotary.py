"""Queries and keys turned by their position, so that scores see only how far apart they stand."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import ShapeError
from regard.positions.position_table import PositionTable, angles
from regard.positions.scaling import Scaling

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Rotary(PositionTable):
    r"""Turns each pair of channels of x by an angle that grows with the position; nothing is learned.

    Pair $i$ of position $p$ turns by $p\,\theta_i$, $\theta_i = base^{-2i/d}$:
    $(a, b) \mapsto (a\cos - b\sin,\; a\sin + b\cos)$ (Su et al. 2021, eq. 15 and 34). So
    $\langle R_p q, R_s k\rangle$ depends on $p - s$ alone.

    `width` is that of one head. `layout` says which channels are a pair: "half" takes i and i + d/2 (Llama,
    GPT-NeoX), "interleaved" 2i and 2i + 1 (the paper, GPT-J). With `rotated` only so many first channels
    turn, and d above is that number; the others pass untouched. `scaling` stretches to longer texts:
    `LinearScaling`, `NTKScaling`, `YarnScaling`, `Llama3Scaling`.

    `positions` is where the first token stands (None: 0), or whole numbers: (t,) for all, or (b, t), one row
    per sequence of x (b, h, t, d). Every position is known, negative ones too. Angles are float64; cos, sin
    and the turning are float32 (float64 for float64), whatever the module was cast to; what comes out has x's
    dtype.

    >>> turn = Rotary(2)
    >>> turn(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    tensor([[1.0000, 0.0000],
            [0.5403, 0.8415]])
    >>> q, k = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 1.0]])
    >>> near, far = (turn(q, at + 5) @ turn(k, at).mT for at in (0, 100_000))
    >>> torch.allclose(near, far)
    True
    """

    def __init__(
        self,
        width: int,
        *,
        base: float | int = 10000.0,
        layout: str = "half",
        rotated: int | None = None,
        scaling: Scaling | None = None,
    ) -> None:
        super().__init__()
        turning = width if rotated is None else rotated
        if layout not in ("half", "interleaved"):
            raise ValueError(f'layout {layout!r} came; wanted "half" (Llama) or "interleaved" (GPT-J)')
        if turning % 2:
            fewer = turning - 1
            raise ShapeError(
                f"{turning} channels came to be turned, but they turn in pairs; "
                + (f"make the width even or give rotated={fewer}" if rotated is None else f"give rotated={fewer}")
            )
        if not 2 <= turning <= width:
            raise ShapeError(
                f"rotated={turning} came for heads of width {width}; give an even number from 2 to {width}"
            )
        if base <= 1:
            raise ValueError(f"base {base} came; wanted more than 1, usually 10000")
        self.width = width
        self.base = base
        self.layout = layout
        self.rotated = turning
        self.scaling = scaling
        frequencies = tuple(base ** (-2 * i / turning) for i in range(turning // 2))
        self.frequencies = frequencies if scaling is None else scaling.scale(frequencies, base)

    def forward(
        self, x: Float[Tensor, "*b t c"], positions: int | Int[Tensor, "*_p"] | None = None
    ) -> Float[Tensor, "*b t c"]:
        if x.shape[-1] != self.width:
            raise ShapeError(
                f"x of shape {tuple(x.shape)} has heads of width {x.shape[-1]}, "
                f"this Rotary turns heads of width {self.width}; "
                f"split the heads first or build Rotary({x.shape[-1]})"
            )
        dtype = torch.promote_types(x.dtype, torch.float32)
        cos, sin = self.rows(x, positions, dtype, heads=True)  # t r, or as many axes as x
        whole = self.rotated == self.width
        old = (x if whole else x[..., : self.rotated]).to(dtype)
        new = torch.addcmul(old * cos, self._partners(old), sin).to(x.dtype)
        return new if whole else torch.cat((new, x[..., self.rotated :]), -1)

    def shift(self, x: Float[Tensor, "*b t c"], by: int) -> Float[Tensor, "*b t c"]:
        """What was turned to its position already, turned on as if it stood `by` positions later.

        >>> turn, x = Rotary(4), torch.ones(3, 4)
        >>> torch.allclose(turn.shift(turn(x), by=7), turn(x, 7))
        True
        """
        magnitude = 1.0 if self.scaling is None else self.scaling.magnitude
        return self(x, torch.full((x.shape[-2],), by, device=x.device)) / magnitude

    def _partners(self, x: Float[Tensor, "*b r"]) -> Float[Tensor, "*b r"]:
        """In each channel's place, the other one of its pair."""
        if self.layout == "half":
            return x.roll(self.rotated // 2, -1)
        pairs: Tensor = x.unflatten(-1, (-1, 2))
        return pairs.flip(-1).flatten(-2)

    def compute(self, positions: Int[Tensor, "*p"], dtype: torch.dtype) -> tuple[Float[Tensor, "*p r"], ...]:
        """For each channel its cosine, and its partner's sine: minus for the first of a pair."""
        turned = angles(positions, self.frequencies)  # *p r/2
        magnitude = 1.0 if self.scaling is None else self.scaling.magnitude
        cos, sin = turned.cos() * magnitude, turned.sin() * magnitude
        if self.layout == "half":
            both = torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)
        else:
            both = torch.stack((cos, cos), -1).flatten(-2), torch.stack((-sin, sin), -1).flatten(-2)
        return both[0].to(positions.device, dtype), both[1].to(positions.device, dtype)

    def draw(self, length: int = 64, to: str | Path | None = None) -> "Figure":
        """The cosine of the angles, a row per position, a column per pair; saved when `to` names a file."""
        from regard.views.static.figure import heatmap

        cosines = angles(torch.arange(length, device="cpu"), self.frequencies).cos()
        title = f"Rotary, {self.rotated} of {self.width} channels"
        return heatmap(cosines, title=title, rows="positions", columns="pairs", diverging=True, to=to)

    def extra_repr(self) -> str:
        scaling = "" if self.scaling is None else f", scaling={self.scaling}"
        return f"{self.width}, base={self.base}, layout={self.layout!r}, rotated={self.rotated}{scaling}"


def half_to_interleaved(x: Float[Tensor, "*b"], *, dim: int = -1, rotated: int | None = None) -> Float[Tensor, "*b"]:
    """The channels along `dim` reordered so that an interleaved `Rotary` does what a half one did before.

    A projection (h·d, m) becomes `half_to_interleaved(weight.unflatten(0, (h, d)), dim=1).flatten(0, 1)`,
    the one to q like the one to k; their scores stay the same.

    >>> half_to_interleaved(torch.tensor([0.0, 1, 2, 10, 11, 12]))
    tensor([ 0., 10., 1., 11., 2., 12.])
    """
    return _reorder(x, dim, rotated, (2, -1))


def interleaved_to_half(x: Float[Tensor, "*b"], *, dim: int = -1, rotated: int | None = None) -> Float[Tensor, "*b"]:
    """The way back from `half_to_interleaved`.

    >>> interleaved_to_half(torch.tensor([0.0, 10, 1, 11, 2, 12]))
    tensor([ 0., 1., 2., 10., 11., 12.])
    """
    return _reorder(x, dim, rotated, (-1, 2))


def _reorder(x: Tensor, dim: int, rotated: int | None, pairs: tuple[int, int]) -> Tensor:
    width = x.shape[dim]
    turning = width if rotated is None else rotated
    if turning % 2 or not 0 <= turning <= width:
        raise ShapeError(
            f"{turning} of {width} channels came to be reordered; give rotated= an even number up to {width}"
        )
    order = torch.arange(width, device=x.device)
    return x.index_select(dim, torch.cat((order[:turning].view(pairs).T.flatten(), order[turning:])))
