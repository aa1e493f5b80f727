"""Watching any model: the right maps under the right names, and the same model as before."""

import gc
import math
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

import regard
from regard.errors import Stale, TraceError, WatchError
from regard.trace.doors.kernel import DOORS, PRODUCTS
from regard.trace.watch import watch
from tests.trace.models import Attention, Stack, expected, seeded

WAYS = ["sdpa", "by_hand", "by_bmm", "by_einsum"]


def x_of(b: int = 2, n: int = 7, width: int = 24, seed: int = 1) -> Tensor:
    return torch.randn(b, n, width, generator=torch.Generator().manual_seed(seed))


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
    assert {layer.weights.kind for layer in trace.layers} == {"asked" if way == "sdpa" else "stored"}
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
    assert torch.equal(trace[0].weights.allowed[:, 0, 0], ~hidden)
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


def test_gradients_and_random_state_are_those_of_the_unwatched_model() -> None:
    torch.manual_seed(0)
    model = nn.Transformer(24, 3, 2, 2, 40, batch_first=True, dropout=0.3)
    source, target = x_of(n=5), x_of(n=6, seed=2)

    def run(watched: bool) -> tuple[list[Tensor], Tensor]:
        model.zero_grad()
        torch.manual_seed(7)
        if watched:
            with watch(model) as trace:
                model(source, target).square().sum().backward()
            assert len(trace.layers) == 6
        else:
            model(source, target).square().sum().backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None], torch.get_rng_state()

    plain, state = run(watched=False)
    seen, after = run(watched=True)
    assert all(torch.equal(a, b) for a, b in zip(plain, seen, strict=True))
    assert torch.equal(state, after)


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


def test_activation_checkpointing_is_seen_once() -> None:
    class Checkpointed(Stack):
        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            for layer in self.layers:
                x = x + checkpoint(layer, x, use_reentrant=False)
            return x

    model = seeded(Checkpointed())
    with watch(model) as trace:
        model(x_of()).sum().backward()
    assert [layer.name for layer in trace.layers] == ["layers.0", "layers.1"]


def test_a_recomputation_that_differs_is_noted() -> None:
    class Drifts(Stack):
        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            return checkpoint(self.layers[0], x, use_reentrant=False)  # type: ignore[no-any-return]

    model = seeded(Drifts(depth=1))
    with watch(model) as trace:
        loss = model(x_of()).sum()
        with torch.no_grad():
            model.layers[0].q.weight.mul_(2.0)  # type: ignore[union-attr,operator]
        loss.backward()
    assert "came out otherwise" in trace.notes[0]


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


def gone() -> None:
    """Beside other threads, as pytest has them, kernels go a moment after the last watch."""
    deadline = time.monotonic() + 20
    while (DOORS.library or PRODUCTS.library) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert DOORS.library is None
    assert PRODUCTS.library is None


