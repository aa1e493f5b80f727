"""A model of our own as a folder: weights in safetensors, and a manifest that says what they are.

The manifest is written last and holds the checksum of the weights, so that what was not finished is recognised.
"""

import hashlib
import json
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from regard.errors import ModelError, RegardError
from regard.models.gpt import GPT, GPTConfig

FORMAT = "regard-model/1"
MANIFEST, WEIGHTS = "manifest.json", "model.safetensors"


def write(folder: Path, model: GPT, config: GPTConfig, facts: dict[str, Any]) -> dict[str, Any]:
    """The manifest, after it and the weights were written to `folder`; `facts` are what else it says."""
    folder.mkdir(parents=True, exist_ok=True)
    data = save({name: tensor.contiguous() for name, tensor in model.state_dict().items()})
    manifest = {
        "format": FORMAT,
        **facts,
        "config": asdict(config),
        "weights": {
            "file": WEIGHTS,
            "bytes": len(data),
            "parameters": sum(p.numel() for p in model.parameters()),
            "sha256": hashlib.sha256(data).hexdigest(),
        },
    }
    put(folder / WEIGHTS, data)
    put(folder / MANIFEST, (json.dumps(manifest, indent=1, ensure_ascii=False) + "\n").encode())
    return manifest


def put(path: Path, data: bytes) -> None:
    """Writes the file whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def describe(folder: Path) -> dict[str, Any]:
    """The manifest of a folder that `write` made."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except OSError as error:
        raise ModelError(
            f"{folder} has no {MANIFEST} that can be read; give the folder of a model of regard"
        ) from error
    except ValueError as error:
        raise ModelError(f"{folder / MANIFEST} is no JSON ({error}); write the model again") from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        raise ModelError(
            f"{folder / MANIFEST} has format {found!r}, but {FORMAT!r} is read here; write the model again"
        )
    return manifest


def vocabulary_of(folder: Path) -> list[str]:
    """The words of the model in a folder that `write` made, in the order of their ids."""
    words = describe(folder).get("vocabulary")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ModelError(f"{folder / MANIFEST} has no vocabulary; write the model again with its words")
    return words


def read(folder: Path) -> GPT:
    """The model in a folder that `write` made, in eval mode. Nothing larger than the file is made."""
    manifest = describe(folder)
    try:
        data = (folder / WEIGHTS).read_bytes()
    except OSError as error:
        raise ModelError(f"{folder} has no {WEIGHTS} that can be read; write the model again") from error
    if hashlib.sha256(data).hexdigest() != dict(manifest.get("weights") or {}).get("sha256"):
        raise ModelError(f"{folder / WEIGHTS} is not the file that its manifest describes; write the model again")
    try:
        state = load(data)
    except SafetensorError as error:
        raise ModelError(f"{folder / WEIGHTS} is no safetensors file ({error}); write the model again") from error
    config = config_of(folder, manifest, tensors=len(state))
    try:
        with torch.device("meta"):  # sizes alone: a config that lies about them costs no memory
            wanted = {name: tuple(tensor.shape) for name, tensor in config.build().state_dict().items()}
    except (RegardError, ValueError, TypeError, RuntimeError) as error:
        raise ModelError(f"{folder / MANIFEST} describes no model: {error}") from error
    if wanted != {name: tuple(tensor.shape) for name, tensor in state.items()}:
        raise ModelError(
            f"{folder / WEIGHTS} holds other tensors than the config of its manifest; write the model again"
        )
    model = config.build()
    model.load_state_dict(state)
    return model.eval()


def config_of(folder: Path, manifest: dict[str, Any], tensors: int) -> GPTConfig:
    """The config, with no more layers than there are tensors."""
    given = manifest.get("config")
    known = {field.name for field in fields(GPTConfig)}
    if not isinstance(given, dict) or not set(given) <= known:
        raise ModelError(f"{folder / MANIFEST} has no config of a GPT; give one with {', '.join(sorted(known))}")
    try:
        config = GPTConfig(**given)
    except TypeError as error:
        raise ModelError(f"{folder / MANIFEST} has no config of a GPT ({error})") from error
    if not isinstance(config.layers, int) or config.layers > tensors:
        raise ModelError(f"{folder / MANIFEST} speaks of {config.layers} layers, but the file has {tensors} tensors")
    return config
