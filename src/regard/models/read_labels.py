"""The names of the classes of a model, from its folder."""

import json
from pathlib import Path

from regard.models.layout import CONFIG
from regard.models.store import MANIFEST


def read_labels(folder: Path) -> list[str]:
    """The classes that a manifest of ours lists, or those in config.json, in the order of their numbers; else none.

    >>> from regard.models import embedded
    >>> read_labels(embedded.folder("filler"))
    []
    """
    try:
        if (folder / MANIFEST).exists():
            return [str(name) for name in json.loads((folder / MANIFEST).read_bytes())["classes"]]
        names = json.loads((folder / CONFIG).read_bytes())["id2label"]
        return [str(names[number]) for number in sorted(names, key=int)]
    except (OSError, ValueError, TypeError, KeyError):
        return []
