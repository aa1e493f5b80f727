"""Other people's efficient attention beside ours: the same weights, the same settings, one call each."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

import regard


class Pair(NamedTuple):
    """Our call and theirs, and whether both compute the same numbers."""

    ours: Callable[[], Tensor]
    theirs: Callable[[], Tensor]
    same: bool = True


def longformer(n: int, width: int, heads: int, reach: int) -> Pair:
    """`transformers`: the whole layer, a window of `reach` on either side, two global tokens."""
    from transformers import LongformerConfig
    from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

    from regard.layers.longformer import LongformerAttention

    config = LongformerConfig(hidden_size=width, num_attention_heads=heads, attention_window=[2 * reach])
    theirs = LongformerSelfAttention(config, 0).eval()
    ours, x = LongformerAttention.from_transformers(theirs), torch.randn(1, n, width)
    marks = torch.zeros(1, n, dtype=torch.bool)
    marks[0, [0, n // 3]] = True
    told = {"is_index_masked": torch.zeros_like(marks), "is_index_global_attn": marks, "is_global_attn": True}
    added = torch.zeros(1, n).masked_fill(marks, 10000.0)
    return Pair(lambda: ours(x, global_at=marks), lambda: theirs(x, attention_mask=added, **told)[0])


def bigbird(n: int, width: int, heads: int, block: int) -> Pair:
    """`transformers`: blocks of three neighbours, two global ones and three random ones, which we draw for both."""
    from transformers import BigBirdConfig
    from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention

    from regard.attention.mask import Sizes

    config = BigBirdConfig(hidden_size=width, num_attention_heads=heads, block_size=block, num_random_blocks=3)
    theirs, x = BigBirdBlockSparseAttention(config).eval(), torch.randn(1, n, width)
    mask = regard.bigbird(block, random=3, heads=heads)
    drawn = list(mask.chosen(Sizes((1, heads), n, n))[:, 1:-1].int().numpy())
    theirs._bigbird_block_rand_mask = lambda *_, **__: drawn.pop(0)  # at a few lengths they ask head by head
    theirs._bigbird_block_rand_mask_with_head = lambda **_: drawn
    ones = torch.ones(1, n)
    blocked = ones.unflatten(1, (-1, block))
    around = torch.cat([blocked[:, 1:-3], blocked[:, 2:-2], blocked[:, 3:-1]], 2)
    told = {
        "band_mask": torch.einsum("blq,blk->blqk", blocked[:, 2:-2], around)[:, None],
        "from_mask": ones[:, None, :, None],
        "to_mask": ones[:, None, None],
        "from_blocked_mask": blocked,
        "to_blocked_mask": blocked,
    }

    def ours() -> Tensor:
        q, k, v = (f(x).unflatten(-1, (heads, -1)).transpose(1, 2) for f in (theirs.query, theirs.key, theirs.value))
        return regard.attend(q, k, v, mask=mask).mix.transpose(1, 2).flatten(2)

    return Pair(ours, lambda: theirs(x, **told)[0])


def local_attention(q: Tensor, k: Tensor, v: Tensor, reach: int) -> Pair:
    """`local-attention`: exactly `reach` keys on either side."""
    from local_attention import LocalAttention

    theirs = LocalAttention(reach, look_backward=1, look_forward=1, exact_windowsize=True, use_rotary_pos_emb=False)
    mask = regard.window(reach, reach)
    return Pair(lambda: regard.attend(q, k, v, mask=mask).mix, lambda: theirs(q, k, v))


def performer(q: Tensor, k: Tensor, v: Tensor, features: int) -> Pair:
    """`performer-pytorch`: positive features along the same directions; it adds 1e-4 to each, so numbers differ."""
    from performer_pytorch import FastAttention

    from regard.attention.matrix_free import Performer

    theirs, by = FastAttention(q.shape[-1], nb_features=features), Performer(q.shape[-1], features)
    by.directions.copy_(theirs.projection_matrix)
    q, k = q / 4, k / 4  # at larger scores what it adds outweighs its features
    return Pair(lambda: regard.attend(q, k, v, by=by).mix, lambda: theirs(q, k, v), same=False)


def linformer(n: int, width: int, heads: int, rank: int) -> Pair:
    """`linformer`: keys and values projected apart, all heads alike; its linear layers, which any has, left out."""
    from linformer.linformer import LinformerSelfAttention

    from regard.attention.matrix_free import Linformer

    theirs, x = LinformerSelfAttention(width, n, k=rank, heads=heads).eval(), torch.randn(1, n, width)
    theirs.to_q, theirs.to_k, theirs.to_v, theirs.to_out = (nn.Identity() for _ in range(4))
    by, q = Linformer(n, rank, share="none"), x.unflatten(-1, (heads, -1)).transpose(1, 2)
    with torch.no_grad():
        by.of_keys.copy_(theirs.proj_k.T)
        by.own_of_values.copy_(theirs.proj_v.T)
    return Pair(lambda: regard.attend(q, q, q, by=by).mix.transpose(1, 2).flatten(2), lambda: theirs(x))
