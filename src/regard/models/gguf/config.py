"""The config of a model in a GGUF file as ours: every key of its architecture must be known."""

import math
from functools import partial
from typing import Any

import numpy as np

from regard.errors import ModelError
from regard.models.convert.configs import apply_keys
from regard.models.gguf.file import GGUFFile
from regard.models.gguf.tables import table_of
from regard.positions import Llama3Scaling

EMBEDDINGS, HEAD, FREQUENCIES = "token_embd.weight", "output.weight", "rope_freqs.weight"
LLAMA3 = partial(Llama3Scaling, low_frequency=1.0, high_frequency=4.0, original=8192)  # as all that were published


def read_config(file: GGUFFile) -> Any:
    """The config of our model, from the keys of the file's architecture and from what its tensors say."""
    table = table_of(file.architecture, file.path.name)
    try:
        return apply_keys(table, describe(file))
    except ModelError as error:
        raise ModelError(f"{file.path.name}: {error}") from error


def describe(file: GGUFFile) -> dict[str, Any]:
    """The keys of the architecture without its name, together with what is said by tensors alone."""
    start = f"{file.architecture}."
    keys = {key.removeprefix(start): tidy(value) for key, value in file.metadata.items() if key.startswith(start)}
    wrong = next((key for key, value in keys.items() if isinstance(value, float) and not math.isfinite(value)), None)
    if wrong is not None:
        raise ModelError(f"the config has {wrong}={keys[wrong]}, wanted a number; convert the model again")
    shapes = {info.name: info.shape for info in file.header.tensors.values()}
    if EMBEDDINGS not in shapes:
        raise ModelError(f"there is no tensor {EMBEDDINGS!r}; give the file of a whole model")
    keys.setdefault("vocab_size", shapes[EMBEDDINGS][0])
    keys["tied"] = HEAD not in shapes
    if file.architecture == "llama":
        keys |= {f"{part}_bias": f"blk.0.{one}.bias" in shapes for part, one in BIASES.items()}
        keys["window"] = keys.pop("attention.sliding_window", 0) or None
    return keys if file.architecture == "gpt2" else describe_rotary(file, describe_heads(keys))


BIASES = {"qkv": "attn_q", "out": "attn_output", "mlp": "ffn_up"}  # what adds one, by the tensor that tells


def describe_heads(keys: dict[str, Any]) -> dict[str, Any]:
    """The width of a head: all of it turns, and keys are as wide as values."""
    width, heads = keys.get("embedding_length"), keys.get("attention.head_count")
    others = {name: keys.pop(name) for name in ("attention.value_length", "rope.dimension_count") if name in keys}
    if type(width) is not int or type(heads) is not int or heads < 1:
        return keys  # which the table or the model then refuses by name
    head = keys.pop("attention.key_length", width // heads)
    for name, size in others.items():
        if size != head:
            raise ModelError(f"the config has {name}={size!r}, but a head has {head} channels, and ours are one size")
    return keys if head * heads == width else keys | {"attention.key_length": head}


def describe_rotary(file: GGUFFile, keys: dict[str, Any]) -> dict[str, Any]:
    """How rotary positions are stretched: by keys, or by factors that a tensor holds (Llama 3)."""
    if "rope.scale_linear" in keys:  # of older files
        keys |= {"rope.scaling.type": "linear", "rope.scaling.factor": keys.pop("rope.scale_linear")}
    if keys.get("rope.scaling.type") == "linear" and keys.get("rope.scaling.factor", 1.0) == 1.0:
        keys["rope.scaling.type"] = "none"
    if FREQUENCIES not in file.header.tensors:
        return keys
    factors, base = file.dequantize(FREQUENCIES).ravel(), float(keys.get("rope.freq_base", 10000.0))
    factor = tidy(float(factors.max()))
    plain = [base ** (-index / len(factors)) for index in range(len(factors))]
    wanted = np.divide(plain, LLAMA3(factor).scale(plain, base)) if factor > 1 else np.ones(1)
    if not np.allclose(factors, wanted, rtol=1e-4, atol=0):
        raise ModelError(f"the tensor {FREQUENCIES!r} stretches positions as no Llama 3 does; convert the model again")
    keys |= {"rope.scaling.type": "llama3" if factor > 1 else "none", "rope.scaling.factor": factor}
    return keys | {"rope.scaling.original_context_length": LLAMA3.keywords["original"]}


def tidy(value: Any) -> Any:
    """A number of float32 as somebody would write it.

    >>> tidy(9.999999747378752e-06), tidy(7)
    (1e-05, 7)
    """
    return float(f"{value:.7g}") if isinstance(value, float) and math.isfinite(value) else value
