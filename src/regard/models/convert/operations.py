"""What is done with tensors on their way between two layouts: small named operations, each with its inverse."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Tensors = tuple[Tensor, ...]


class Operation(NamedTuple):
    """One step between the tensors of another library and ours; `to_theirs` undoes `to_ours` bit for bit."""

    name: str
    to_ours: Callable[[Tensors], Tensors]
    to_theirs: Callable[[Tensors], Tensors]


def transpose() -> Operation:
    """A matrix (in, out), as `Conv1D` of GPT-2 stores it, as (out, in).

    >>> transpose().to_ours((torch.zeros(2, 3),))[0].shape
    torch.Size([3, 2])
    """

    def turn(tensors: Tensors) -> Tensors:
        return tuple(tensor.T for tensor in tensors)

    return Operation("transpose", turn, turn)


def split(parts: int) -> Operation:
    """One tensor cut along its first axis into equal parts, such as packed q, k and v.

    >>> split(3).to_ours((torch.arange(6),))
    (tensor([0, 1]), tensor([2, 3]), tensor([4, 5]))
    """
    return Operation(f"split {parts}", lambda one: one[0].chunk(parts), lambda several: (torch.cat(several),))


def interleave(dim: int) -> Operation:
    """Channels that come as two halves, reordered along `dim` so that the halves alternate.

    >>> interleave(0).to_ours((torch.tensor([0.0, 1, 2, 10, 11]),))
    (tensor([ 0., 10.,  1., 11.,  2.]),)
    """

    def halves(tensor: Tensor) -> Tensor:
        order = torch.arange(tensor.shape[dim], device=tensor.device)
        return torch.cat((order[0::2], order[1::2]))

    def alternate(tensors: Tensors) -> Tensors:
        return tuple(tensor.index_select(dim, halves(tensor).argsort()) for tensor in tensors)

    def part(tensors: Tensors) -> Tensors:
        return tuple(tensor.index_select(dim, halves(tensor)) for tensor in tensors)

    return Operation(f"interleave {dim}", alternate, part)
