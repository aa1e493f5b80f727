"""Layers under autocast, transforms, checkpointing, copies and other dtypes and devices."""

import copy
import os
import pickle
import subprocess
import sys

import pytest
import torch
from torch.autograd import gradcheck
from torch.func import functional_call, jacrev, stack_module_state, vmap
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

import regard
from regard.layers import BlockConfig, EncoderBlock
from tests.child import in_child

B, T, K, M, H = 2, 5, 7, 12, 3

LAYERS = {
    "plain": lambda: regard.MultiHead(M, H),
    "grouped, rotary, normed": lambda: regard.MultiHead(
        M, 4, kv_heads=2, head_width=6, positions=regard.Rotary(6), qk_norm=True, bias=False
    ),
    "alibi": lambda: regard.MultiHead(M, H, positions=regard.ALiBi(H)),
    "buckets, sinks": lambda: regard.MultiHead(M, H, positions=regard.Buckets(H), sinks=True),
    "additive": lambda: regard.MultiHead(M, H, score=regard.Additive(query=4, key=4, hidden=6)),
    "encoder": lambda: EncoderBlock(BlockConfig(M, H, 20, order="pre", norm="rms", activation="swiglu")),
}
layers = pytest.mark.parametrize("build", LAYERS.values(), ids=LAYERS)


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@layers
def test_many_layers_at_once_by_vmap_equal_one_after_the_other(build):
    many, x = [build().double() for _ in range(3)], draw(B, T, M)
    parameters, buffers = stack_module_state(many)
    blank = copy.deepcopy(many[0]).to("meta")

    def call(p, b):
        return functional_call(blank, (p, b), (x,), {"mask": regard.causal()})

    found = vmap(call)(parameters, buffers)
    assert_close(found, torch.stack([layer(x, mask=regard.causal()) for layer in many]))


@layers
def test_vmap_over_the_batch_and_jacobians_equal_plain_calls(build):
    layer, x = build().double(), draw(B, T, M)
    mask = regard.causal()
    assert_close(vmap(lambda one: layer(one, mask=mask))(x), layer(x, mask=mask))
    found = jacrev(lambda one: layer(one, mask=mask))(x[0])
    assert_close(found, torch.autograd.functional.jacobian(lambda one: layer(one, mask=mask), x[0]))


def test_a_cache_inside_vmap_equals_one_outside():
    layer, x = regard.MultiHead(M, H).double(), draw(3, T, M)

    def decode(one):
        cache = regard.KeyValueCache(capacity=T)
        return torch.cat([layer(token, cache=cache) for token in one.split(1, 0)])

    with torch.no_grad():
        assert_close(vmap(decode)(x), layer(x, mask=regard.causal()))


@layers
def test_gradients_are_those_of_finite_differences(build):
    layer, x = build().double(), draw(4, M).requires_grad_()
    assert gradcheck(lambda y: layer(y, mask=regard.causal()), (x,), fast_mode=True)


@layers
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_checkpointing_recomputes_the_same_numbers(build, dropout):
    layer, x = build().double(), draw(B, T, M)
    for module in layer.modules():
        if isinstance(module, regard.MultiHead):
            module.dropout = dropout
        elif isinstance(module, torch.nn.Dropout):
            module.p = dropout
    gradients = []
    for call in (layer, lambda y: checkpoint(layer, y, use_reentrant=False)):
        torch.manual_seed(5)
        layer.zero_grad()
        out = call(x)
        out.square().sum().backward()
        gradients.append([out.detach(), *(p.grad.clone() for p in layer.parameters())])
    assert_close(*gradients, rtol=0, atol=0)


@layers
def test_copies_pickles_and_state_dicts_carry_the_whole_layer(build):
    layer, x = build().eval(), torch.randn(B, T, M)
    wanted = layer(x)
    again = build().eval()
    again.load_state_dict(layer.state_dict())
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), again):
        assert torch.equal(twin(x), wanted)
        assert all(p is not q for p, q in zip(twin.parameters(), layer.parameters()))


