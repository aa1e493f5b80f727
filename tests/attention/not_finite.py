"""Every small size with NaN or inf somewhere, against the formula in float64.

A program, because which vector instructions torch uses is settled when it loads:
ATEN_CPU_CAPABILITY=avx2 python -m tests.attention.not_finite
"""

import math
import sys
from collections.abc import Iterator

import torch
from torch import Tensor

import regard

LENGTHS = range(1, 41)
POISONS = (math.nan, math.inf, -math.inf)
DTYPES = (torch.float32, torch.float64)
WIDTH = 7


def formula(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor) -> Tensor:
    """softmax(q kᵀ / √d) v in float64, each row over the keys that it may see: what it may not see is not read."""
    q, k, v = q.double(), k.double(), v.double()
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~allowed, -math.inf)
    sees = allowed.expand(scores.shape)[..., None]  # b h q k 1
    return torch.where(sees, scores.softmax(-1)[..., None] * v[..., None, :, :], 0.0).sum(-2)


def masks(n: int) -> Iterator[tuple[str, object]]:
    yield "no mask", None
    yield "causal", regard.causal()
    yield "padded", regard.padding([max(1, n // 2), n])
    yield "causal and padded", regard.causal() & regard.padding([max(1, n - 2), n])
    yield "left-padded", regard.padding([max(1, n // 3), n], side="left")
    alone = torch.zeros(2, 1, n, n, dtype=torch.bool)
    alone[..., -1] = True
    yield "the last key alone", alone
    yield "window", regard.window(1, 0)


def poisoned(n: int, dtype: torch.dtype, where: str, poison: float, queries: int) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v with one cell that is no number, in the last place of one head of one sequence."""
    make = torch.Generator().manual_seed(n)
    q, k, v = (torch.randn(2, 3, t, WIDTH, generator=make, dtype=torch.float64).to(dtype) for t in (queries, n, n))
    {"q": q, "k": k, "v": v}[where][1, 1, -1, 2] = poison
    return q, k, v


def differences() -> Iterator[str]:
    """What came out otherwise than by the formula."""
    for n in LENGTHS:
        for name, mask in masks(n):
            for dtype in DTYPES:
                for where in "qkv":
                    for poison in POISONS:
                        yield from compare(f"n = {n}", mask, name, *poisoned(n, dtype, where, poison, n), None)
    for name, mask, n, path in long_masks():
        for dtype in DTYPES:
            for where in "qk":
                for poison in POISONS:
                    yield from compare(f"n = {n}", mask, name, *poisoned(n, dtype, where, poison, n), path)


def long_masks() -> Iterator[tuple[str, object, int, str]]:
    """Other ways to the same kernel, with few keys in a row."""
    yield "sliced", regard.padding([270, 3]), 270, "sliced"
    yield "sliced and causal", regard.causal() & regard.padding([270, 3]), 270, "sliced"
    yield "banded", regard.window(2, 1), 530, "banded"


def compare(size: str, mask: object, name: str, q: Tensor, k: Tensor, v: Tensor, path: str | None) -> Iterator[str]:
    n = k.shape[-2]
    if mask is None:
        allowed = torch.ones(1, 1, n, n, dtype=torch.bool)
    else:
        allowed = mask if isinstance(mask, Tensor) else mask.dense(n, n, batch=2, heads=1)
    if path is not None:
        clean = regard.attend(*(x.nan_to_num(0.0, 0.0, 0.0) for x in (q, k, v)), mask=mask).path
        if clean != path:
            yield f"{name} took the way {clean!r}, so that {path!r} was not tried"
    a = regard.attend(q, k, v, mask=mask)
    expected = formula(q, k, v, allowed)
    close = 100 * torch.finfo(q.dtype).eps
    if not torch.allclose(a.mix.double(), expected, atol=close, rtol=close, equal_nan=True):
        wrong = ~torch.isclose(a.mix.double(), expected, atol=close, rtol=close, equal_nan=True)
        b, h, i, e = wrong.nonzero()[0].tolist()
        yield (
            f"{size}, {name}, {q.dtype}, path {a.path}: cell {b, h, i, e} is {a.mix[b, h, i, e]}, not "
            f"{expected[b, h, i, e]}; q {x(q)}, k {x(k)}, v {x(v)}"
        )
    if path is None:
        rows = a.weights.dense().sum(-1)
        if not torch.equal(rows.isnan(), expected.isnan().all(-1) & ~v.isnan().any((-1, -2))[..., None]):
            yield f"{size}, {name}, {q.dtype}: the map has NaN in other rows than the mix; q {x(q)}, k {x(k)}, v {x(v)}"


def x(tensor: Tensor) -> str:
    bad = tensor[~tensor.isfinite()]
    return str(bad.tolist()) if bad.numel() else "finite"


if __name__ == "__main__":
    found = list(differences())
    print(torch.backends.cpu.get_cpu_capability(), len(found), *found[:12], sep="\n")
    sys.exit(bool(found))
