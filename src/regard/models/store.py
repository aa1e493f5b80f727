"""A model of our own as a folder: weights in safetensors, and a manifest that says what they are.

The manifest is written last and holds the checksums of the weights and of what lies beside them, such as the
vocabularies of a translator, so that what was not finished is recognised.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.errors import ModelError, RegardError
from regard.files import make_folder, put
from regard.models.config import ModelConfig, as_field, is_field, sizes_in
from regard.models.int8 import pack_rows, unpack_rows
from regard.models.kinds import KINDS, Kind, kind_of_config

FORMAT = "regard-model/1"
MANIFEST, WEIGHTS = "manifest.json", "model.safetensors"
DEVICES = {"CON", "PRN", "AUX", "NUL"} | {f"{port}{number}" for port in ("COM", "LPT") for number in range(1, 10)}


def write(
    folder: Path,
    model: nn.Module,
    config: ModelConfig,
    facts: Mapping[str, Any],
    files: Mapping[str, bytes] | None = None,
    *,
    dtype: torch.dtype | None = None,
) -> dict[str, Any]:
    """The manifest, after it, the weights and `files` were written to `folder`; `facts` are what else it says.

    `dtype` is how weights are stored where that is not how they are: float16 takes half the space, int8 a quarter
    (`models.int8` says how), and `read` gives float32 again.
    """
    own = {name: tensor.detach().contiguous() for name, tensor in model.state_dict().items()}
    packed = dtype == torch.int8
    state = pack_rows(own) if packed else {name: tensor.to(dtype or tensor.dtype) for name, tensor in own.items()}
    lost = next((name for name, tensor in state.items() if not tensor.isfinite().all()), None)
    if lost is not None:
        raise ModelError(
            f"{lost} has numbers that are not finite as {state[lost].dtype}; store it as torch.float32, "
            "and if that does not help, the model has diverged"
        )
    beside = dict(files or {})
    for name in beside:
        must_be_plain(folder, name)
    make_folder(folder)
    data = save(state)
    manifest = {
        "format": FORMAT,
        **facts,
        "kind": kind_of_config(config).name,
        "config": asdict(config),
        "weights": {
            "file": WEIGHTS,
            "parameters": sum(p.numel() for p in model.parameters()),
            "dtype": str(torch.int8 if packed else next(iter(state.values())).dtype).removeprefix("torch."),
            **checksum_of(data),
        },
        **({"files": {name: checksum_of(content) for name, content in beside.items()}} if beside else {}),
    }
    for name, content in {**beside, WEIGHTS: data}.items():
        put(folder / name, content)
    put(folder / MANIFEST, (json.dumps(manifest, indent=1, ensure_ascii=False) + "\n").encode())
    return manifest


def checksum_of(data: bytes) -> dict[str, Any]:
    """The size and the SHA-256 of a file, as a manifest has them."""
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def must_be_plain(folder: Path, name: str) -> None:
    device = name.partition(".")[0].rstrip().upper() in DEVICES or name != name.rstrip(". ")  # on Windows no file
    if name in (MANIFEST, WEIGHTS, "", ".", "..") or set(name) & set("/\\:\0") or device:
        raise ModelError(f"{name!r} cannot lie beside the weights in {folder}; give it a plain name of its own")


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
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if version != FORMAT:
        raise ModelError(
            f"{folder / MANIFEST} has format {version!r}, but {FORMAT!r} is read here; write the model again"
        )
    return manifest


def vocabulary_of(folder: Path) -> list[str]:
    """The words of the model in a folder that `write` made, in the order of their ids."""
    words = describe(folder).get("vocabulary")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ModelError(f"{folder / MANIFEST} has no vocabulary; write the model again with its words")
    return words


def read(folder: Path) -> nn.Module:
    """The model in a folder that `write` made, in eval mode, in float32. Nothing larger than the file is made."""
    manifest = describe(folder)
    data = read_verified(folder, WEIGHTS, manifest.get("weights"))
    for name in files_of(folder, manifest):
        read_file(folder, name)
    try:
        state = unpack_rows(load(data))
    except SafetensorError as error:
        raise ModelError(f"{folder / WEIGHTS} is no safetensors file ({error}); write the model again") from error
    config = config_of(folder, manifest, state)
    try:
        with torch.device("meta"), SkipInit():  # sizes alone: a config that lies about them costs no memory
            wanted = {name: tuple(tensor.shape) for name, tensor in config.build().state_dict().items()}
    except (RegardError, ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise ModelError(f"{folder / MANIFEST} describes no model: {error}") from error
    if wanted != {name: tuple(tensor.shape) for name, tensor in state.items() if tensor.is_floating_point()}:
        raise other_tensors(folder)
    model = config.build()
    model.load_state_dict(state)
    return model.eval()


class SkipInit(TorchFunctionMode):
    """Weights that are read anyway are not drawn first: on the meta device that would load the compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__module__", "") == "torch.nn.init":
            return args[0] if args else next(iter((kwargs or {}).values()))
        return func(*args, **(kwargs or {}))


