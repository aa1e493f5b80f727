"""Settings that differ: of a run from the defaults of its task, of several runs from each other."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

ABSENT = "–"  # of a run whose task has no such setting


def changed_settings(kind: type[BaseModel], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are not what they are by default, and those that this version does not know.

    >>> from regard.training.settings import Settings
    >>> changed_settings(Settings, {"steps": 2000, "lr": 0.002, "betas": [0.9, 0.98], "quantum": 3})
    {'lr': 0.002, 'quantum': 3}
    """
    defaults = {
        name: as_json(field.get_default(call_default_factory=True))
        for name, field in kind.model_fields.items()
        if not field.is_required()
    }
    return {name: value for name, value in settings.items() if name not in defaults or defaults[name] != value}


def different_settings(runs: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The settings in which runs differ, with the value of each run; `ABSENT` where one has none.

    >>> different_settings([{"steps": 9, "lr": 0.1, "heads": 4}, {"steps": 9, "lr": 0.2}])
    {'lr': [0.1, 0.2], 'heads': [4, '–']}
    """
    names = list(dict.fromkeys(name for run in runs for name in run))
    rows = {name: [run.get(name, ABSENT) for run in runs] for name in names}
    return {name: values for name, values in rows.items() if any(value != values[0] for value in values)}


def as_json(value: Any) -> Any:
    """A default as run.json has it: a tuple is a list there."""
    return list(value) if isinstance(value, tuple) else value
