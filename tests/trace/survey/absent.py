"""A library that is not there, so that others that only want it for their data can be imported."""

import importlib.abc
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any
from unittest.mock import MagicMock


class AbsentModule(types.ModuleType):
    """A module in which every name exists and does nothing."""

    __path__: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock()


class AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of one library that is not installed."""

    def __init__(self, library: str) -> None:
        self.library = library

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname.split(".")[0] == self.library else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return AbsentModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def pretend(library: str) -> None:
    """Let a library be imported that is not installed."""
    sys.meta_path.append(AbsentFinder(library))
