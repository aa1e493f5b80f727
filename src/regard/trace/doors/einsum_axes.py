"""The axes of an einsum of two operands in which weights meet values, in whatever order its letters stand."""

from functools import cache
from typing import NamedTuple

from torch import Tensor


class ProductAxes(NamedTuple):
    """The axes of each operand and of the outcome, in the order (…, q, k), (…, k, e), (…, q, e)."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    out: tuple[int, ...]

    def transpose(self) -> "ProductAxes":
        """The same product with the operands in each other's place: right.T × left.T = out.T."""
        return ProductAxes(swap(self.right), swap(self.left), swap(self.out))


def swap(axes: tuple[int, ...]) -> tuple[int, ...]:
    return (*axes[:-2], axes[-1], axes[-2])


def read_letters(equation: str) -> tuple[str, str, str] | None:
    """The letters of both operands and of the outcome, none of them twice; None for any other einsum.

    >>> read_letters("bqk, bkd -> bqd")
    ('bqk', 'bkd', 'bqd')
    """
    given, arrow, out = equation.replace(" ", "").partition("->")
    left, comma, right = given.partition(",")
    told = (left, right, out)
    if not arrow or not comma or "." in equation or any(len(set(letters)) != len(letters) for letters in told):
        return None
    return told


@cache
def product_axes(equation: str) -> ProductAxes | None:
    """One axis that is added over, one of rows, one of columns, one or two that lead; None for any other einsum.

    >>> product_axes("ijbn,jbnd->ibnd")
    ProductAxes(left=(2, 3, 0, 1), right=(1, 2, 0, 3), out=(1, 2, 0, 3))
    >>> product_axes("bhqd,bhkd->bqk") is None
    True
    """
    if (letters := read_letters(equation)) is None:
        return None
    left, right, out = letters
    lead = [letter for letter in left if letter in right and letter in out]
    added = [letter for letter in left if letter in right and letter not in out]
    rows, columns = [x for x in left if x not in right], [x for x in right if x not in left]
    if [len(added), len(rows), len(columns)] != [1, 1, 1] or not 1 <= len(lead) <= 2:
        return None
    if set(out) != {*lead, *rows, *columns}:
        return None
    return ProductAxes(
        tuple(left.index(x) for x in (*lead, *rows, *added)),
        tuple(right.index(x) for x in (*lead, *added, *columns)),
        tuple(out.index(x) for x in (*lead, *rows, *columns)),
    )


@cache
def matmul_axes(ndim: int) -> ProductAxes:
    """Those of a plain product of two tensors with this many axes."""
    axes = tuple(range(ndim))
    return ProductAxes(axes, axes, axes)


class MixingAxes(NamedTuple):
    """Where weights, the left operand, meet values: the axes of the values, and of the outcome in the order (…, q, e).

    An axis of None is one that values have not, because all of them share it.
    """

    values: tuple[int | None, ...]
    out: tuple[int, ...]

    def align(self, values: Tensor) -> Tensor:
        """Values as (…, k, e), with axes of size 1 where they are shared."""
        aligned = values.permute([axis for axis in self.values if axis is not None])
        for at, axis in enumerate(self.values):
            aligned = aligned.unsqueeze(at) if axis is None else aligned
        return aligned


@cache
def mixing_axes(equation: str) -> MixingAxes | None:
    """How an einsum lets weights (…, q, k) meet values, whatever the order of their axes; None for any other einsum.

    Values of each query's own have the letter of the queries, and are none.

    >>> mixing_axes("bkgqs,bskd->bqkgd")
    MixingAxes(values=(0, 2, None, 1, 3), out=(0, 2, 3, 1, 4))
    >>> mixing_axes("bhqk,qkd->bhqd") is None
    True
    """
    letters = read_letters(equation)
    if letters is None or len(letters[0]) < 3:
        return None
    left, right, out = letters
    lead, q, k = list(left[:-2]), left[-2], left[-1]
    channels = [x for x in right if x not in left]
    if len(channels) != 1 or k not in right or q in right or set(out) != {*lead, q, *channels}:
        return None
    at = {letter: i for i, letter in enumerate(right)}
    values = (*(at.get(x) for x in lead), at[k], at[channels[0]])
    return MixingAxes(values, tuple(out.index(x) for x in (*lead, q, *channels)))


def swap_operands(equation: str) -> str:
    """The same einsum with its two operands in each other's place.

    >>> swap_operands("bkd, bqk -> bqd")
    'bqk,bkd->bqd'
    """
    given, arrow, out = equation.replace(" ", "").partition("->")
    left, _, right = given.partition(",")
    return f"{right},{left}{arrow}{out}"


@cache
def spell_out(equation: str, left: int, right: int) -> str:
    """The same einsum with letters for what "..." stands for, where its operands have so many axes.

    >>> spell_out("... i j, ... j d -> ... i d", 4, 3)
    'ABij,Bjd->ABid'
    """
    equation = equation.replace(" ", "")
    given, _, out = equation.partition("->")
    parts = given.split(",")
    if "..." not in equation or len(parts) != 2:
        return equation
    counts = [ndim - len(part) + 3 for part, ndim in zip(parts, (left, right)) if "..." in part]
    names = "ABCDEFGH"[: max(counts, default=0)]
    told = [part.replace("...", names[len(names) + len(part) - 3 - n :]) for part, n in zip(parts, (left, right))]
    return f"{','.join(told)}->{out.replace('...', names)}"
