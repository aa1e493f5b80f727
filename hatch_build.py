"""What is built before the package is packed: the explorer's bundle, so that users of the wheel need no Node.

It goes along with the licences of what it holds of other people, which the same build writes beside it.
A wheel or an sdist builds it where it is missing or older than `web/src`. An editable install does not: `make` does.
"""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def web(root: str) -> ModuleType | None:
    """`web/build.py` as a module; None where the sources of the explorer are not here."""
    spec = importlib.util.spec_from_file_location("regard_web_build", Path(root) / "web/build.py")
    if spec is None or spec.loader is None or not (Path(root) / "web/build.py").exists():
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class BundleHook(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node as a package, only where it is needed and the machine has none."""
        making = web(self.root)
        return [making.PACKAGE] if making and making.stale() and making.node() is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        making = web(self.root)
        if version == "editable" or making is None:
            return
        if making.stale():
            self.app.display_info("building the explorer")
            making.build()
        build_data["artifacts"].append(str(making.LICENCES.relative_to(making.WEB.parent).as_posix()))