def read_file(folder: Path, name: str) -> bytes:
    """What was written beside the weights under this name, as it was."""
    files = files_of(folder, describe(folder))
    if name not in files:
        there = f"there are: {', '.join(files)}" if files else "there is nothing beside the weights"
        raise ModelError(f"{folder} has no {name!r}; {there}")
    return read_verified(folder, name, files[name])


def files_of(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """What the manifest says of the files beside the weights, none of which lies elsewhere."""
    files = manifest.get("files", {})
    if not isinstance(files, dict):
        raise ModelError(f"{folder / MANIFEST} has no list of files; write the model again")
    for name in files:
        must_be_plain(folder, name)
    return files


def read_verified(folder: Path, name: str, wanted: object) -> bytes:
    """The bytes of a file, if they have the checksum that the manifest says."""
    try:
        data = (folder / name).read_bytes()
    except OSError as error:
        raise ModelError(f"{folder} has no {name} that can be read; write the model again") from error
    if not isinstance(wanted, dict) or hashlib.sha256(data).hexdigest() != wanted.get("sha256"):
        raise ModelError(f"{folder / name} is not the file that its manifest describes; write the model again")
    return data


def kind_in(folder: Path, manifest: dict[str, Any]) -> Kind:
    """The kind that a manifest names."""
    name = manifest.get("kind", "gpt")  # as manifests were that name none
    if not isinstance(name, str) or name not in KINDS:
        raise ModelError(
            f"{folder / MANIFEST} is of kind {name!r}, but {', '.join(KINDS)} are read here; take a newer regard"
        )
    return KINDS[name]


def config_of(folder: Path, manifest: dict[str, Any], state: dict[str, Tensor]) -> ModelConfig:
    """The config, of the kind that the manifest names, with no size that the file could not hold."""
    kind, given = kind_in(folder, manifest), manifest.get("config")
    made = kind.config_class
    known = {field.name: field for field in fields(made)}
    name = made.__name__.removesuffix("Config")
    if not isinstance(given, dict) or not set(given) <= set(known):
        raise ModelError(f"{folder / MANIFEST} has no config of a {name}; give one with {', '.join(sorted(known))}")
    for field in known.values():
        if field.name in given:
            given[field.name] = as_field(given[field.name], field.type)
        if field.name in given and not is_field(given[field.name], field.type):
            raise ModelError(
                f"{folder / MANIFEST} describes no model: its {field.name} is {given[field.name]!r}; write it again"
            )
    try:
        config = made(**given)
    except TypeError as error:
        raise ModelError(f"{folder / MANIFEST} has no config of a {name} ({error})") from error
    must_hold(folder, {name: size for name, size in given.items() if name not in kind.unbounded}, state)
    return config


def must_hold(folder: Path, sizes: dict[str, Any], state: dict[str, Tensor]) -> None:
    """Refuse sizes that so few weights cannot have: tables and blocks are made of some even where sizes alone count."""
    numbers = sum(tensor.numel() for tensor in state.values())
    for name, given in sizes.items():
        for size in sizes_in(given):
            if name.endswith(("layers", "depths")) and size > len(state):
                raise ModelError(f"{folder / MANIFEST} speaks of {size} layers, but the file has {len(state)} tensors")
            if size > numbers:
                raise other_tensors(folder)


def other_tensors(folder: Path) -> ModelError:
    return ModelError(f"{folder / WEIGHTS} holds other tensors than the config of its manifest; write the model again")
