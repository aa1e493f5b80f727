"""One token more against a cache of 4,096 keys, beside the bare kernel on the same tensors.

python benchmarks/decode.py
"""

import sys

import torch
import torch.nn.functional as F
from tools.measure import Row, best, report

import regard


@torch.no_grad()
def main() -> int:
    rows = []
    for b, h, hk, d in ((1, 8, 8, 64), (4, 8, 2, 64)):
        k, v = (torch.randn(b, hk, 4096, d) for _ in range(2))
        q, k1, v1 = torch.randn(b, h, 1, d), torch.randn(b, hk, 1, d), torch.randn(b, hk, 1, d)
        cache = regard.KeyValueCache()
        cache.append(k, v)

        def step(cache=cache, q=q, k1=k1, v1=v1):
            keys, values = cache.append(k1, v1)
            mix = regard.attend(q, keys, values, mask=regard.causal()).mix
            cache.crop(4096)
            return mix

        room = [torch.cat([x, torch.empty(b, hk, 512, d)], -2) for x in (k, v)]

        def by_hand(room=room, q=q, k1=k1, v1=v1, gqa=h != hk):
            """The same with tensors that were made large enough beforehand."""
            for into, x in zip(room, (k1, v1)):
                into[:, :, 4096:4097] = x
            return F.scaled_dot_product_attention(q, *(x[:, :, :4097] for x in room), enable_gqa=gqa)

        ours, theirs = best(step, by_hand, rounds=60, inner=20)
        rows.append(Row(f"b {b}, heads {h}/{hk}: append and attend, beside the same by hand", ours / theirs))
        keys, values = (x[:, :, :4097] for x in room)
        kernel = lambda q=q, k=keys, v=values, gqa=h != hk: F.scaled_dot_product_attention(  # noqa: E731
            q, k, v, enable_gqa=gqa
        )
        ours, theirs = best(step, kernel, rounds=60, inner=20)
        rows.append(Row(f"b {b}, heads {h}/{hk}: append and attend, beside the kernel alone", ours / theirs, 1.1))
        held = cache.append(k1, v1)
        cache.crop(4096)
        same = lambda q=q, k=held[0], v=held[1]: regard.attend(q, k, v, mask=regard.causal()).mix  # noqa: E731
        bare = lambda q=q, k=held[0], v=held[1], gqa=h != hk: F.scaled_dot_product_attention(  # noqa: E731
            q, k, v, enable_gqa=gqa
        )
        ours, theirs = best(same, bare, rounds=40, inner=20)
        rows.append(Row(f"b {b}, heads {h}/{hk}: attend on the cache's own tensors", ours / theirs, 1.1))
    return report("decode", rows)


if __name__ == "__main__":
    sys.exit(main())
