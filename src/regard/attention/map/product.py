"""Products of a few queries and keys, by the quickest exact kernel that torch brings.

On processors that are not Intel's, the library behind `torch.mm` uses half of what they can do in float32; oneDNN,
which torch brings too, uses all of it. Its operation is private to torch, so it is asked for here and nowhere else.
"""

import platform
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

X86 = ("x86_64", "amd64", "x64")


def multiply(a: Float[Tensor, "r d"], b: Float[Tensor, "c d"]) -> Float[Tensor, "r c"]:
    """a bᵀ, in full precision.

    >>> multiply(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [5.0, 6.0]]))
    tensor([[11., 17.]])
    """
    if a.dtype == torch.float32 and a.numel() and b.numel() and has_onednn() and is_full_precision():
        found: Tensor = torch.ops.mkldnn._linear_pointwise(a, b, None, "none", [], "")
        return found
    return torch.mm(a, b.mT)


@cache
def has_onednn() -> bool:
    """Whether oneDNN multiplies here."""
    if platform.machine().lower() not in X86 or not torch.backends.mkldnn.is_available():
        return False
    return hasattr(torch.ops, "mkldnn") and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def is_full_precision() -> bool:
    """Whether nobody allowed shorter products, which oneDNN would then take."""
    return torch.get_float32_matmul_precision() == "highest"
