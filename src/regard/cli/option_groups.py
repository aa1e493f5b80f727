"""Commands with many options: a dataclass holds them, and each of its fields becomes an option."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: where a parameter is a dataclass, an option for each of its fields.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Sizes:
    ...     width: int = 3
    ...     heads: int = 2
    >>> @with_option_groups
    ... def build(name: str, sizes: Sizes) -> None:
    ...     print(name, sizes)
    >>> inspect.signature(build)
    <Signature (name: str, width: int = 3, heads: int = 2) -> None>
    >>> build(name="gpt", width=8)
    gpt Sizes(width=8, heads=2)
    """
    signature, hints = inspect.signature(command), get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        own = [parameter.replace(annotation=hints[parameter.name])]
        parameters += make_parameters(groups[parameter.name]) if parameter.name in groups else own

    @wraps(command)
    def run(**values: Any) -> None:
        made = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group) if field.name in values})
            for name, group in groups.items()
        }
        command(**values, **made)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    del run.__wrapped__  # else its signature would be read
    return run


def make_parameters(group: type) -> list[inspect.Parameter]:
    """A parameter for each field, with its type and default."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=field.default, annotation=hints[field.name]
        )
        for field in fields(group)
    ]
