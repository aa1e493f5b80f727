"""MultiHead beside nn.MultiheadAttention: the layer alone, and with the weights of a few rows.

python benchmarks/multihead.py
"""

import sys

import torch
from tools.measure import Row, best, plot, report
from torch import nn

import regard
from regard.layers.multihead import merge_heads


def pair(width: int, heads: int) -> tuple[nn.MultiheadAttention, regard.MultiHead]:
    theirs = nn.MultiheadAttention(width, heads, batch_first=True).eval()
    return theirs, regard.MultiHead.from_torch(theirs).eval()


@torch.no_grad()
def main() -> int:
    rows, lines = [], {}
    for width, b in ((256, 4), (512, 4)):
        theirs, ours = pair(width, 8)
        for n in (16, 64, 128, 512, 1024, 2048):
            x = torch.randn(b if n < 2048 else 1, n, width)
            inner = max(1, int(2e4 / (n * x.shape[0])))
            plain = lambda x=x, theirs=theirs: theirs(x, x, x, need_weights=False)  # noqa: E731
            a, c = best(lambda x=x, ours=ours: ours(x), plain, rounds=15, inner=inner)
            rows.append(Row(f"width {width}, n = {n}, no weights", a / c, 1.0))
            lines.setdefault(f"width {width}", []).append((n, a / c))
        x = torch.randn(1, 2048, width)
        eight = list(range(0, 2048, 256))

        def ask(ours=ours, x=x, eight=eight):
            a = ours.attend(x)
            return ours.to_out(merge_heads(a.mix)), a.weights.rows(eight)

        def compute(theirs=theirs, x=x, eight=eight):
            mix, weights = theirs(x, x, x, need_weights=True, average_attn_weights=False)
            return mix, weights[:, :, eight]

        least = 2.0 if width == 512 else 3.0
        a, c = best(ask, compute, rounds=9)
        rows.append(Row(f"width {width}, n = 2048, 8 rows of weights, no gradients", c / a, least, "×", True))
        with torch.enable_grad():
            a, c = best(ask, compute, rounds=9)
        rows.append(Row(f"width {width}, n = 2048, 8 rows of weights, with gradients", c / a, least, "×", True))
    plot("multihead", "MultiHead beside nn.MultiheadAttention", lines, x="n", y="time, ours / theirs")
    return report("multihead", rows)


if __name__ == "__main__":
    sys.exit(main())
