"""A model family of another library as a table: its config keys, its tensors, and what becomes of each."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from regard.models.convert.operations import Operation

REQUIRED: Any = object()  # the default of a key that a config must have
Prepared = tuple[dict[str, Any], Mapping[str, Tensor]]  # config and tensors, each with what the other says of it


@dataclass(frozen=True)
class ConfigKey:
    """A key of the foreign config and the field of ours that it becomes."""

    theirs: str
    ours: str
    default: Any = REQUIRED  # what it means that the key is missing
    values: Mapping[Any, Any] | None = None  # their value → ours; None: the same, and any is taken
    unset: Any = None  # what it means that ours is None


@dataclass(frozen=True)
class TensorRule:
    """Tensors of ours that are made of tensors of theirs. `{layer}` in a name counts from 0."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    operations: tuple[Operation, ...] = ()
    unless: str | None = None  # a tensor of ours: a model that has it has another rule in place of this one

    @property
    def repeats(self) -> bool:
        """Whether there is one per layer."""
        return any("{layer}" in name for name in self.ours)

    def at(self, layer: int) -> "TensorRule":
        """The same rule for one layer."""
        ours, theirs = (tuple(n.replace("{layer}", str(layer)) for n in names) for names in (self.ours, self.theirs))
        unless = None if self.unless is None else self.unless.replace("{layer}", str(layer))
        return TensorRule(ours, theirs, self.operations, unless)


@dataclass(frozen=True)
class ConversionTable:
    """All that is known about one family; `convert_config` and `convert_weights` apply it."""

    family: str
    config: type[Any]  # the class of our config
    keys: tuple[ConfigKey, ...]
    rules: tuple[TensorRule, ...]
    always: Mapping[str, Any] = field(default_factory=dict)  # fields of our config that this family always has
    fixed: Mapping[str, Any] = field(default_factory=dict)  # their keys for which ours has one value only
    ignored: frozenset[str] = frozenset()  # their keys that change no number in eval mode
    flatten: Callable[[dict[str, Any]], dict[str, Any]] = dict  # their config with nested keys made plain ones
    resolve: Callable[[Any], Any] = lambda config: config  # our config with every size that it leaves open as a number
    nest: Callable[[dict[str, Any]], dict[str, Any]] = dict  # the way back: plain keys as their config has them
    prepare: Callable[[dict[str, Any], Mapping[str, Tensor]], Prepared] = lambda config, state: (config, state)
    prefix: str = ""  # before the names of the body, which are stored without it where there is no head
    headless: Callable[[Any], bool] = lambda config: False  # whether a model of this config of ours is stored so
    copies: Callable[[Any], Mapping[str, str]] = lambda config: {}  # second names of tensors, by our config → the first
    constants: Mapping[str, Callable[[Any], Tensor]] = field(default_factory=dict)  # tensors that follow from a config
    architecture: Callable[[Any], str | None] = lambda config: None  # their class for a model of this config of ours
    leftovers: tuple[str, ...] = ()  # tensors of old files that hold nothing learned


def rename(ours: str, theirs: str, *operations: Operation) -> Iterator[TensorRule]:
    """Rules for the weight and the bias of a module; `operations` are for the weight alone.

    A rule whose tensors our model does not have (a norm without bias) is not applied.

    >>> [rule.theirs for rule in rename("norm", "ln_f")]
    [('ln_f.weight',), ('ln_f.bias',)]
    """
    yield TensorRule((f"{ours}.weight",), (f"{theirs}.weight",), operations)
    yield TensorRule((f"{ours}.bias",), (f"{theirs}.bias",))
