"""A folder in the layout of `transformers`, looked at before anything of it is read: which files hold its weights."""

import json
import os
from pathlib import Path
from typing import Any

from regard.errors import ModelError

SAFE, PICKLED = ".safetensors", (".bin", ".pt", ".pth", ".ckpt")
INDEX = "model.safetensors.index.json"


def missing_file(folder: Path) -> str | None:
    """A file that a model in the cache lacks, because its download was cut short or its weights were never wanted."""
    names = sorted(os.listdir(folder))
    parts = read_json(folder / INDEX, "cannot be read").get("weight_map") if INDEX in names else None
    wanted = [*names, *sorted({str(part) for part in parts.values()} if isinstance(parts, dict) else ())]
    if not any(name.endswith((SAFE, *PICKLED)) for name in wanted):
        return "model.safetensors"
    return next((name for name in wanted if not (folder / name).exists()), None)


def must_be_safe(folder: Path, config: dict[str, Any]) -> None:
    """Refuse weights that are not safetensors through and through: reading a pickle can run anything."""
    names = sorted(file.name for file in folder.iterdir())
    if "adapter_config.json" in names:
        raise ModelError(f"{folder} holds an adapter for another model; merge the two, and save the whole model")
    weights = [name for name in names if name.endswith(SAFE)]
    if INDEX in names:
        parts = read_json(folder / INDEX, "cannot be read").get("weight_map")
        weights = [str(part) for part in parts.values()] if isinstance(parts, dict) else []
    if config.get("transformers_weights"):
        weights.append(str(config["transformers_weights"]))
    others = weights or [name for name in names if name.endswith(PICKLED)]
    refused = next((name for name in others if not name.endswith(SAFE)), None)
    if refused is not None:
        raise ModelError(
            f"{folder} has weights in {refused}, which is no safetensors file, and reading a pickle can run anything; "
            "convert it with model.save_pretrained(folder), which writes safetensors"
        )
    if not weights:
        raise ModelError(f"{folder} has no weights; give a folder with model.safetensors in it")


def read_json(path: Path, lacking: str) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelError(f"{path.parent} {lacking}") from error
    except ValueError as error:
        raise ModelError(f"{path} is no JSON ({error}); save the model again") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path} holds no object; save the model again")
    return content
