"""Hyper-parameters of a model as settings: names and types are those of its config, which lists them once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from regard.errors import ConfigError
from regard.models.config import ModelConfig

M = TypeVar("M", bound=BaseModel)
C = TypeVar("C", bound=ModelConfig)


class Hyperparameter(NamedTuple):
    """What a setting says of a field of a config, beyond its name and its type."""

    description: str
    default: Any = None  # for training; that of the config unless given
    choices: tuple[str, ...] = ()
    least: int = 1  # of a whole number
    most: int | None = None


def with_hyperparameters(
    *configs: type[ModelConfig], **described: Hyperparameter | str
) -> Callable[[type[M]], type[M]]:
    """Decorate settings: they get these fields of the configs of models, each described for those who set them.

    >>> from regard.models import GPTConfig
    >>> @with_hyperparameters(GPTConfig, width=Hyperparameter("hidden size", 64), norm="normalisation")
    ... class Sizes(BaseModel):
    ...     pass
    >>> Sizes(), Sizes.model_fields["width"].annotation
    (Sizes(width=64, norm='layer'), <class 'int'>)
    """

    def add(kind: type[M]) -> type[M]:
        for name, about in described.items():
            annotation, field = make_field(configs, name, Hyperparameter(about) if isinstance(about, str) else about)
            kind.__annotations__[name] = annotation
            kind.model_fields[name] = FieldInfo.from_annotated_attribute(annotation, field)
        kind.model_rebuild(force=True)
        return kind

    return add


def make_field(configs: Sequence[type[ModelConfig]], name: str, about: Hyperparameter) -> tuple[Any, Any]:
    """The type of a setting, and the setting: as the first config has it that knows the name."""
    known = next((field for config in configs for field in fields(config) if field.name == name), None)
    if known is None:
        raise ConfigError(
            f"no field {name!r} is in {', '.join(config.__name__ for config in configs)}; name one that is"
        )
    kind = next(
        kind for kind in (bool, int, float, str) if kind is known.type or kind in getattr(known.type, "__args__", ())
    )
    default = known.default if about.default is None else about.default
    limits: dict[Any, dict[str, Any]] = {int: {"ge": about.least, "le": about.most}, float: {"ge": 0, "lt": 1}}
    return Literal[about.choices] if about.choices else kind, Field(
        default, description=about.description, **limits.get(kind, {})
    )


def fill_config(config: type[C], settings: BaseModel, **more: Any) -> C:
    """A config with the values of the settings of the same names; what is "" there has the default of the config.

    >>> from regard.models import GPTConfig
    >>> class Sizes(BaseModel):
    ...     width: int = 8
    ...     heads: int = 2
    ...     positions: str = ""
    >>> fill_config(GPTConfig, Sizes(), vocab_size=10, layers=1, context=16).positions
    'learned'
    """
    known = {field.name for field in fields(config)}
    given: Mapping[str, Any] = settings.model_dump()
    return config(**{name: value for name, value in given.items() if name in known and value != ""} | more)
