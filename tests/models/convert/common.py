"""What tests of several families share."""

import torch
from torch import nn

ERROR = {torch.float32: 1e-4, torch.float64: 1e-9}  # of logits around 1 … 100


def shaken(module: nn.Module) -> nn.Module:
    """Weights far from where they start, so that nothing hides behind a zero or a one."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.eval()


def must_be_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    """The same names, and the same tensors bit for bit."""
    assert sorted(one) == sorted(other)
    for name, tensor in one.items():
        assert tensor.dtype == other[name].dtype
        assert torch.equal(tensor, other[name]), name


@torch.no_grad()
def write_greedily(model: nn.Module, ids: torch.Tensor, steps: int) -> torch.Tensor:
    """The ids, and after them the likeliest tokens, everything read again each time."""
    for _ in range(steps):
        ids = torch.cat((ids, model(ids)[:, -1:].argmax(-1)), 1)
    return ids
