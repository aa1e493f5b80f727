"""What products of activations a run has made, until it is known which of them was attention.

A product of activations is judged by three questions. Do the rows of one operand add up to one, so that it weighs the
other? Is one operand as large as an earlier product, so that this is the second of q × k and weights × values? Does it
take an earlier product as it is, as linear attention does? A linear layer is none: one operand is a parameter.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from weakref import ReferenceType, ref

import torch
from torch import Tensor, nn

from regard.trace.doors.second_sum import is_weights

KEPT = 16  # products that may still be the first of two


@dataclass(frozen=True, slots=True)
class ScoreProduct:
    """A product that may be q × k: in which modules, its shape (cells of the batch, q, k), and how to tell it again."""

    modules: tuple[int, ...]
    shape: tuple[int, int, int]
    mark: tuple[int, float, float]
    square: bool  # whether all its sizes are one, as in a chain of square matrices
    sample: tuple[float, ...] = ()  # some of its numbers

    def fits(self, x: Tensor) -> bool:
        """Whether x has these sizes, in any number of leading axes, as it is or transposed."""
        cells, q, k = self.shape
        return x.ndim >= 2 and x.numel() == cells * q * k and tuple(x.shape[-2:]) in ((q, k), (k, q))

    def is_near(self, x: Tensor, modules: tuple[int, ...]) -> bool:
        """Whether a product in these modules, the innermost first, may go on with this one.

        Two modules inside of a third may share the work; but transposed it is more likely what the layer before gave.
        """
        if modules[0] in self.modules or self.modules[0] in modules:
            return True
        return tuple(x.shape[-2:]) == self.shape[1:] and bool(set(modules) & set(self.modules))

    def became(self, x: Tensor) -> bool:
        """Whether x is this product, as it is or multiplied by one number since."""
        if x.numel() != math.prod(self.shape) or tuple(x.shape[-2:]) != self.shape[1:]:
            return False
        return self.mark == mark_of(x) or in_proportion(self.sample, sample_of(x))


@dataclass(eq=False)
class Ledger:
    """`Ledger` holds the products, softmaxes and sigmoids of one context that may still turn out to be attention."""

    scores: deque[ScoreProduct] = field(default_factory=lambda: deque(maxlen=KEPT))
    missed: deque[ScoreProduct] = field(default_factory=lambda: deque(maxlen=KEPT))  # of what was missed by name
    softmaxes: deque["ReferenceType[Tensor]"] = field(default_factory=lambda: deque(maxlen=4))
    weighing: deque[tuple[tuple[int, ...], int]] = field(default_factory=lambda: deque(maxlen=4))  # and their modules
    sigmoid: "ReferenceType[Tensor] | None" = None
    plain: Tensor | None = None  # a softmax over the rows of a matrix, until it meets values or the next one is made
    heard: Tensor | None = None  # the weights that were heard last: they may meet other values yet
    inside: int = 0  # while torch computes a product out of others
    fixed: frozenset[int] | None = None  # where parameters and buffers stand in memory
    cast: dict[tuple[int, ...], torch.dtype] = field(default_factory=dict)  # parameters with three axes, by their sizes

    def clear(self) -> None:
        self.scores.clear()
        self.missed.clear()
        self.weighing.clear()
        self.softmaxes.clear()
        self.sigmoid = self.plain = self.heard = self.fixed = None

    def remember(self, softmax: Tensor, module: nn.Module | None) -> None:
        """A softmax that is no candidate, of another axis or of two axes; it is not kept alive, only its sizes are."""
        self.softmaxes.append(ref(softmax))
        self.weighing.append((tuple(softmax.shape), id(module)))

    def is_activation(self, x: Tensor, modules: Iterable[nn.Module]) -> bool:
        """Whether this was computed, and is no parameter, no buffer, and no view or cast of one."""
        if self.fixed is None:
            self.learn(modules)
        assert self.fixed is not None
        if place_in_memory(x) in self.fixed:
            return False
        return self.cast.get(sizes_of(x), x.dtype) == x.dtype  # stacked experts that were cast on the way

    def learn(self, modules: Iterable[nn.Module]) -> None:
        own = [x for module in modules for x in (*module._parameters.values(), *module._buffers.values())]
        held = [x for x in own if x is not None and x.layout is torch.strided]
        self.fixed = frozenset(place_in_memory(x) for x in held)
        self.cast = {sizes_of(x): x.dtype for x in held if isinstance(x, nn.Parameter) and x.ndim > 2}

    def is_softmax(self, x: Tensor) -> bool:
        """Whether this is a softmax over two axes, as it is or as a view: one query for each entry of the batch.

        One over positions of more axes may weigh features, whose map has no queries.
        """
        return any(found.ndim == 2 and is_same(x, found) for found in self.alive())

    def plain_softmax(self, x: Tensor) -> Tensor | None:
        """The softmax over the rows of a matrix that this is, as it was or after dropout."""
        found = self.plain
        if found is None or found.shape != x.shape or not (is_same(found, x) or is_weights(found, x)):
            return None
        return found

    def alive(self) -> list[Tensor]:
        return [found for one in self.softmaxes if (found := one()) is not None]

    def is_sigmoid(self, x: Tensor) -> bool:
        found = None if self.sigmoid is None else self.sigmoid()
        return found is not None and is_same(x, found)

    def take(self, x: Tensor, modules: tuple[int, ...] | None = None) -> ScoreProduct | None:
        """The product that x was made of, by its sizes and its place; it is then explained, and forgotten."""
        found = next(self.find(x, modules), None)
        if found is not None:
            self.scores.remove(found)
        return found

    def fitting(self, x: Tensor, modules: tuple[int, ...] | None = None) -> bool:
        """Whether there is such a product, in one of these modules."""
        return any(True for _ in self.find(x, modules))

    def is_sum_of_keys(self, values: Tensor, weights: Tensor, modules: tuple[int, ...]) -> bool:
        """Whether what these weights meet is itself a product of activations, and no other one has led to the weights.

        So it is in linear attention, q (kᵀ v), where a softmax runs over features: its map would have no keys.
        """
        made = [one for one in (*self.scores, *self.missed) if one.became(values)]
        if not made and tuple(values.shape[-2:]) != tuple(weights.shape[-2:]):
            near = [one for one in (*self.scores, *self.missed) if one.is_near(values, modules)]
            made = [one for one in near if one.fits(values) and not one.fits(weights)]
        return bool(made) and not any(one.fits(weights) for one in self.scores if one not in made)

    def find(self, x: Tensor, modules: tuple[int, ...] | None) -> Iterator[ScoreProduct]:
        """Such products, the last first."""
        return (one for one in reversed(self.scores) if one.fits(x) and (modules is None or one.is_near(x, modules)))


def describe_product(modules: tuple[int, ...], left: Tensor, right: Tensor, out: Tensor) -> ScoreProduct:
    """What is remembered of a product of activations, (…, q, d) × (…, d, k)."""
    sizes = {*left.shape[-2:], *right.shape[-2:]}
    q, k = out.shape[-2:]
    return ScoreProduct(modules, (out.shape[:-2].numel(), q, k), mark_of(out), len(sizes) == 1, sample_of(out))


def mark_of(x: Tensor) -> tuple[int, float, float]:
    """Where a tensor begins, its first number and its last: memory that was freed is used again by other numbers."""
    return x.data_ptr(), float(x[(0,) * x.ndim]), float(x[(-1,) * x.ndim])


def sample_of(x: Tensor) -> tuple[float, ...]:
    """Numbers of the first row and of the last."""
    first, last = x[(0,) * (x.ndim - 1)], x[(-1,) * (x.ndim - 1)]
    return tuple(float(number) for number in (first[0], first[-1], last[0], last[-1]))


def in_proportion(numbers: tuple[float, ...], others: tuple[float, ...]) -> bool:
    """Whether these are the other numbers, all multiplied by one."""
    if not numbers or not all(numbers) or not all(others):
        return False
    ratios = [a / b for a, b in zip(numbers, others)]
    return max(ratios) - min(ratios) < 1e-4 * abs(ratios[0])


def place_in_memory(x: Tensor) -> int:
    """Where the numbers of a tensor begin, whichever of them it shows; −1 for tensors that hold none of their own."""
    try:
        return x.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return -1


def sizes_of(x: Tensor) -> tuple[int, ...]:
    return tuple(sorted(size for size in x.shape if size > 1))


def is_same(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors are the same numbers, as views of one another."""
    return x.numel() == y.numel() and x.data_ptr() == y.data_ptr()


def is_normalised(weights: Tensor) -> bool:
    """Whether each row adds up to one, or is blind and adds up to nothing; and not all of it is an even mean.

    Means, one-hot rows and other choices weigh what they choose alike, so they are no attention weights.
    """
    if weights.shape[-1] < 2 or not weights.numel() or not weights.is_floating_point():
        return False
    slack = 1e-3 if weights.dtype in (torch.float32, torch.float64) else 3e-2
    last = float(weights[(0,) * (weights.ndim - 2)][-1].sum(dtype=torch.float32))  # one row says no of most tensors
    if not (abs(last - 1) < slack or abs(last) < slack):
        return False
    total, least, most = weights.sum(-1, dtype=torch.float32), weights.amin(), weights.amax(-1, keepdim=True)
    whole = (total - 1).abs() < slack
    if float(least) < 0 or not bool((whole | (total.abs() < slack)).all()) or not bool(whole.any()):
        return False
    return bool(((weights > 0) & (weights < most * (1 - 1e-3))).any())
