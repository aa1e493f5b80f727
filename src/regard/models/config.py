"""The hyper-parameters of a model: one frozen dataclass per kind, the only place where they are listed."""

from dataclasses import dataclass
from typing import Any

from torch import nn

WHOLE_NUMBERS = tuple[int, ...]  # the type of a field with a number for each stage


@dataclass(frozen=True)
class ModelConfig:
    """A frozen dataclass of plain values, as they stand in a manifest, that builds a model.

    Models take their config as the one argument of their constructor, `store` writes and reads its fields by name,
    and settings of training are filled into it; what a field means is said beside it, once.
    """

    def build(self) -> nn.Module:
        """A model of these sizes with random weights."""
        raise NotImplementedError


def as_field(value: Any, kind: Any) -> Any:
    """A value as a field of this type has it, from JSON, which writes 0.0 as it likes and knows no tuples.

    >>> as_field(0, float), as_field([2, 6], WHOLE_NUMBERS), as_field("x", int)
    (0.0, (2, 6), 'x')
    """
    if kind in (float, float | None) and type(value) is int:
        return float(value)
    return tuple(value) if kind == WHOLE_NUMBERS and isinstance(value, list) else value


def is_field(value: Any, kind: Any) -> bool:
    """Whether a value is of the type of a field.

    >>> is_field(3, int | None), is_field((2, 6), WHOLE_NUMBERS), is_field((2, "x"), WHOLE_NUMBERS)
    (True, True, False)
    """
    if kind == WHOLE_NUMBERS:
        return isinstance(value, tuple) and all(type(one) is int for one in value)
    return isinstance(value, kind)


def sizes_in(value: Any) -> tuple[int, ...]:
    """The whole numbers that a field has: one, one for each stage and their sum, or none.

    >>> sizes_in(3), sizes_in((2, 6)), sizes_in("x")
    ((3,), (2, 6, 8), ())
    """
    if isinstance(value, tuple):
        return (*value, sum(value))
    return (value,) if type(value) is int else ()
