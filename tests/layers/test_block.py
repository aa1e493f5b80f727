"""Encoder and decoder blocks against torch's own, given the same weights; and the numbers of the documents."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import regard
from regard.layers import BlockConfig, DecoderBlock, EncoderBlock

B, T, K, M, H, HIDDEN = 2, 5, 7, 12, 3, 20


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def shaken(module):
    """Torch starts biases at 0 and norms at 1, where mistakes do not show."""
    for p in module.parameters():
        nn.init.normal_(p, std=0.5)
    return module.double()


def copy(theirs, ours):
    """Attention, feed-forward and norms of one torch layer into one block of ours."""
    attentions = {"attention": theirs.self_attn, "self_attention": theirs.self_attn}
    if hasattr(theirs, "multihead_attn"):
        attentions["cross_attention"] = theirs.multihead_attn
    names = [name for name in attentions if hasattr(ours, name)]
    for name in names:
        getattr(ours, name).load_state_dict(regard.MultiHead.from_torch(attentions[name]).state_dict())
    ours.feed_forward.to_hidden.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.to_out.load_state_dict(theirs.linear2.state_dict())
    for i, name in enumerate([*names, "feed_forward"], start=1):
        getattr(ours, f"around_{name}").norm.load_state_dict(getattr(theirs, f"norm{i}").state_dict())


def gradients(out, block, *inputs):
    return torch.autograd.grad(out.square().sum(), (*inputs, *block.parameters()))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("order", ["pre", "post"])
def test_encoder_block_and_its_gradients_equal_torch(order, activation, bias):
    theirs = nn.TransformerEncoderLayer(
        M, H, HIDDEN, 0.0, activation, batch_first=True, norm_first=order == "pre", bias=bias
    )
    shaken(theirs)
    ours = EncoderBlock(BlockConfig(M, H, HIDDEN, order=order, activation=activation, bias=bias)).double()
    copy(theirs, ours)
    x = draw(B, T, M).requires_grad_()
    hidden = torch.arange(T) >= torch.tensor([[3], [2]])
    found, wanted = ours(x, mask=regard.padding([3, 2])), theirs(x, src_key_padding_mask=hidden)
    assert_close(found, wanted)
    mine, yours = gradients(found, ours, x), gradients(wanted, theirs, x)
    assert_close(mine[0], yours[0])
    assert_close(ours.feed_forward.to_hidden.weight, theirs.linear1.weight)
    ours.zero_grad()
    theirs.zero_grad()
    ours(x, mask=regard.causal()).square().sum().backward()
    theirs(x, src_mask=nn.Transformer.generate_square_subsequent_mask(T, dtype=x.dtype)).square().sum().backward()
    assert_close(ours.feed_forward.to_hidden.weight.grad, theirs.linear1.weight.grad)
    assert_close(ours.around_attention.norm.weight.grad, theirs.norm1.weight.grad)
    packed = torch.cat([to.weight.grad for to in (ours.attention.to_q, ours.attention.to_k, ours.attention.to_v)])
    assert_close(packed, theirs.self_attn.in_proj_weight.grad)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("order", ["pre", "post"])
def test_decoder_block_and_its_gradients_equal_torch(order, activation):
    theirs = nn.TransformerDecoderLayer(M, H, HIDDEN, 0.0, activation, batch_first=True, norm_first=order == "pre")
    shaken(theirs)
    ours = DecoderBlock(BlockConfig(M, H, HIDDEN, order=order, activation=activation)).double()
    copy(theirs, ours)
    x, memory = draw(B, T, M).requires_grad_(), draw(B, K, M).requires_grad_()
    hidden = torch.arange(K) >= torch.tensor([[6], [2]])
    causal = torch.ones(T, T, dtype=torch.bool).triu(1)
    found = ours(x, memory, memory_mask=regard.padding([6, 2]))
    wanted = theirs(x, memory, tgt_mask=causal, memory_key_padding_mask=hidden)
    assert_close(found, wanted)
    mine, yours = gradients(found, ours, x, memory), gradients(wanted, theirs, x, memory)
    assert_close(mine[:2], yours[:2])
    ours(x, memory).square().sum().backward()
    theirs(x, memory, tgt_mask=causal).square().sum().backward()
    cross = ours.cross_attention
    packed = torch.cat([to.weight.grad for to in (cross.to_q, cross.to_k, cross.to_v)])
    assert_close(packed, theirs.multihead_attn.in_proj_weight.grad)
    assert_close(ours.feed_forward.to_out.bias.grad, theirs.linear2.bias.grad)
    for name, norm in zip(("self_attention", "cross_attention", "feed_forward"), ("norm1", "norm2", "norm3")):
        assert_close(getattr(ours, f"around_{name}").norm.weight.grad, getattr(theirs, norm).weight.grad)


def test_the_blocks_of_the_documents_keep_the_shape_of_their_input():
    x, mask = torch.ones(2, 100, 24), regard.padding([3, 2])
    encoder = EncoderBlock(BlockConfig(24, 8, 48, dropout=0.5))
    assert encoder.eval()(x, mask=mask).shape == (2, 100, 24)

    embed, where = nn.Embedding(200, 24), regard.Sinusoid(24)
    stack = [EncoderBlock(BlockConfig(24, 8, 48, dropout=0.5)) for _ in range(2)]
    tokens = torch.ones(2, 100, dtype=torch.long)
    y = where(embed(tokens) * math.sqrt(24))
    for block in stack:
        y = block(y, mask=mask)
        assert y.shape == (2, 100, 24)

    decoder = DecoderBlock(BlockConfig(24, 8, 48, dropout=0.5)).eval()
    assert decoder(x, encoder(x, mask=mask), memory_mask=mask).shape == (2, 100, 24)


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("order", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
def test_no_choice_changes_the_shape(norm, order, activation):
    options = {"norm": norm, "order": order, "activation": activation, "kv_heads": 1, "head_width": 6, "qk_norm": True}
    x, memory = torch.ones(B, T, M), torch.ones(B, K, 9)
    assert EncoderBlock(BlockConfig(M, H, HIDDEN, **options), positions=regard.Rotary(6))(x).shape == x.shape
    decoder = DecoderBlock(BlockConfig(M, H, HIDDEN, **options), memory_width=9, positions=regard.ALiBi(H))
    assert decoder(x, memory).shape == x.shape
    assert decoder(x[0], memory[0]).shape == x[0].shape


def test_padding_of_the_source_reaches_no_real_position():
    block, x = EncoderBlock(BlockConfig(M, H, HIDDEN)).double(), draw(B, T, M)
    found = block(x, mask=regard.padding([3, 2]))
    other = x.clone()
    other[0, 3:], other[1, 2:] = torch.nan, 1e9
    again = block(other, mask=regard.padding([3, 2]))
    assert_close(again[0, :3], found[0, :3])
    assert_close(again[1, :2], found[1, :2])


def test_decoder_block_looks_back_unless_told_otherwise():
    block, x, memory = DecoderBlock(BlockConfig(M, H, HIDDEN)).double(), draw(B, T, M), draw(B, K, M)
    assert_close(block(x[:, :3], memory), block(x, memory)[:, :3])
    assert torch.equal(block(x, memory), block(x, memory, mask=regard.causal()))
    everything = regard.window(T, T)
    assert not torch.allclose(block(x[:, :3], memory, mask=everything), block(x, memory, mask=everything)[:, :3])


@pytest.mark.parametrize("positions", [None, regard.Rotary(4), regard.ALiBi(H), regard.Buckets(H)], ids=str)
def test_a_decoder_stack_step_by_step_equals_one_shot(positions):
    stack = [DecoderBlock(BlockConfig(M, H, HIDDEN), positions=positions).double() for _ in range(2)]
    caches = [(regard.KeyValueCache(), regard.KeyValueCache()) for _ in stack]
    x, memory, seen = draw(B, T, M), draw(B, K, M), regard.padding([6, 2])
    wanted, found = x, []
    for block in stack:
        wanted = block(wanted, memory, memory_mask=seen)
    for token in x.split(1, 1):
        for block, cache in zip(stack, caches):
            token = block(token, memory, memory_mask=seen, cache=cache)
        found.append(token)
    assert_close(torch.cat(found, 1), wanted, rtol=1e-10, atol=1e-10)


def test_a_decoder_only_stack_is_made_of_encoder_blocks():
    stack = [
        EncoderBlock(BlockConfig(M, H, HIDDEN, order="pre"), positions=regard.Rotary(4)).double() for _ in range(2)
    ]
    caches = [regard.KeyValueCache() for _ in stack]
    x = draw(B, T, M)
    wanted, found = x, []
    for block in stack:
        wanted = block(wanted, mask=regard.causal())
    for part in x.split([3, 1, 1], 1):
        for block, cache in zip(stack, caches):
            part = block(part, mask=regard.causal(), cache=cache)
        found.append(part)
    assert_close(torch.cat(found, 1), wanted, rtol=1e-10, atol=1e-10)
