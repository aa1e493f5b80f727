"""The models that come with the package."""

import json
from typing import Any

from regard.models import embedded


def listed(*, as_json: bool = False) -> str:
    """One paragraph for each model: its name, what it is, its size, and the command that made it."""
    found = {name: embedded.describe(name) for name in embedded.names()}
    if as_json:
        return json.dumps({name: facts(manifest) for name, manifest in found.items()}, ensure_ascii=False)
    told = [paragraph(name, facts(manifest)) for name, manifest in found.items()]
    first = next(iter(found))
    return "\n\n".join([*told, f'Look at one: regard see "A B C A B" --model {first}'])


def facts(manifest: dict[str, Any]) -> dict[str, Any]:
    weights = manifest.get("weights") or {}
    return {
        "about": manifest.get("about", ""),
        "parameters": weights.get("parameters"),
        "bytes": weights.get("bytes"),
        "command": manifest.get("command", ""),
        "scores": manifest.get("scores", {}),
    }


def paragraph(name: str, known: dict[str, Any]) -> str:
    size = f"{known['parameters']:,} parameters, {known['bytes'] / 1e6:.1f} MB"
    scores = [f"{key} {value:.3f}" for key, value in known["scores"].items() if isinstance(value, float)]
    return "\n".join(
        [
            f"{name}: {known['about']}",
            f"  {'; '.join([size, *scores])}",
            f"  made by: {known['command']}",
        ]
    )
