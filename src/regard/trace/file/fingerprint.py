"""Which weights made a trace: a short digest of a model, quick enough to take at every watch."""

import hashlib
from collections.abc import Iterator
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import TraceError
from regard.trace.record.trace import Trace

SAMPLED = 64  # numbers of each tensor that are looked at, evenly spread

SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@torch.no_grad()
def fingerprint(model: nn.Module) -> str:
    """A digest of the names, shapes, kinds and some of the numbers of all parameters and saved buffers.

    The same in every process; another after a step of training. Numbers are sampled, so a change of a few of them may
    go unseen. Wrappers that change no weight (`torch.compile`, DataParallel) do not change it.

    >>> layer = nn.Linear(2, 3)
    >>> before = fingerprint(layer)
    >>> before == fingerprint(layer)
    True
    >>> before == fingerprint(layer.half())
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(saved_tensors(model), key=lambda item: item[0]):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode("utf-8", "surrogatepass"))
        digest.update(sample(tensor))
    return digest.hexdigest()


def check(trace: Trace, model: nn.Module) -> None:
    """Raise `TraceError` where the trace was made by other weights than the model has; silent where it does not say.

    >>> check(Trace(model="Linear", fingerprint="0123456789abcdef"), nn.Linear(2, 3))
    Traceback (most recent call last):
        ...
    regard.errors.TraceError: the trace was made by other weights (Linear, 01234567) than this Linear has (...); ...
    """
    if not trace.fingerprint:
        return
    found = fingerprint(model)
    if found != trace.fingerprint:
        raise TraceError(
            f"the trace was made by other weights ({trace.model or 'a model'}, {trace.fingerprint[:8]}) than this "
            f"{type(model).__name__} has ({found[:8]}); load the weights that made it, or watch this model"
        ).with_code("edit.weights")


def saved_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters, and buffers that a checkpoint would hold: others, such as tables of angles, may grow with use."""
    passing = {
        f"{path}.{name}" if path else name
        for path, module in model.named_modules()
        for name in module._non_persistent_buffers_set
    }
    for name, tensor in chain(model.named_parameters(), model.named_buffers()):
        if name not in passing:
            yield plain_name(name), tensor


def plain_name(name: str) -> str:
    return name.replace("_orig_mod.", "").removeprefix("module.")


def sample(tensor: Any) -> bytes:
    """Some of the numbers as bytes; none where there are none to read."""
    if tensor.is_meta or not tensor.numel() or type(tensor) not in (Tensor, nn.Parameter) or tensor.is_sparse:
        return b""
    tensor = tensor.detach()
    flat = (torch.view_as_real(tensor) if tensor.is_complex() else tensor).reshape(-1)
    some = flat[:: max(1, flat.numel() // SAMPLED)].cpu()
    return some.view(SAME_SIZE[some.dtype.itemsize]).numpy().tobytes()  # NumPy does not know every kind of number
