"""A layer of a file: its tensors are read when somebody asks for them."""

from typing import Any

from torch import Tensor

from regard.trace.file.array import read_when_asked, tensor_of
from regard.trace.record.layer import Layer, ProofSample


def for_all(name: str) -> Any:
    """A property that reads its array when asked; what was kept once for all of a batch comes out for each of it."""

    def get(layer: "FileLayer") -> Tensor | None:
        found: Tensor | None = tensor_of(layer.files[name])
        batch = layer.weights.shape[0]
        return found if found is None or found.shape[0] == batch else found.expand(batch, *found.shape[1:])

    return property(get, read_when_asked(name).fset)


class FileLayer(Layer):
    """A layer whose q, k, v and gradient are in a file."""

    files: dict[str, Any]
    q, k, v, gradient = (for_all(name) for name in ("q", "k", "v", "gradient"))


class FileSeen(ProofSample):
    """What was copied while the kernel ran, in a file."""

    files: dict[str, Any]
    mix, allowed, weights, used = (read_when_asked(name) for name in ("mix", "allowed", "weights", "used"))
