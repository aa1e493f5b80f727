"""A watched model computes what it would, and a finished watch leaves nothing behind, in any thread."""

import gc
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
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from regard.errors import Stale
from regard.trace.doors.dispatcher import DOORS, PRODUCTS
from regard.trace.watch import watch
from tests.trace.models import WAYS, Stack, expected, seeded, x_of


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


def gone() -> None:
    """Beside other threads, as pytest has them, kernels go a moment after the last watch."""
    deadline = time.monotonic() + 20
    while (DOORS.library or PRODUCTS.library) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert DOORS.library is None
    assert PRODUCTS.library is None


def test_alone_in_its_process_a_watch_takes_its_kernels_along_at_once() -> None:
    code = (
        "import torch, regard; from regard.trace.doors.dispatcher import DOORS, PRODUCTS; import torch.nn as nn\n"
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
    assert trace.verify()[0].status == "unverified"


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
