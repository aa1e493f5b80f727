"""Layers under torch.compile, torch.export and ONNX; run without the type hook."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import regard
from regard.layers import BlockConfig, DecoderBlock, EncoderBlock, listen

pytestmark = pytest.mark.compiled

M, H = 12, 4

LAYERS = {
    "plain": lambda: regard.MultiHead(M, H),
    "grouped, rotary, normed": lambda: regard.MultiHead(
        M, H, kv_heads=2, head_width=6, positions=regard.Rotary(6), qk_norm=True
    ),
    "alibi": lambda: regard.MultiHead(M, H, positions=regard.ALiBi(H)),
    "buckets, sinks": lambda: regard.MultiHead(M, H, positions=regard.Buckets(H), sinks=True),
    "encoder": lambda: EncoderBlock(BlockConfig(M, H, 20, order="pre", norm="rms", activation="swiglu")),
}
CACHES = {
    "growing": {},
    "capacity": {"capacity": 100},
    "window": {"window": 6},
    "window, first kept": {"window": 6, "keep_first": 2},
}
layers = pytest.mark.parametrize("build", LAYERS.values(), ids=LAYERS)


class Causal(nn.Module):
    """A layer with its mask, as one sees it from outside."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x, mask=regard.causal())


@layers
def test_layers_compile_whole_and_for_any_length_with_few_graphs(build, count):
    layer = Causal(build()).eval()
    compiled = torch.compile(layer, fullgraph=True, backend=count)
    for batch, length in ((2, 5), (2, 5), (2, 9), (3, 17), (5, 33), (4, 65)):
        x = torch.randn(batch, length, M)
        assert_close(compiled(x), layer(x))
    assert count.graphs <= 3  # these sizes, another length, another batch


@layers
def test_compiled_gradients_equal_eager_ones(build):
    layer, x = Causal(build()).double(), torch.randn(2, 5, M, dtype=torch.float64)
    found, wanted = (
        torch.autograd.grad(call(x).square().sum(), tuple(layer.parameters()))
        for call in (torch.compile(layer, fullgraph=True, backend="aot_eager", dynamic=True), layer)
    )
    assert_close(found, wanted)


@pytest.mark.parametrize("backend", ["inductor", "aot_eager"])
def test_masks_made_inside_compile_for_any_length(backend):
    """The whole compiler on one layer, all but its code generation on a whole block."""
    if backend == "inductor":
        layer = LAYERS["grouped, rotary, normed"]().eval()

        def call(x, memory, lengths):
            return layer(x, mask=regard.causal() & regard.padding(lengths))
    else:
        block = DecoderBlock(BlockConfig(M, H, 20, head_width=4), positions=regard.Rotary(4)).eval()

        def call(x, memory, lengths):
            seen = regard.padding(lengths)
            return block(x, memory, mask=regard.causal() & seen, memory_mask=seen)

    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend=backend)
    for batch, length, more in ((2, 5, 7), (3, 6, 11)):
        x, memory = torch.randn(batch, length, M), torch.randn(batch, length + more, M)
        lengths = torch.arange(batch) + 2
        with torch.no_grad():
            assert_close(compiled(x, memory, lengths), call(x, memory, lengths))


@pytest.mark.parametrize("limits", CACHES.values(), ids=CACHES)
@pytest.mark.parametrize("build", [LAYERS["grouped, rotary, normed"], LAYERS["alibi"]], ids=["rotary", "alibi"])
def test_a_decode_step_is_not_compiled_again_at_every_step(build, limits, count):
    layer = build().eval()
    step = torch.compile(lambda x, cache: layer(x, cache=cache), fullgraph=True, backend=count)
    ours, theirs = regard.KeyValueCache(**limits), regard.KeyValueCache(**limits)
    x, graphs = torch.randn(2, 70, M), []
    with torch.no_grad():
        for cache in (ours, theirs):
            layer(x[:, :4], mask=regard.causal(), cache=cache)
        for i in range(4, 70):
            assert_close(step(x[:, i : i + 1], ours), layer(x[:, i : i + 1], cache=theirs))
            graphs.append(count.graphs)
    assert ours._buffer.ours  # written in place, also when compiled
    assert (len(ours), ours.seen) == (len(theirs), theirs.seen)
    assert graphs[-1] <= 7  # growing and dropping are steps of their own kind; none comes twice
    assert graphs[-1] == graphs[20]
    if limits == CACHES["capacity"]:
        assert graphs[-1] <= 3


def test_cross_attention_with_its_cache_compiles():
    block = DecoderBlock(BlockConfig(M, H, 20)).eval()
    step = torch.compile(
        lambda x, memory, own, others: block(x, memory, cache=(own, others)), fullgraph=True, backend="eager"
    )
    x, memory = torch.randn(2, 9, M), torch.randn(2, 7, M)
    cache = regard.KeyValueCache(capacity=9), regard.KeyValueCache()
    with torch.no_grad():
        parts = [step(token, memory, *cache) for token in x.split(1, 1)]
        assert_close(torch.cat(parts, 1), block(x, memory))


def test_compiled_calls_are_not_heard_and_listening_does_not_break_them():
    layer = Causal(regard.MultiHead(M, H)).eval()
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    x = torch.randn(2, 5, M)
    with listen() as heard:
        assert_close(compiled(x), layer(x))
    assert len(heard) == 1


@layers
def test_layers_export_with_batch_and_length_that_may_change(build):
    layer = Causal(build()).eval()
    sizes = {0: torch.export.Dim("batch", min=2, max=64), 1: torch.export.Dim("length", min=2, max=4096)}
    program = torch.export.export(layer, (torch.randn(3, 5, M),), dynamic_shapes=(sizes,))
    for batch, length in ((2, 33), (7, 2)):
        x = torch.randn(batch, length, M)
        assert_close(program.module()(x), layer(x))


@pytest.mark.parametrize("name", ["grouped, rotary, normed", "encoder"])
def test_onnx_gives_the_same_numbers_for_other_sizes(name, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    layer = Causal(LAYERS[name]()).eval()
    sizes = {0: torch.export.Dim("batch", min=2, max=64), 1: torch.export.Dim("length", min=2, max=4096)}
    with torch.no_grad():
        program = torch.onnx.export(layer, (torch.randn(3, 5, M),), dynamic_shapes=(sizes,), dynamo=True, verbose=False)
        program.save(tmp_path / "layer.onnx")
        session = runtime.InferenceSession(tmp_path / "layer.onnx")
        x = torch.randn(2, 11, M)
        (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        assert_close(torch.from_numpy(found), layer(x))
