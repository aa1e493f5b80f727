"""The strongest keys of every query at n = 8192, beside one fused forward of that head.

python benchmarks/map_top.py
"""

import sys

import torch
import torch.nn.functional as F
from tools.measure import Row, best, report

import regard


@torch.no_grad()
def main() -> int:
    rows = []
    for n in (2048, 8192):
        q, k, v = (torch.randn(1, 1, n, 64) for _ in range(3))
        for name, mask in (("open", None), ("causal", regard.causal())):
            map_ = regard.attend(q, k, v, mask=mask).weights
            forward = lambda mask=mask, q=q, k=k, v=v: F.scaled_dot_product_attention(  # noqa: E731
                q, k, v, is_causal=mask is not None
            )
            for what, ask in (
                ("top(8)", lambda m=map_: m.top(8)),
                ("entropy()", lambda m=map_: m.entropy()),
                ("pool(512, 512)", lambda m=map_: m.pool(512, 512)),
            ):
                ours, theirs = best(ask, forward, rounds=7)
                limit = 3.0 if what == "top(8)" and n == 8192 else None
                rows.append(Row(f"n = {n}, {name}, {what}", ours / theirs, limit))
    return report("map_top", rows)


if __name__ == "__main__":
    sys.exit(main())
