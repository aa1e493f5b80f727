"""Watching any model: the right maps, under the right names."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.testing import assert_close

import regard
from regard.trace.watch import watch
from tests.trace.models import WAYS, Attention, Stack, expected, seeded, x_of


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
def test_every_way_of_writing_attention_is_seen_once_and_right(way: str, train: bool) -> None:
    model = seeded(Stack(depth=3, way=way)).train(train)
    x = x_of()
    plain = model(x)
    with watch(model) as trace:
        watched = model(x)
    assert torch.equal(plain, watched)
    assert [layer.name for layer in trace.layers] == ["layers.0", "layers.1", "layers.2"]
    assert {layer.kind for layer in trace.layers} == {"self"}
    assert {layer.weights.kind for layer in trace.layers} == {"computed" if way == "sdpa" else "stored"}
    assert_close(trace[0].weights.dense(), expected(model.layers[0], x).float())  # type: ignore[arg-type]
    assert trace.verify(), trace.verify()


@pytest.mark.parametrize("way", WAYS)
def test_masks_are_the_models_own(way: str) -> None:
    model = seeded(Stack(depth=2, way=way))
    x, mask = x_of(), torch.rand(2, 1, 7, 7, generator=torch.Generator().manual_seed(3)) > 0.4
    mask |= torch.eye(7, dtype=torch.bool)
    with torch.no_grad(), watch(model) as trace:
        model(x, mask)
    assert_close(trace[0].weights.dense(), expected(model.layers[0], x, mask).float())  # type: ignore[arg-type]
    if way == "sdpa":
        assert torch.equal(trace[0].weights.allowed[...], mask.expand(2, 3, 7, 7))
    assert trace.verify()


def test_grouped_heads_keep_as_many_key_heads_as_the_model_has() -> None:
    model = seeded(Stack(depth=1, heads=4, kv_heads=2))
    x = x_of()
    with torch.no_grad(), watch(model) as trace:
        model(x)
    assert trace[0].k is not None
    assert trace[0].k.shape[1] == 2
    assert trace[0].weights.shape == (2, 4, 7, 7)
    assert_close(trace[0].weights.dense(), expected(model.layers[0], x).float())  # type: ignore[arg-type]
    assert trace.verify()


def test_cross_attention_is_told_from_self_attention() -> None:
    model = seeded(Attention())
    with watch(model) as trace:
        model(x_of(n=5), context=x_of(n=8, seed=2))
    assert (trace[0].kind, trace[0].weights.shape[-2:]) == ("cross", (5, 8))
    assert trace.verify()


def test_the_causal_flag_is_aligned_to_the_first_key_as_in_the_kernel() -> None:
    class Flagged(nn.Module):
        def forward(self, q: Tensor, k: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, k, is_causal=True)

    q, k = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 6, 8)
    model = Flagged()
    with watch(model) as trace:
        model(q, k)
    seen = torch.ones(4, 6, dtype=torch.bool).tril()
    assert torch.equal(trace[0].weights.allowed[0, 0], seen)
    assert trace.verify()


@pytest.mark.parametrize("variant", [causal_upper_left, causal_lower_right], ids=["upper left", "lower right"])
def test_torchs_causal_bias_gives_the_same_output_and_the_right_map(variant: object) -> None:
    bias = variant(5, 9)  # type: ignore[operator]

    class Biased(nn.Module):
        def forward(self, q: Tensor, k: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, k, attn_mask=bias)

    q, k = torch.randn(1, 2, 5, 8), torch.randn(1, 2, 9, 8)
    model = Biased()
    plain = model(q, k)
    with watch(model) as trace:
        watched = model(q, k)
    assert torch.equal(plain, watched)
    shift = 0 if variant is causal_upper_left else 4
    assert torch.equal(trace[0].weights.allowed[0, 0], torch.ones(5, 9, dtype=torch.bool).tril(shift))
    assert trace.verify()


def test_scripted_models_are_watched() -> None:
    class Plain(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(x, x, x)

    model = torch.jit.script(Plain())
    x = torch.randn(2, 3, 5, 8)
    for _ in range(3):
        plain = model(x)
    with watch(model) as trace:
        watched = model(x)
    assert torch.equal(plain, watched)
    assert_close(trace[0].weights.dense(), (x @ x.mT / math.sqrt(8)).softmax(-1))


def test_encoder_layers_keep_their_fast_path_also_with_nested_padding() -> None:
    torch.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(24, 4, 40, batch_first=True), 2).eval()
    hidden = torch.arange(7) >= torch.tensor([[4], [7]])
    x = x_of()
    with torch.no_grad():
        plain = model(x, src_key_padding_mask=hidden)
        with watch(model) as trace:
            watched = model(x, src_key_padding_mask=hidden)
    assert torch.equal(plain, watched)
    assert [layer.door for layer in trace.layers] == ["fast path"] * 2
    assert torch.equal(trace[0].weights.allowed[:, 0], ~hidden[:, None] & ~hidden[..., None])
    for layer in trace.layers:  # the nested kernel leaves rows of padding out
        assert layer.states == ["padding_rows_skipped"]
        assert any("not computed" in note for note in layer.notes)
        assert not layer.weights[0, :, 4:].any()
        assert layer.weights[1].dense().sum(-1).min() > 0.99
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad(), watch(model) as slow:
            model(x, src_key_padding_mask=hidden)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    assert_close(trace[0].weights[0, :, :4], slow[0].weights[0, :, :4])
    assert trace.verify()
    assert slow.verify()


@pytest.mark.parametrize("norm_first", [False, True])
def test_the_whole_torch_transformer_is_watched_in_both_modes(norm_first: bool) -> None:
    torch.manual_seed(0)
    model = nn.Transformer(24, 3, 2, 2, 40, batch_first=True, norm_first=norm_first, dropout=0.0)
    source, target = x_of(n=5), x_of(n=6, seed=2)
    causal = nn.Transformer.generate_square_subsequent_mask(6)
    maps = []
    for train in (True, False):
        model.train(train)
        with torch.no_grad():
            plain = model(source, target, tgt_mask=causal, tgt_is_causal=True)
            with watch(model) as trace:
                watched = model(source, target, tgt_mask=causal, tgt_is_causal=True)
        assert torch.equal(plain, watched)
        assert [layer.kind for layer in trace.layers] == ["self", "self", "self", "cross", "self", "cross"]
        assert trace.verify()
        maps.append([layer.weights.dense() for layer in trace.layers])
    assert_close(maps[0], maps[1])


def test_multihead_attention_gives_the_weights_that_torch_gives() -> None:
    torch.manual_seed(0)
    model = nn.MultiheadAttention(24, 3, batch_first=True)
    x, y = x_of(n=5), x_of(n=8, seed=2)
    for model_now in (model.train(), model.eval()):
        with torch.no_grad(), watch(model_now) as trace:
            _, theirs = model_now(x, y, y, average_attn_weights=False)
        assert_close(trace[0].weights.dense(), theirs)
        assert trace[0].kind == "cross"


@pytest.mark.parametrize("way", ["sdpa", "by_hand"])
def test_weights_are_before_dropout_and_used_replays_it(way: str) -> None:
    how = {"dropout_p": 0.4} if way == "sdpa" else {"dropout": 0.4}
    model = seeded(Attention(way=way, **how)).train()
    mixes: list[Tensor] = []
    model.out.register_forward_pre_hook(lambda _, args: mixes.append(args[0].detach()))
    x = x_of()
    with watch(model) as trace:
        model(x)
    layer = trace[0]
    assert_close(layer.weights.dense(), expected(model, x).float())
    assert layer.v is not None
    mixed = mixes[0].unflatten(-1, (3, -1)).transpose(1, 2)
    if way == "sdpa":
        used = layer.weights.used()
        assert 0.2 < float((used == 0).float().mean()) < 0.6
        assert_close(used @ layer.v, mixed)
    assert trace.verify()


def test_graph_keeps_the_graph_so_that_a_map_can_be_trained_on() -> None:
    model, x = seeded(Stack(depth=1)), x_of()
    with watch(model, graph=True) as trace:
        model(x)
    trace[0].weights.dense()[..., 0].sum().backward()
    expected(model.layers[0], x)[..., 0].sum().backward()  # type: ignore[arg-type]
    with watch(model) as plain:
        model(x)
    assert not plain[0].weights.dense().requires_grad
    assert trace[0].q is not None
    assert trace[0].q.requires_grad


def test_calls_in_a_loop_become_runs_and_a_module_used_twice_two_layers() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = Attention()

        def forward(self, x: Tensor) -> Tensor:
            once: Tensor = self.layer(x)
            twice: Tensor = self.layer(once)
            return twice

    model = seeded(Twice())
    with watch(model) as trace:
        for n in (4, 6, 5):
            model(x_of(n=n))
    assert [run.layers[0].weights.shape[-1] for run in trace.runs] == [4, 6, 5]
    assert [layer.name for layer in trace.layers] == ["layer", "layer#2"]
    assert len(trace.layers) == 2


def test_the_same_batch_twice_is_two_runs() -> None:
    model, x = seeded(Stack()), x_of()
    with watch(model) as trace:
        model(x)
        model(x)
    assert [len(run.layers) for run in trace.runs] == [2, 2]


def test_watches_nest_and_a_submodule_can_be_watched_alone() -> None:
    model, x = seeded(Stack(depth=3)), x_of()
    with watch(model) as outer:
        with watch(model.layers[1]) as inner:  # type: ignore[arg-type,index]
            model(x)
        model(x)
    assert len(outer.runs) == 2
    assert len(inner.layers) == 1
    assert_close(inner[0].weights.dense(), outer[1].weights.dense())


def test_layers_limits_what_is_kept_and_values_leaves_v_out() -> None:
    model = seeded(Stack(depth=3))
    with watch(model, layers="layers.1", values=False, dtype=torch.float64) as trace:
        model(x_of())
    assert [layer.name for layer in trace.layers] == ["layers.1"]
    assert trace[0].v is None
    assert trace[0].q is not None
    assert trace[0].q.dtype == torch.float64
    assert "values were not kept" in trace.verify()[0].why


def test_gradient_times_attention_can_be_asked_after_a_backward_pass() -> None:
    model, x = seeded(Stack()), x_of()
    with watch(model, gradients=True) as trace:
        model(x).square().sum().backward()
    assert trace[0].gradient is not None
    assert trace[0].gradient.shape == (2, 3, 7, 8)
    with watch(model, gradients=True) as later:
        loss = model(x).square().sum()
    loss.backward()
    assert_close(later[0].gradient, trace[0].gradient)


def test_models_of_this_package_tell_their_own_maps() -> None:
    torch.manual_seed(0)
    model = regard.MultiHead(24, heads=3, kv_heads=1, positions=regard.Rotary(8))
    x = x_of()
    mask = regard.causal() & regard.padding(torch.tensor([4, 7]))
    with watch(model) as trace:
        out = model(x, mask=mask)
    attended = model.attend(x, mask=mask)
    assert torch.equal(out, model(x, mask=mask))
    assert (trace[0].door, trace[0].name) == ("attend", "MultiHead")
    assert_close(trace[0].weights.dense(), attended.weights.dense())
    assert trace.verify()


def test_other_scores_and_normalisers_of_this_package_are_watched_too() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.score = regard.Additive(query=8, key=8, hidden=5)

        def forward(self, x: Tensor) -> Tensor:
            return regard.attend(x, x, x, score=self.score, weigh=regard.sparsemax).mix

    torch.manual_seed(0)
    model = Odd()
    x = torch.randn(2, 3, 6, 8)
    with watch(model) as trace:
        model(x)
    right = regard.attend(x, x, x, score=model.score, weigh=regard.sparsemax).weights.dense()
    assert_close(trace[0].weights.dense(), right)


def test_a_compiled_model_falls_back_to_the_uncompiled_one() -> None:
    model = seeded(Stack())
    compiled = torch.compile(model, backend="eager")
    x = x_of()
    compiled(x)
    with watch(compiled) as trace:  # type: ignore[arg-type]
        compiled(x)
    assert [layer.name for layer in trace.layers] == ["layers.0", "layers.1"]
    assert_close(trace[0].weights.dense(), expected(model.layers[0], x).float())  # type: ignore[arg-type]


@torch.compile(backend="eager")
def fused(q: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, q, q)


def test_compiled_functions_and_methods_are_seen_too() -> None:
    class Calls(nn.Module):
        def forward(self, q: Tensor) -> Tensor:
            return fused(q)

    model, q = Calls(), torch.randn(1, 2, 5, 8)
    model(q)
    with watch(model) as trace:
        model(q)
    assert len(trace.layers) == 1
    own = seeded(Stack())
    own.forward = torch.compile(own.forward, backend="eager")  # type: ignore[method-assign]
    own(x_of())
    with watch(own) as trace:
        own(x_of())
    assert len(trace.layers) == 2
