"""Inputs that tests of attention share."""

import numpy as np
import torch


def qkv(b=2, h=6, q=5, k=7, d=11, e=13, hk=None, dtype=torch.float64, grad=False, seed=0):
    """Every size is different, so a swapped axis cannot pass."""
    generator = torch.Generator().manual_seed(seed)
    hk = h if hk is None else hk
    shapes = ((b, h, q, d), (b, hk, k, d), (b, hk, k, e))
    return tuple(torch.randn(s, dtype=dtype, generator=generator).requires_grad_(grad) for s in shapes)


def array(x):
    return None if x is None else np.asarray(x.detach().double() if x.is_floating_point() else x.detach())
