"""What attend takes beside q, k, v and a mask: a learned scale, biases, sinks and dropout."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import regard
from tests.attention.cases import qkv


def test_a_learned_temperature_gets_its_gradient():
    q, k, v = qkv(grad=True)
    scale = torch.full((6, 1, 1), 0.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: regard.attend(q, k, v, scale=s).mix, (scale,))
    assert_close(regard.attend(q, k, v, scale=scale).mix, regard.attend(q, k, v, scale=0.3).mix)


def test_a_float_mask_goes_in_as_bias_and_gets_its_gradient():
    q, k, v = qkv(grad=True)
    bias = torch.randn(1, 6, 5, 7, dtype=torch.float64, requires_grad=True)
    a = regard.attend(q, k, v, bias=bias, mask=regard.causal())
    dense = bias.masked_fill(~regard.causal().dense(5, 7), -torch.inf)
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=dense)
    assert_close(a.mix, theirs)
    ours = torch.autograd.grad(a.mix.square().sum(), (q, k, v, bias))
    assert_close(ours, torch.autograd.grad(theirs.square().sum(), (q, k, v, bias)))


@pytest.mark.parametrize("low", [-torch.inf, torch.finfo(torch.float32).min], ids=["-inf", "min"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("path", ["fused", "explicit"])
def test_float_masks_of_any_precision_hide_what_they_should(low, dtype, path):
    q, k, v = qkv(dtype=torch.float32)
    low = max(low, torch.finfo(dtype).min) if low > -torch.inf else low
    bias = torch.zeros(1, 1, 5, 7, dtype=dtype).masked_fill(~regard.causal().dense(5, 7), low)
    with torch.no_grad():
        a = regard.attend(q, k, v, bias=bias, path=path)
    assert_close(a.mix, regard.attend(q, k, v, mask=regard.causal()).mix)
    if low == -torch.inf:
        blind = bias.clone()
        blind[..., 3, :] = -torch.inf
        b = regard.attend(q, k, v, bias=blind, path=path)
        assert b.mix[:, :, 3].eq(0).all()
        assert b.weights.rows(3).eq(0).all()


def test_a_bias_object_is_never_made_whole_for_the_map():
    alibi = regard.ALiBi(6)
    q, k, v = qkv(dtype=torch.float32)
    a = regard.attend(q, k, v, bias=alibi, mask=regard.causal())
    dense = alibi.block(torch.arange(5) + 2, torch.arange(7))[None].float()
    expected = F.scaled_dot_product_attention(
        q, k, v, attn_mask=dense.masked_fill(~regard.causal().dense(5, 7), -torch.inf)
    )
    assert_close(a.mix, expected)
    assert_close(a.weights.dense() @ v, expected)
    assert_close(a.weights[1, 4, 2:4].squeeze(), a.weights.dense()[1, 4, 2:4])


def test_learned_slopes_and_buckets_get_their_gradients():
    q, k, v = qkv(grad=True)
    for bias in (regard.ALiBi(6, learned=True), regard.Buckets(6, buckets=8, furthest=10)):
        bias = bias.double()
        (weight,) = bias.parameters()
        a = regard.attend(q, k, v, bias=bias, mask=regard.causal())
        assert a.path == "explicit"
        dense = bias.block(torch.arange(5) + 2, torch.arange(7)).double()
        theirs = F.scaled_dot_product_attention(
            q, k, v, attn_mask=dense.masked_fill(~regard.causal().dense(5, 7), -torch.inf)[None]
        )
        assert_close(a.mix, theirs)
        ours = torch.autograd.grad(a.mix.square().sum(), (q, weight))
        assert_close(ours, torch.autograd.grad(theirs.square().sum(), (q, weight)))
        with torch.no_grad():
            assert regard.attend(q, k, v, bias=bias).path == "fused"


def test_sinks_take_a_share_and_give_nothing():
    q, k, v = qkv()
    logits = torch.randn(6, dtype=torch.float64)
    a = regard.attend(q, k, v, sink_logits=logits, mask=regard.causal())
    scores = (q @ k.mT / 11**0.5).masked_fill(~regard.causal().dense(5, 7), -torch.inf)
    column = logits[None, :, None, None].expand(2, 6, 5, 1)
    expected = torch.cat([scores, column], -1).softmax(-1)[..., :-1]
    assert_close(a.weights.dense(), expected)
    assert_close(a.mix, expected @ v)
    assert_close(a.weights.log_normaliser(), torch.cat([scores, column], -1).logsumexp(-1))
    surprise = -(expected * expected.clamp_min(1e-300).log()).sum(-1)
    assert_close(a.weights.entropy(), surprise)


# Randomness


def test_dropout_is_seeded_replayed_and_right_on_average():
    q, k, v = qkv(q=9, k=30)
    seeded = [regard.attend(q, k, v, dropout=0.4, generator=torch.Generator().manual_seed(7)) for _ in range(2)]
    assert torch.equal(seeded[0].mix, seeded[1].mix)
    state = torch.get_rng_state()
    a = regard.attend(q, k, v, dropout=0.4, generator=torch.Generator().manual_seed(8))
    assert torch.equal(state, torch.get_rng_state())
    assert not torch.equal(a.mix, seeded[0].mix)
    assert_close(a.weights.used() @ v, a.mix)
    assert_close(a.weights.dense(), regard.attend(q, k, v).weights.dense())
    torch.manual_seed(5)
    one = regard.attend(q, k, v, dropout=0.4).mix
    torch.manual_seed(5)
    assert torch.equal(regard.attend(q, k, v, dropout=0.4).mix, one)
    generator = torch.Generator().manual_seed(1)
    many = torch.stack([regard.attend(q, k, v, dropout=0.4, generator=generator).mix for _ in range(600)])
    assert_close(many.mean(0), regard.attend(q, k, v).mix, atol=0.12, rtol=0)
    assert regard.attend(q, k, v, dropout=1.0).mix.eq(0).all()
    assert torch.equal(regard.attend(q, k, v, dropout=0.0).mix, regard.attend(q, k, v).mix)


def test_dropout_is_the_same_when_a_checkpoint_computes_again():
    from torch.utils.checkpoint import checkpoint

    q, k, v = qkv(grad=True)
    torch.manual_seed(3)
    plain = torch.autograd.grad(regard.attend(q, k, v, dropout=0.5).mix.sum(), (q, k, v))
    torch.manual_seed(3)
    again = checkpoint(lambda *x: regard.attend(*x, dropout=0.5).mix, q, k, v, use_reentrant=False)
    assert_close(torch.autograd.grad(again.sum(), (q, k, v)), plain)
