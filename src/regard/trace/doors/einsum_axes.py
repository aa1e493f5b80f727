"""The axes of an einsum of two operands that is a batched product, in whatever order its letters stand."""

from functools import cache
from typing import NamedTuple


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


@cache
def product_axes(equation: str) -> ProductAxes | None:
    """One axis that is added over, one of rows, one of columns, one or two that lead; None for any other einsum.

    >>> product_axes("ijbn,jbnd->ibnd")
    ProductAxes(left=(2, 3, 0, 1), right=(1, 2, 0, 3), out=(1, 2, 0, 3))
    >>> product_axes("bhqd,bhkd->bqk") is None
    True
    """
    equation = equation.replace(" ", "")
    if "->" not in equation or "." in equation:
        return None
    given, out = equation.split("->")
    left, comma, right = given.partition(",")
    if not comma or any(len(set(letters)) != len(letters) for letters in (left, right, out)):
        return None
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
