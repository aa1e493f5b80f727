"""Who listens hears every call; nobody else, and nothing is kept."""

import gc
import threading
import weakref

import pytest
import torch
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

import regard
from regard.layers import BlockConfig, DecoderBlock, listen

M, H = 12, 3


def test_every_call_is_heard_in_order_with_its_layer():
    block = DecoderBlock(BlockConfig(M, H, 20))
    x, memory = torch.randn(2, 5, M), torch.randn(2, 7, M)
    quiet = block(x, memory)
    with listen() as heard:
        out = block(x, memory)
        block.self_attention.attend(x)
    assert torch.equal(out, quiet)
    assert [module for module, _ in heard] == [block.self_attention, block.cross_attention, block.self_attention]
    assert [a.weights.shape for _, a in heard] == [(2, H, 5, 5), (2, H, 5, 7), (2, H, 5, 5)]
    assert_close(heard[1][1].weights.dense().sum(-1), torch.ones(2, H, 5))
    block(x, memory)
    assert len(heard) == 3


def test_listeners_nest_and_an_error_ends_them():
    layer, x = regard.MultiHead(M, H), torch.randn(5, M)
    with listen() as outer:
        with listen() as inner:
            layer(x)
        layer(x)
    assert (len(outer), len(inner)) == (2, 1)
    with pytest.raises(ZeroDivisionError), listen() as heard:
        _ = 1 / 0
    layer(x)
    assert not heard


def test_other_threads_hear_nothing_and_are_not_heard():
    layer, x = regard.MultiHead(M, H), torch.randn(5, M)
    theirs, ready, done = [], threading.Event(), threading.Event()

    def other():
        with listen() as heard:
            ready.set()
            done.wait(10)
        theirs.extend(heard)

    def quiet():
        layer(x)

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait(10)
    with listen() as heard:
        layer(x)
        one = threading.Thread(target=quiet)
        one.start()
        one.join()
    done.set()
    thread.join()
    assert len(heard) == 1
    assert not theirs


@pytest.mark.parametrize("recording", [True, False], ids=["grad", "no grad"])
def test_nothing_of_a_call_outlives_its_output(recording):
    layer, x, born = regard.MultiHead(M, H), torch.randn(2, 5, M), []
    for to in (layer.to_q, layer.to_k, layer.to_v):
        to.register_forward_hook(lambda module, args, out: born.append(weakref.ref(out.untyped_storage())))
    gc.disable()  # no cycle may be needed to let go
    try:
        with torch.set_grad_enabled(recording):
            out = layer(x, mask=regard.causal())
            del out
        with torch.set_grad_enabled(recording), listen() as heard:
            out = layer(x, mask=regard.causal())
        assert all(one() is None for one in born[:3])
        del out
        assert all(one() is not None for one in born[3:5])  # q and k are kept by who listened, not by the layer
        assert heard[0][1].weights.dense().shape == (2, H, 5, 5)
        heard.clear()
        assert len(born) == 6
        assert all(one() is None for one in born)
    finally:
        gc.enable()


def test_what_is_heard_can_be_differentiated():
    layer, x = regard.MultiHead(M, H).double(), torch.randn(5, M, dtype=torch.float64)
    with listen() as heard:
        layer(x)
    heard[0][1].weights[0, 2, 3].backward()
    assert layer.to_q.weight.grad.abs().sum() > 0
    with torch.no_grad(), listen() as heard:
        layer(x)
    assert not heard[0][1].mix.requires_grad


def test_recomputation_is_heard_as_the_call_it_is():
    layer, x = regard.MultiHead(M, H), torch.randn(5, M, requires_grad=True)
    with listen() as heard:
        checkpoint(layer, x, use_reentrant=False).sum().backward()
    assert len(heard) == 2


def test_maps_of_a_decoding_run_stay_true_while_the_cache_grows():
    layer, x = regard.MultiHead(M, H).double(), torch.randn(2, 9, M, dtype=torch.float64)
    cache = regard.KeyValueCache()
    with torch.no_grad():
        whole = layer.attend(x, mask=regard.causal()).weights.dense()
        with listen() as heard:
            for token in x.split(1, 1):
                layer(token, cache=cache)
        for i, (_, attended) in enumerate(heard):
            assert_close(attended.weights.dense()[..., 0, :], whole[..., i, : i + 1])
