"""How a tensor came of others by steps that are linear once each norm's scale is held: sums, projections, scales.

A term is a step; from a logit back to what was added up, coefficients go through one term after the other. They are
kept for the places that matter alone: `at` counts the places of a tensor row by row, `c` is a number for each of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.trace.residual.kept import KeptTensor


class Coefficients(NamedTuple):
    """How a number changes with some places of a tensor."""

    at: Tensor  # places, counted row by row
    c: Tensor  # float64, one for each


@dataclass(eq=False)
class Term:
    """A tensor of a run, and what it was made of. One that was made of nothing is a part of the sum."""

    shape: tuple[int, ...]

    @property
    def inputs(self) -> Sequence["Term"]:
        return ()

    def back(self, out: Coefficients) -> tuple[list[Coefficients], float]:
        """The coefficients of each input, and what this step itself adds: its biases."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """What the step makes of a change of its only input."""
        raise NotImplementedError


@dataclass(eq=False)
class PartTerm(Term):
    """Something that was added to the stream and is not taken apart: an embedding, the output of an MLP."""

    kept: KeptTensor
    name: str
    kind: str  # "embedding", "mlp", "module", "bias" or "input"


@dataclass(eq=False)
class MixTerm(Term):
    """What the heads of a layer gave, before the projection that follows."""

    layer: str
    to_bhqe: Callable[[Tensor], Tensor]
    steps: list[Term] = field(default_factory=list)  # from the mix to what was added to the stream


@dataclass(eq=False)
class SumTerm(Term):
    """Tensors that were added, each times a number, and a number."""

    parts: list[tuple[Term, float]]
    constant: float = 0.0

    @property
    def inputs(self) -> Sequence[Term]:
        return [term for term, _ in self.parts]

    def back(self, out: Coefficients) -> tuple[list[Coefficients], float]:
        found = [Coefficients(narrow(out.at, self.shape, term.shape), out.c * factor) for term, factor in self.parts]
        return found, float(out.c.sum()) * self.constant


@dataclass(eq=False)
class StepTerm(Term):
    """A step with one input."""

    x: Term

    @property
    def inputs(self) -> Sequence[Term]:
        return (self.x,)


@dataclass(eq=False)
class LinearTerm(StepTerm):
    """x W + b."""

    weight: KeptTensor  # as it was given
    turned: bool  # whether it stands as (out, in)
    bias: KeptTensor | None = None

    def matrix(self) -> Tensor:
        """(in, out)."""
        weight = self.weight.value()
        return weight.mT if self.turned else weight

    def back(self, out: Coefficients) -> tuple[list[Coefficients], float]:
        weight = self.matrix()
        width, wide = weight.shape
        rows, place = torch.unique(out.at // wide, return_inverse=True)
        columns = out.at % wide
        dense = out.c.new_zeros(len(rows), wide).index_put_((place, columns), out.c, accumulate=True)
        some = columns.unique()
        c = dense[:, some] @ weight[:, some].mT.to(dense.dtype)
        bias = 0.0 if self.bias is None else self.bias.value()
        added = float((out.c * bias.to(out.c).expand(wide)[columns]).sum()) if isinstance(bias, Tensor) else 0.0
        return [Coefficients(whole_rows(rows, width), c.reshape(-1))], added

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.matrix().to(x)


@dataclass(eq=False)
class ScaleTerm(StepTerm):
    """x times something that is held as it was: a weight for each channel, the scale of each row."""

    by: KeptTensor | float
    divides: bool = False
    place: str | None = None  # the module that scaled each row by a number of its own

    def factor(self, like: Tensor) -> Tensor:
        by = self.by.value().to(like) if isinstance(self.by, KeptTensor) else like.new_tensor(self.by)
        return 1 / by if self.divides else by

    def back(self, out: Coefficients) -> tuple[list[Coefficients], float]:
        factor = take_flat(self.factor(out.c), self.shape, out.at)
        return [Coefficients(narrow(out.at, self.shape, self.x.shape), out.c * factor)], 0.0

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor(x)


@dataclass(eq=False)
class NormTerm(StepTerm):
    """A norm over the last axis whose scale of each row is held: (x − mean) · scale · weight + bias."""

    scale: Tensor  # one for each row
    centred: bool
    weight: KeptTensor | None
    bias: KeptTensor | None
    place: str | None = None  # its module

    def back(self, out: Coefficients) -> tuple[list[Coefficients], float]:
        width = self.shape[-1]
        rows, place = torch.unique(out.at // width, return_inverse=True)
        columns = out.at % width
        added = 0.0 if self.bias is None else float((out.c * self.bias.value().to(out.c)[columns]).sum())
        c = out.c if self.weight is None else out.c * self.weight.value().to(out.c)[columns]
        dense = c.new_zeros(len(rows), width).index_put_((place, columns), c, accumulate=True)
        dense *= self.scale.reshape(-1)[rows][:, None].to(dense)
        if self.centred:
            dense -= dense.mean(-1, keepdim=True)
        return [Coefficients(whole_rows(rows, width), dense.reshape(-1))], added

    def forward(self, x: Tensor) -> Tensor:
        x = x - x.mean(-1, keepdim=True) if self.centred else x
        x = x * self.scale.reshape(*x.shape[:-1], 1).to(x)
        return x if self.weight is None else x * self.weight.value().to(x)


@dataclass(eq=False)
class CastTerm(StepTerm):
    """The same numbers in another type, which rounds them."""

    dtype: torch.dtype

    def back(self, out: Coefficients) -> tuple[list[Coefficients], float]:
        return [out], 0.0

    def forward(self, x: Tensor) -> Tensor:
        return x


@dataclass(eq=False)
class MoveTerm(Term):
    """The numbers of one tensor, or of several, in another order or shape, or only some of them."""

    parts: list[Term]
    move: Callable[[list[Tensor]], Tensor]

    @property
    def inputs(self) -> Sequence[Term]:
        return self.parts

    def back(self, out: Coefficients) -> tuple[list[Coefficients], float]:
        device, first, numbered = out.at.device, 0, []
        for term in self.parts:  # each place of each input gets a number of its own
            count = math.prod(term.shape)
            numbered.append(torch.arange(first, first + count, device=device).reshape(term.shape))
            first += count
        source = self.move(numbered).reshape(-1)[out.at]
        found, first = [], 0
        for term in self.parts:
            mine = (source >= first) & (source < first + math.prod(term.shape))
            found.append(Coefficients(source[mine] - first, out.c[mine]))
            first += math.prod(term.shape)
        return found, 0.0

    def forward(self, x: Tensor) -> Tensor:
        return self.move([x])


def whole_rows(rows: Tensor, width: int) -> Tensor:
    """The places of whole rows."""
    return (rows[:, None] * width + torch.arange(width, device=rows.device)).reshape(-1)


def narrow(at: Tensor, shape: tuple[int, ...], to: tuple[int, ...]) -> Tensor:
    """Places of a tensor as those of one that was broadcast to its shape."""
    if shape == to:
        return at
    found = torch.arange(math.prod(to), device=at.device).reshape(to)
    return take_flat(found, shape, at)


def take_flat(x: Tensor, shape: tuple[int, ...], at: Tensor) -> Tensor:
    """The numbers of `x`, broadcast to a shape, at some places."""
    found: Any = x.expand(shape)[torch.unravel_index(at, shape)]
    return found
