"""Matrices as whole numbers of 8 bits with a scale for each row: half the space of float16, for weights at rest.

A model computes in float32 as ever; only its file is smaller. What is lost is at most half a step of each row, 1/254 of
the row's largest number: as much as a score on real data says, and no more than it says.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from regard.errors import ModelError

SCALE = "::scale"  # after the name of a matrix; no parameter of a module can be called so
STEPS = 127


def pack_rows(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    r"""The state with each matrix W as int8 codes and a float32 scale for each row; vectors as float16.

    $W_{ij} \approx s_i\, c_{ij}$ with $s_i = \max_j |W_{ij}| / 127$: symmetric, nearest code.

    >>> packed = pack_rows({"a.weight": torch.tensor([[1.0, -0.5], [0.0, 0.0]]), "a.bias": torch.ones(2)})
    >>> packed["a.weight"], packed["a.weight::scale"].shape, packed["a.bias"].dtype
    (tensor([[127, -64],
            [  0,   0]], dtype=torch.int8), torch.Size([2]), torch.float16)
    """
    packed: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if tensor.dim() != 2 or not tensor.is_floating_point():
            packed[name] = tensor.half() if tensor.is_floating_point() else tensor
            continue
        rows = tensor.float()
        scale = rows.abs().amax(1) / STEPS  # of each row
        steps = scale.clamp(min=torch.finfo(torch.float32).tiny)[:, None]  # a row of zeros stays one
        packed[name] = (rows / steps).round().to(torch.int8)
        packed[name + SCALE] = scale
    return packed


def unpack_rows(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What `pack_rows` packed, as float32 matrices again; a state that holds no codes is given back as it is.

    >>> weight = torch.tensor([[1.0, -0.5, 0.25]])
    >>> bool(((unpack_rows(pack_rows({"w": weight}))["w"] - weight).abs() <= weight.abs().max() / 254).all())
    True
    """
    whole: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if name.endswith(SCALE):
            continue
        scale = state.get(name + SCALE)
        if scale is None:
            whole[name] = tensor
            continue
        if tensor.dtype != torch.int8 or scale.shape != tensor.shape[:1] or not scale.is_floating_point():
            raise ModelError(f"{name} has scales that do not fit it; write the model again")
        whole[name] = tensor.float() * scale.float()[:, None]
    return whole
