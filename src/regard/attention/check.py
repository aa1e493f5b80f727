"""Whether q, k and v fit each other. Each refusal quotes what came, what was wanted and what to do."""

import torch
from torch import Tensor

from regard.attention.mask import Sizes
from regard.errors import DeviceError, DtypeError, ShapeError


def sizes_of(q: Tensor, k: Tensor, v: Tensor) -> Sizes:
    """The sizes of the map of q, k and v; raises where they do not fit."""
    qs, ks, vs = q.shape, k.shape, v.shape
    rank = len(qs)
    if q.dtype is not k.dtype or k.dtype is not v.dtype:
        raise DtypeError(
            f"q is {q.dtype}, k is {k.dtype} and v is {v.dtype}, but they must be of one kind; "
            f"convert them, such as k.to(q.dtype)"
        )
    if q.device != k.device or k.device != v.device:
        raise DeviceError(
            f"q is on {q.device}, k on {k.device} and v on {v.device}, but they must be on one device; "
            f"move them, such as k.to(q.device)"
        )
    if rank < 2 or len(ks) != rank or len(vs) != rank:
        raise ShapeError(
            f"q is {tuple(qs)}, k is {tuple(ks)} and v is {tuple(vs)}, but all three need the same number of axes, "
            "(q, d), (h, q, d), (b, h, q, d) or more; add the missing ones, such as k[None]"
        )
    if ks[-2] != vs[-2]:
        raise ShapeError(
            f"k of shape {tuple(ks)} has {ks[-2]} keys, but v of shape {tuple(vs)} has {vs[-2]}; "
            "every key needs one value"
        )
    if qs[-1] != ks[-1]:
        raise ShapeError(
            f"q of shape {tuple(qs)} has width {qs[-1]}, but k of shape {tuple(ks)} has {ks[-1]}; "
            "give both the same width, or score=regard.Additive(…) or regard.Bilinear(…), which allow two"
        )
    if rank == 2:
        return Sizes((), qs[0], ks[0])
    lead, of_keys = qs[:-2], ks[:-2]
    if lead == of_keys == vs[:-2] and lead[-1]:
        return Sizes(tuple(lead), qs[-2], ks[-2])
    return broadcast_sizes(qs, ks, vs)


def broadcast_sizes(qs: torch.Size, ks: torch.Size, vs: torch.Size) -> Sizes:
    """Grouped heads, batch axes of 1 that stand for all, and everything that does not fit."""
    if qs[-3] == 0 or ks[-3] == 0:
        raise no_heads(qs, ks)
    if ks[-3] != vs[-3] and vs[-3] != 1 and ks[-3] != 1:
        raise ShapeError(
            f"k of shape {tuple(ks)} has {ks[-3]} heads, but v of shape {tuple(vs)} has {vs[-3]}; "
            "keys and values come in the same heads"
        )
    kv_heads = max(ks[-3], vs[-3])
    if qs[-3] % kv_heads:
        raise ShapeError(
            f"q of shape {tuple(qs)} has {qs[-3]} heads, which do not divide into groups for the {kv_heads} heads of "
            f"k, {tuple(ks)}; choose key heads that divide {qs[-3]}"
        )
    try:
        batch = torch.broadcast_shapes(qs[:-3], ks[:-3], vs[:-3])
    except RuntimeError as error:
        raise ShapeError(
            f"the leading axes of q {tuple(qs)}, k {tuple(ks)} and v {tuple(vs)} do not fit; each must be equal or 1"
        ) from error
    return Sizes((*batch, qs[-3]), qs[-2], ks[-2])


def no_heads(qs: torch.Size, ks: torch.Size) -> ShapeError:
    return ShapeError(f"q is {tuple(qs)} and k is {tuple(ks)}, without any head; give at least one")


def must_be_float(q: Tensor) -> None:
    if not q.is_floating_point():
        raise DtypeError(
            f"q, k and v are {q.dtype}, but attention needs floating point; convert them, such as q.float()"
        )


def must_be_tensors(q: object, k: object, v: object) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor):
            raise DtypeError(f"{name} is {type(x).__name__}, but attention needs tensors; give torch.as_tensor({name})")
        if x.is_nested:
            raise ShapeError(
                "q, k or v is a nested tensor; pad it to (b, h, t, d), such as x.to_padded_tensor(0.0), "
                "and give mask=regard.padding(lengths)"
            )


def full_rank(name: str, x: Tensor, want: tuple[int, ...]) -> Tensor:
    """A tensor that is added to or stands beside the scores: all axes, each equal or 1."""
    shape = tuple(x.shape)
    if len(shape) != len(want) or any(a not in (1, b) for a, b in zip(shape, want)):
        raise ShapeError(
            f"{name} has shape {shape}, but it must fit {want}, each axis equal or 1; "
            f"add axes of 1 where it says nothing, such as {name}[None]"
        )
    return x