def test_alone_in_its_process_a_watch_takes_its_kernels_along_at_once() -> None:
    code = (
        "import torch, regard; from regard.trace.doors.kernel import DOORS, PRODUCTS; import torch.nn as nn\n"
        "model = nn.MultiheadAttention(8, 2, batch_first=True); x = torch.ones(1, 3, 8)\n"
        "names = ['aten::' + n for n in ('scaled_dot_product_attention', 'softmax.int', 'matmul', 'bmm', 'einsum')]\n"
        "before = [torch._C._dispatch_dump(name) for name in names]\n"
        "with regard.watch(model): model(x, x, x)\n"
        "assert before == [torch._C._dispatch_dump(name) for name in names]\n"
        "print('the same')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "the same", done.stderr


def test_alone_in_its_process_bmm_is_heard_in_inference_mode_too() -> None:
    code = (
        "import torch, regard, warnings; warnings.simplefilter('error')\n"
        "from tests.trace.models import Stack, expected, seeded\n"
        "model = seeded(Stack(way='by_bmm')); x = torch.randn(2, 7, 24)\n"
        "with torch.inference_mode():\n"
        "    plain = model(x)\n"
        "    with regard.watch(model) as trace: assert torch.equal(model(x), plain)\n"
        "assert trace.verify(), trace.verify()\n"
        "torch.testing.assert_close(trace[0].weights.dense(), expected(model.layers[0], x).float())\n"
        "print(len(trace.layers), torch.equal(model(x), plain))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["2", "True"], done.stderr


def test_nothing_is_left_after_a_block_or_an_error() -> None:
    model, x = seeded(Stack()), x_of()
    gone()
    before = torch._C._dispatch_dump("aten::scaled_dot_product_attention")

    class Broken(Exception):
        pass

    def fail() -> None:
        model(x)
        raise Broken

    for _ in range(3):
        with pytest.raises(Broken), watch(model):
            fail()
    with watch(model):
        model(x)
    assert DOORS.users == PRODUCTS.users == 0
    gone()
    assert torch._C._dispatch_dump("aten::scaled_dot_product_attention") == before
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_an_error_inside_forward_passes_through_and_leaves_nothing() -> None:
    class Fails(Stack):
        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            self.layers[0](x)
            raise ZeroDivisionError

    model = seeded(Fails())
    with pytest.raises(ZeroDivisionError), watch(model) as trace:
        model(x_of())
    assert len(trace.layers) == 1
    assert DOORS.users == 0


def test_a_thousand_watches_leak_nothing() -> None:
    model, x = seeded(Stack(depth=1)), x_of(b=1, n=3)
    alive: list[weakref.ref[Tensor]] = []
    for _ in range(1000):
        with torch.no_grad(), watch(model) as trace:
            out = model(x)
        alive = [*alive[-3:], weakref.ref(trace[0].q), weakref.ref(out)]  # type: ignore[arg-type]
    del trace, out
    gc.collect()
    assert not any(ref() is not None for ref in alive)
    assert DOORS.users == PRODUCTS.users == 0
    forgotten = weakref.ref(model)
    del model
    gc.collect()
    assert forgotten() is None


def test_what_the_model_computed_is_not_kept_alive_by_a_finished_watch() -> None:
    model = seeded(Stack(depth=2, way="by_hand"))
    kept: list[weakref.ref[Tensor]] = []
    model.layers[0].register_forward_hook(lambda _m, _a, out: kept.append(weakref.ref(out)))  # type: ignore[operator,union-attr]
    with torch.no_grad(), watch(model) as trace:
        model(x_of())
    gc.collect()
    assert kept[0]() is None
    assert len(trace.layers) == 2


@pytest.mark.parametrize("way", WAYS)
def test_sixteen_threads_watch_one_model_and_get_their_own_traces(way: str) -> None:
    model = seeded(Stack(depth=2, way=way))
    xs = [x_of(n=3 + i, seed=i) for i in range(16)]
    start = threading.Barrier(16)

    def one(i: int) -> tuple[Tensor, Tensor]:
        start.wait()
        with torch.no_grad():
            plain = [model(xs[i]) for _ in range(2)][-1]  # the first call of a new thread may round otherwise
            for _ in range(10):
                with watch(model) as trace:
                    out = model(xs[i])
                assert torch.equal(out, plain)
        assert len(trace.runs) == 1
        assert len(trace.layers) == 2
        return trace[0].weights.dense(), out

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(one, range(16)))
    with torch.no_grad():
        for x, (weights, out) in zip(xs, found, strict=True):
            assert_close(out, model(x), atol=1e-3, rtol=1e-4)
            assert_close(weights, expected(model.layers[0], x).float())  # type: ignore[arg-type]


def test_an_unwatched_thread_is_neither_seen_nor_changed() -> None:
    model = seeded(Stack())
    x, y = x_of(), x_of(n=5, seed=4)
    plain = model(y)
    results: list[Tensor] = []
    with watch(model) as trace:
        thread = threading.Thread(target=lambda: results.append(model(y)))
        thread.start()
        thread.join()
        model(x)
    assert torch.equal(results[0], plain)
    assert [run.layers[0].weights.shape[-1] for run in trace.runs] == [7]


def test_a_tensor_written_to_after_the_call_is_stale_never_a_wrong_number() -> None:
    class Owns(nn.Module):
        def forward(self, q: Tensor, k: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, k)

    model, q, k = Owns(), torch.randn(1, 2, 5, 8), torch.randn(1, 2, 6, 8)
    with watch(model) as trace:
        model(q, k)
    right = trace[0].weights.dense()
    k += 1.0
    with pytest.raises(Stale):
        trace[0].weights.dense()
    assert right.shape == (1, 2, 5, 6)
    assert trace.verify()[0].status == "unproven"


def test_views_of_a_larger_buffer_are_copied() -> None:
    class Ring(nn.Module):
        def forward(self, q: Tensor, buffer: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, buffer[:, :, :4], buffer[:, :, :4])

    model, q, buffer = Ring(), torch.randn(1, 2, 5, 8), torch.randn(1, 2, 6, 8)
    with watch(model) as trace:
        model(q, buffer)
    right = trace[0].weights.dense().clone()
    buffer.zero_()
    assert torch.equal(trace[0].weights.dense(), right)


def test_inference_mode_is_watched_and_its_tensors_copied() -> None:
    model, x = seeded(Stack()), x_of()
    with torch.inference_mode():
        plain = model(x)
        with watch(model) as trace:
            watched = model(x)
        assert torch.equal(plain, watched)
    assert_close(trace[0].weights.dense(), expected(model.layers[0], x).float())  # type: ignore[arg-type]
    assert trace.verify()


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


def test_several_softmaxes_in_one_call_are_refused_by_name() -> None:
    class Nystrom(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            a = (x @ x[..., :3, :].mT).softmax(-1)
            b = (x[..., :3, :] @ x.mT).softmax(-1)
            mixed: Tensor = a @ (b @ x)
            return mixed

    model = Nystrom()
    with watch(model) as trace:
        model(torch.randn(2, 3, 6, 8))
    proofs = trace.verify()
    assert [proof.status for proof in proofs] == ["refused"]
    assert "2 softmaxes" in proofs[0].why


def test_a_model_without_attention_says_so() -> None:
    model = nn.GRU(8, 8, batch_first=True)
    with pytest.raises(WatchError, match="saw no attention"), watch(model):
        model(torch.randn(2, 5, 8))


def test_tokens_of_another_length_are_refused_with_both_numbers() -> None:
    model = seeded(Stack())
    with pytest.raises(TraceError, match="5 tokens were given, but the maps are 7 × 7"), watch(model, list("abcde")):
        model(x_of())


@pytest.mark.parametrize("wrong", [3, "model", None], ids=repr)
def test_what_is_no_module_is_refused(wrong: object) -> None:
    with pytest.raises(WatchError, match=r"torch\.nn\.Module"), watch(wrong):  # type: ignore[arg-type]
        pass


def test_data_parallel_and_meta_models_are_refused_by_name() -> None:
    with pytest.raises(WatchError, match="DataParallel"), watch(nn.DataParallel(seeded(Stack()))):
        pass
    with pytest.raises(WatchError, match="meta device"), watch(Stack().to("meta")):
        pass


def test_vmap_is_refused_by_name_or_said_to_be_unseen() -> None:
    model = seeded(Stack())
    with pytest.raises(WatchError, match=r"torch\.func"), watch(model):
        torch.vmap(model)(torch.randn(3, 2, 5, 24))


def test_lookups_take_any_unambiguous_part_of_a_path() -> None:
    model = seeded(nn.ModuleDict({"encoder": Stack(depth=11)}))
    with watch(model) as trace:
        model["encoder"](x_of())
    assert trace["encoder.layers.1"].name == "encoder.layers.1"
    assert trace["layers.10"].name == trace[10].name == "encoder.layers.10"
    with pytest.raises(TraceError, match="fits 11 layers"):
        trace["encoder"]
    with pytest.raises(TraceError, match="no layer is called"):
        trace["decoder"]
    with pytest.raises(TraceError, match="there are 11"):
        trace[11]


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


def test_layers_that_fit_nothing_are_refused_with_what_there_is() -> None:
    with (
        pytest.raises(WatchError, match=r"no part of the model fits layers='nope'.*layers\.0"),
        watch(Stack(), layers="nope"),
    ):
        pass


def test_a_foreign_kernel_is_refused_and_the_model_runs_on() -> None:
    transformers = pytest.importorskip("transformers")
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu

    def foreign(
        module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, **_: object
    ) -> tuple[Tensor, None]:
        return kernel(q, k, v, 0.0, True)[0].transpose(1, 2).contiguous(), None

    transformers.AttentionInterface.register("foreign", foreign)
    config = transformers.GPT2Config(vocab_size=31, n_embd=24, n_head=3, n_layer=2, attn_implementation="foreign")
    model = transformers.GPT2Model(config).eval()
    ids, seen = torch.randint(0, 31, (2, 5)), torch.tensor([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]])
    with torch.no_grad(), watch(model) as trace:
        watched = model(ids, attention_mask=seen).last_hidden_state
    with torch.no_grad():
        assert torch.equal(watched, model(ids, attention_mask=seen).last_hidden_state)
    assert {proof.status for proof in trace.verify()} == {"refused"}
    assert "attn_implementation='sdpa'" in trace.verify()[0].why
