"""Laws of masks that leave most keys out: no matrix is ever made, and BigBird is the BigBird of `transformers`."""

import math

import pytest
import torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

import regard
from regard.attention.mask import Sizes, bigbird, causal, longformer, padding, window
from regard.layers.longformer import LongformerAttention

N = 4096


def seeded(seed):
    return torch.Generator().manual_seed(seed)


class Largest(TorchDispatchMode):
    """The largest tensor that any operator gives, in numbers that it really holds."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        found = op(*args, **(kwargs or {}))
        for x in found if isinstance(found, (tuple, list)) else (found,):
            if isinstance(x, torch.Tensor):
                self.numbers = max(self.numbers, x.untyped_storage().nbytes() // x.element_size())
        return found


def marked(n):
    marks = torch.zeros(2, n, dtype=torch.bool)
    marks[0, [0, 77]], marks[1, 5] = True, True
    return marks


MASKS = {
    "window": lambda n: window(100, 60),
    "first kept": lambda n: window(100, keep_first=4) & causal(),
    "dilated": lambda n: window(90, 60, dilation=3),
    "padded": lambda n: window(100, 60) & padding([n, n - 500]),
    "longformer": lambda n: longformer(100, global_at=[0, n // 2]),
    "longformer, marked": lambda n: longformer(100, global_at=marked(n)) & padding([n - 9, n]),
    "bigbird": lambda n: bigbird(64, random=2, seed=1),
    "bigbird by head": lambda n: bigbird(64, random=2, heads=3, seed=1),
}


def largest(mask, n):
    """Numbers of the largest tensor of a forward and a backward pass."""
    q, k, v = (torch.randn(2, 3, n, 4, generator=seeded(i)).requires_grad_() for i in range(3))
    with Largest() as made:
        found = regard.attend(q, k, v, mask=mask)
        found.mix.square().sum().backward()
    assert found.path == "banded"
    return made.numbers


@pytest.mark.parametrize("name", MASKS)
def test_no_matrix_is_made_forward_or_backward(name):
    numbers = largest(MASKS[name](N), N)
    assert numbers < N * N // 8
    assert largest(MASKS[name](N // 2), N // 2) >= 0.4 * numbers  # it grows with n, not faster


def test_the_longformer_layer_makes_no_matrix_either():
    layer, x = LongformerAttention(12, 3, before=60), torch.randn(2, N, 12, generator=seeded(0)).requires_grad_()
    with Largest() as made:
        layer(x, global_at=marked(N), mask=padding([N, N - 300])).square().sum().backward()
    assert made.numbers < N * N // 8


BLOCK, COUNT, RANDOM, HEADS, WIDTH = 4, 13, 3, 2, 10


@pytest.fixture(scope="module")
def theirs():
    """`transformers`' block-sparse attention, its masks for whole sequences, an input."""
    module = pytest.importorskip("transformers.models.big_bird.modeling_big_bird")
    config = module.BigBirdConfig(
        hidden_size=WIDTH, num_attention_heads=HEADS, block_size=BLOCK, num_random_blocks=RANDOM
    )
    layer = module.BigBirdBlockSparseAttention(config).double().eval()
    generator = seeded(2)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
    return layer, torch.randn(2, BLOCK * COUNT, WIDTH, dtype=torch.float64, generator=generator)


def given(x, lengths):
    """The masks that their attention wants."""
    seen = (torch.arange(x.shape[1]) < torch.tensor(lengths)[:, None]).double()
    blocked = seen.unflatten(1, (COUNT, BLOCK))
    around = torch.cat([blocked[:, 1:-3], blocked[:, 2:-2], blocked[:, 3:-1]], 2)
    return {
        "band_mask": torch.einsum("blq,blk->blqk", blocked[:, 2:-2], around)[:, None],
        "from_mask": seen[:, None, :, None],
        "to_mask": seen[:, None, None],
        "from_blocked_mask": blocked,
        "to_blocked_mask": blocked,
    }


def heads_of(layer, x):
    return [f(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for f in (layer.query, layer.key, layer.value)]


@pytest.mark.parametrize("lengths", [[52, 52], [52, 41]])
def test_bigbird_is_that_of_transformers_where_the_same_blocks_are_drawn(theirs, monkeypatch, lengths):
    layer, x = theirs
    n = x.shape[1]
    mask = bigbird(BLOCK, window=1, first=1, last=1, random=RANDOM, heads=HEADS, seed=6)
    drawn = mask.choose_blocks(Sizes((2, HEADS), n, n))[:, 1:-1]
    assert (drawn >= 0).all()
    monkeypatch.setattr(layer, "_bigbird_block_rand_mask_with_head", lambda **_: list(drawn.int().numpy()))
    expected, _ = layer(x, **given(x, lengths))
    found = regard.attend(*heads_of(layer, x), mask=mask & padding(lengths)).mix.transpose(1, 2).flatten(2)
    for ours, others, length in zip(found, expected, lengths):
        assert_close(ours[:length], others[:length])  # beyond, theirs looks at padding


def test_in_evaluation_theirs_counts_its_first_block_once_more_for_every_random_one(theirs):
    """So its own answer is another one: the keys of block 0 weigh 1 + r times, and nothing random is seen."""
    layer, x = theirs
    n = x.shape[1]
    expected, _ = layer(x, **given(x, [n, n]))
    more = torch.zeros(1, 1, n, n, dtype=torch.float64)
    more[..., BLOCK:-BLOCK, :BLOCK] = math.log(1 + RANDOM)
    found = regard.attend(*heads_of(layer, x), mask=bigbird(BLOCK, random=0), bias=more).mix
    assert_close(found.transpose(1, 2).flatten(2), expected)
    once = regard.attend(*heads_of(layer, x), mask=bigbird(BLOCK, random=0)).mix
    assert not torch.allclose(found, once, atol=1e-3)


@pytest.mark.parametrize("mask", [longformer(2, global_at=[7]), bigbird(3, random=1, seed=4)], ids=repr)
def test_a_global_token_joins_any_two_tokens_in_two_layers(mask):
    seen = mask.dense(40, 40).float()
    assert (seen @ seen > 0).all()
    near = window(2, 2).dense(40, 40).float()
    steps = next(i for i in range(1, 40) if (torch.linalg.matrix_power(near, i) > 0).all())
    assert steps == 20  # a window alone carries news two tokens further with every layer
