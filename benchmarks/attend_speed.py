"""What does attend cost beside the bare kernel? Without a mask, causal, padded, and both.

python benchmarks/attend_speed.py
"""

import sys

import torch
import torch.nn.functional as F
from tools.measure import Row, best, plot, report

import regard

LENGTHS = (128, 512, 1024, 2048, 4096, 8192)


def cases(b: int, h: int, n: int, d: int) -> dict[str, tuple]:
    """Ours and the bare call on the same tensors; masks are made once, outside of what is timed."""
    q, k, v = (torch.randn(b, h, n, d) for _ in range(3))
    lengths = torch.linspace(0.6 * n, n, b).long()
    tensor = (torch.arange(n) < lengths[:, None])[:, None, None]
    causal, padding = regard.causal(), regard.padding(lengths)
    both = causal & padding
    sdpa = F.scaled_dot_product_attention
    return {
        "none": (lambda: regard.attend(q, k, v), lambda: sdpa(q, k, v)),
        "causal": (lambda: regard.attend(q, k, v, mask=causal), lambda: sdpa(q, k, v, is_causal=True)),
        "padding": (lambda: regard.attend(q, k, v, mask=padding), lambda: sdpa(q, k, v, attn_mask=tensor)),
        "causal and padding": (lambda: regard.attend(q, k, v, mask=both), lambda: sdpa(q, k, v, is_causal=True)),
    }


@torch.no_grad()
def main() -> int:
    rows, lines = [], {}
    for name, (ours, theirs) in cases(2, 4, 16, 32).items():
        a, b = best(ours, theirs, rounds=60, inner=200)
        rows.append(Row(f"n = 16, {name}: extra per call", (a - b) * 1e6, None if "and" in name else 15.0, "µs"))
    for n in LENGTHS:
        heads = 4 if n < 4096 else 2
        for name, (ours, theirs) in cases(2, heads, n, 64).items():
            rounds = {128: 60, 512: 120, 1024: 80, 2048: 60, 4096: 40}.get(n, 20)
            a, b = best(ours, theirs, rounds=rounds, inner=30 if n < 512 else 1)
            limit = None if n < 512 else 1.15 if "and" in name else 1.02
            against = " (beside causal alone)" if "and" in name else ""
            rows.append(Row(f"n = {n}, {name}{against}", a / b, limit))
            lines.setdefault(name + against, []).append((n, a / b))
    plot("attend_speed", "attend beside the bare SDPA call", lines, x="n", y="time, ours / bare")
    return report("attend_speed", rows)


if __name__ == "__main__":
    sys.exit(main())
