"""The models that come with the package."""

from typing import Any

from regard.cli.harmless import format_json
from regard.models import embedded
from regard.models.kinds import kind_named

WORDS = "induction"  # the model whose words are letters


def list_models(*, as_json: bool = False) -> str:
    """One paragraph for each model: what it is, its size, what it learned from, and the command that made it."""
    manifests = {name: embedded.describe(name) for name in embedded.names()}
    if as_json:
        return format_json({name: facts(manifest) for name, manifest in manifests.items()})
    paragraphs = [paragraph(name, facts(manifest)) for name, manifest in manifests.items()]
    return "\n\n".join([*paragraphs, "\n".join(next_steps(manifests))])


def next_steps(manifests: dict[str, dict[str, Any]]) -> list[str]:
    """What to type next: for the first translator, the first model that writes sentences, and the model of letters."""
    kinds = {name: kind_named(manifest.get("kind", "gpt")) for name, manifest in manifests.items()}
    translators = [name for name, kind in kinds.items() if "translate" in kind.tasks]
    readers = sorted((name for name, kind in kinds.items() if "read" in kind.tasks), key=lambda name: name != WORDS)
    writers = [name for name, kind in kinds.items() if "generate" in kind.tasks and name != WORDS]
    return [
        "Try all: regard demo tasks",
        *(f'Try one: regard translate -m {name} "The cat sat on the mat." --see' for name in translators[:1]),
        *(f'Write with one: regard generate {name} "A man" --probs' for name in writers[:1]),
        *(f'Look at one: regard see "A B C A B" --model {name}' for name in readers[:1]),
    ]


def facts(manifest: dict[str, Any]) -> dict[str, Any]:
    weights = manifest.get("weights") or {}
    return {
        "about": manifest.get("about", ""),
        "limits": manifest.get("limits", ""),
        "kind": manifest.get("kind", "gpt"),
        "parameters": weights.get("parameters"),
        "bytes": weights.get("bytes"),
        "data": [{key: one.get(key, "") for key in ("name", "licence")} for one in manifest.get("data", [])],
        "command": manifest.get("command", ""),
        "made_by": manifest.get("made_by") or manifest.get("command", ""),
        "scores": manifest.get("scores", {}),
    }


def paragraph(name: str, known: dict[str, Any]) -> str:
    size = f"{known['parameters']:,} parameters, {known['bytes'] / 1e6:.1f} MB"
    scores = [format_score(key, value) for key, value in known["scores"].items() if isinstance(value, float | dict)]
    return "\n".join(
        [
            f"{name}: {known['about']}",
            f"  {'; '.join([size, *scores])}",
            *([f"  {known['limits']}"] if known["limits"] else []),
            *(f"  learned from: {one['name']} ({one['licence']})" for one in known["data"]),
            f"  made by: {known['made_by']}",
            *([f"  train one like it: {known['command']}"] if known["made_by"] != known["command"] else []),
        ]
    )


def format_score(name: str, value: float | dict[str, Any]) -> str:
    """A score, or those on one part of the data; how they were computed is in the manifest.

    >>> format_score("test", {"bleu": 36.892, "sentences": 1002, "signatures": ["tok:zh"]})
    'test: bleu 36.89, sentences 1002'
    """
    if isinstance(value, float):
        return f"{name} {value:.3f}"
    return f"{name}: " + ", ".join(f"{key} {one:.4g}" for key, one in value.items() if isinstance(one, int | float))