@layers
def test_layers_are_made_in_the_default_dtype_and_on_the_default_device(build):
    try:
        torch.set_default_dtype(torch.float64)
        layer = build()
        assert layer(torch.randn(B, T, M)).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        layer = build()
        out = layer(torch.empty(B, T, M), mask=regard.causal())
    assert all(p.is_meta for p in layer.parameters())
    assert (out.is_meta, out.shape) == (True, (B, T, M))


def comes_out_as_it_went_in(build, dtype):
    layer, x = build().eval(), torch.randn(B, T, M)
    wanted = layer(x)
    found = layer.to(dtype)(x.to(dtype))
    assert found.dtype == dtype
    assert_close(found.float(), wanted, rtol=0.05, atol=0.05)


@layers
def test_half_precision_comes_out_as_it_went_in_and_near_the_truth(build):
    comes_out_as_it_went_in(build, torch.float16)


@in_child
def test_so_does_bfloat16():
    for build in LAYERS.values():
        comes_out_as_it_went_in(build, torch.bfloat16)


@layers
def test_inference_mode_changes_nothing(build):
    layer, x = build().eval(), torch.randn(B, T, M)
    wanted = layer(x, mask=regard.causal())
    with torch.inference_mode():
        assert_close(layer(x, mask=regard.causal()), wanted)
    with torch.no_grad():
        assert_close(layer(x, mask=regard.causal()), wanted)


def test_partial_requires_grad_gives_the_same_gradients():
    layer, x = regard.MultiHead(M, H, dropout=0.0).double(), draw(B, T, M)
    wanted = torch.autograd.grad(layer(x).square().sum(), layer.to_v.weight)
    for p in (*layer.to_q.parameters(), *layer.to_k.parameters()):
        p.requires_grad_(False)
    assert_close(torch.autograd.grad(layer(x).square().sum(), layer.to_v.weight), wanted)


AUTOCAST = """
import torch, regard
from regard.layers import BlockConfig, DecoderBlock, EncoderBlock
from torch.testing import assert_close

torch.manual_seed(0)
x, memory = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
layers = [
    regard.MultiHead(12, 3),
    regard.MultiHead(12, 4, kv_heads=2, head_width=6, positions=regard.Rotary(6), qk_norm=True),
    regard.MultiHead(12, 3, positions=regard.ALiBi(3)),
    regard.MultiHead(12, 3, positions=regard.Buckets(3), sinks=True),
    EncoderBlock(BlockConfig(12, 3, 20)),
]
for layer in layers:
    for mask in (None, regard.causal(), regard.causal() & regard.padding([5, 3])):
        wanted = layer(x, mask=mask)
        with torch.autocast("cpu", torch.bfloat16):
            found = layer(x, mask=mask)
            found.float().square().sum().backward()
        assert_close(found.float(), wanted, rtol=0.05, atol=0.05)
for layer in layers:
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        cache = regard.KeyValueCache()
        found = torch.cat([layer(one, cache=cache, mask=regard.causal()) for one in x.split(1, 1)], 1)
        assert cache.keys.dtype == torch.bfloat16
    assert_close(found.float(), layer(x, mask=regard.causal()), rtol=0.05, atol=0.05)
    try:
        layer(x, cache=cache)
    except regard.errors.DtypeError as error:
        assert "holds keys of torch.bfloat16 and torch.float32 came" in str(error)
    else:
        raise AssertionError("a float32 key joined a bfloat16 cache")
decoder = DecoderBlock(BlockConfig(12, 3, 20, order="pre"))
with torch.autocast("cpu", torch.bfloat16):
    found = decoder(x, memory)
assert_close(found.float(), decoder(x, memory), rtol=0.05, atol=0.05)
print("all", len(layers))
"""


def test_autocast_stays_near_the_truth_for_every_layer():
    # A process of its own: some processors' bfloat16 kernels must be chosen before torch loads.
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
    done = subprocess.run(
        [sys.executable, "-c", AUTOCAST], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["all", "5"]
