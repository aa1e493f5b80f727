"""Edits among each other, with gradients, dropout, threads, and watched."""

import gc
import threading
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from regard.errors import WatchError
from regard.trace.change.edit import edit
from regard.trace.doors.dispatcher import DOORS
from regard.trace.doors.scope import SCOPE
from regard.trace.proof.verify import verify
from regard.trace.watch import watch
from tests.trace.change.helpers import (
    HEADS,
    LENGTH,
    WAYS,
    WIDTH,
    by_formula,
    causal,
    hidden,
    inputs,
    layer_of,
    put,
    under,
)
from tests.trace.models import Attention, Stack, expected, seeded


def test_edits_of_a_map_are_done_in_the_order_they_were_asked_for():
    layer, x = layer_of(), inputs()

    def block(w: Tensor) -> Tensor:
        w = put((..., 2, 1), 0.0)(w)
        return w / w.sum(-1, keepdim=True)

    with torch.no_grad(), edit(layer) as e:
        e.force(query=2, key=1, weight=0.5)
        e.block(query=2, key=1)
        blocked = layer(x)
        e.clear()
        e.block(query=2, key=1)
        e.force(query=2, key=1, weight=0.5)
        forced = layer(x)
    assert_close(blocked, by_formula(layer, x, weights=block))
    half = by_formula(
        layer,
        x,
        weights=lambda w: put((..., 2, 1), 0.5)(
            torch.cat([w[..., :2, :], 0.5 * block(w)[..., 2:3, :], w[..., 3:, :]], -2)
        ),
    )
    assert_close(forced, half)


def test_a_block_after_a_zero_spreads_over_what_the_zero_left():
    layer, x = layer_of(), inputs()

    def both(w: Tensor) -> Tensor:
        w = put((..., 2, 0), 0.0)(w)
        total = w.sum(-1, keepdim=True)
        w = put((..., 2, 1), 0.0)(w)
        return w / w.sum(-1, keepdim=True) * total

    with torch.no_grad(), edit(layer) as e:
        e.zero(query=2, key=0)
        e.block(query=2, key=1)
        found = layer(x)
    assert_close(found, by_formula(layer, x, weights=both))


@pytest.mark.parametrize("way", WAYS)
def test_nested_edits_are_one_edit_and_each_ends_with_its_block(way):
    layer, x = layer_of(way), inputs()
    with torch.no_grad(), edit(layer) as outer:
        outer.mute(heads=0)
        outer.block(query=1, key=0)
        alone = layer(x)
        with edit(layer) as inner:
            inner.block(query=1, key=2)
            inner.scale(None, 1, 3.0)
            both = layer(x)
        again = layer(x)
    head = torch.tensor([0.0, 3.0, 1.0])[:, None, None]
    assert_close(both, by_formula(layer, x, hidden((1, 0), (1, 2)), mix=lambda m: m * head))
    assert torch.equal(again, alone)
    assert_close(layer(x), by_formula(layer, x))


def test_an_exception_leaves_nothing_behind():
    layer, x = layer_of(), inputs()
    plain = layer(x)
    with pytest.raises(ZeroDivisionError):
        under(layer, lambda e: [e.mute(), layer(x), 1 / 0], x)
    assert SCOPE.get() is None
    assert DOORS.users == 0
    assert torch.equal(layer(x), plain)


def test_nothing_keeps_the_model_or_what_it_computed_alive():
    layer, x = layer_of(), inputs()
    with edit(layer) as e:
        e.mute(heads=0, how="mean", reference=x)
        e.block(query=1, key=0)
        e.run(x)
        found = layer(x)
    alive = [weakref.ref(layer), weakref.ref(found), weakref.ref(x)]
    del layer, found, x
    gc.collect()
    assert [ref() for ref in alive] == [None, None, None]
    assert e.edits == []


def test_another_thread_is_not_edited():
    layer, x, found = layer_of(), inputs(), []
    plain = layer(x)
    with edit(layer) as e:
        e.mute()
        thread = threading.Thread(target=lambda: found.append(layer(x)))
        thread.start()
        thread.join()
        muted = layer(x)
    assert torch.equal(found[0], plain)
    assert not torch.equal(muted, plain)


def test_an_edit_of_a_part_leaves_the_rest_of_the_model():
    model, x = seeded(Stack(depth=3)).double(), inputs()
    with torch.no_grad(), edit(model.layers[1]) as e:
        e.mute()
        found = model(x)
    with torch.no_grad():
        model.layers[1].out.weight.zero_()
    assert_close(found, model(x))


def test_layers_are_named_by_parts_of_paths_by_several_or_by_none():
    model, x = seeded(Stack(depth=12)).double(), inputs()

    def muted(path) -> Tensor:
        with torch.no_grad(), edit(model) as e:
            e.mute(path)
            return model(x)

    def zeroed(*layers: int) -> Tensor:
        twin = seeded(Stack(depth=12)).double()
        with torch.no_grad():
            for i in layers:
                twin.layers[i].out.weight.zero_()
            return twin(x)

    assert_close(muted("layers.1"), zeroed(1))
    assert_close(muted("11"), zeroed(11))
    assert_close(muted(["layers.0", "layers.10"]), zeroed(0, 10))
    assert_close(muted(None), zeroed(*range(12)))


# Gradients and dropout


@pytest.mark.parametrize("way", ["sdpa", "by_hand", "by_einsum"])
def test_gradients_are_those_of_the_edited_arithmetic(way):
    layer, x = layer_of(way), inputs().requires_grad_()
    with edit(layer) as e:
        e.block(query=1, key=2)
        e.force(query=4, key=0, weight=0.3, heads=1)
        e.scale(None, 2, 0.5)
        found = layer(x)

    def change(w: Tensor) -> Tensor:
        row = w[:, 1, 4]
        new = torch.cat([torch.full_like(row[:, :1], 0.3), 0.7 * row[:, 1:] / row[:, 1:].sum(-1, keepdim=True)], -1)
        return w.index_put((torch.tensor([0, 1])[:, None], torch.tensor([[1]]), torch.tensor([[4]])), new[:, None])

    wanted = by_formula(
        layer, x, hidden((1, 2)), weights=change, mix=lambda m: m * torch.tensor([1, 1, 0.5])[:, None, None]
    )
    assert_close(found, wanted)
    parameters = [x, *layer.parameters()]
    assert_close(
        torch.autograd.grad(found.square().sum(), parameters), torch.autograd.grad(wanted.square().sum(), parameters)
    )


def test_recomputed_activations_are_edited_alike():
    layer, x = layer_of(), inputs().requires_grad_()
    found = []
    for again in (False, True):
        with edit(layer) as e:
            e.block(query=1, key=2)
            e.mute(heads=0)
            out = checkpoint(layer, x, use_reentrant=False) if again else layer(x)
            found.append(torch.autograd.grad(out.square().sum(), [x, *layer.parameters()]))
    assert_close(found[0], found[1])


def test_a_gradient_through_an_edited_bmm_is_refused_rather_than_wrong():
    layer, x = layer_of("by_bmm"), inputs()
    with edit(layer) as e:
        e.mute(heads=0)
        found = layer(x)
    with pytest.raises(WatchError, match=r"torch.bmm was edited.*matmul"):
        found.sum().backward()


def test_muting_keeps_what_the_other_heads_drop():
    layer, x = layer_of("sdpa", dropout_p=0.5), inputs()
    torch.manual_seed(3)
    plain = layer(x)
    torch.manual_seed(3)
    with edit(layer) as e:
        e.scale(None, 1, 1.0)
        found = layer(x)
    assert torch.equal(found, plain)


def test_rows_edited_by_hand_drop_the_same_cells():
    layer, x, masks = layer_of("by_hand", dropout=0.5), inputs(), []
    torch.manual_seed(3)
    masks.append(F.dropout(torch.ones(2, HEADS, LENGTH, LENGTH, dtype=torch.float64), 0.5))
    torch.manual_seed(3)
    with edit(layer) as e:
        e.block(query=2, key=0)
        found = layer(x)
    assert_close(found, by_formula(layer, x, hidden((2, 0)), weights=lambda w: w * masks[0]))


# Watching what was edited


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", ["watch", "edit"])
def test_what_is_watched_is_the_edited_model(way, first):
    layer, x = seeded(Attention(WIDTH, HEADS, way)), inputs().float()
    watching, editing = watch(layer), edit(layer)
    with torch.no_grad():
        if first == "watch":
            with watching as trace, editing as e:
                e.block(query=3, key=0)
                e.zero(query=1, key=1, heads=2)
                e.mute(heads=0)
                layer(x)
        else:
            with editing as e, watching as trace:
                e.block(query=3, key=0)
                e.zero(query=1, key=1, heads=2)
                e.mute(heads=0)
                layer(x)
    (seen,) = trace.layers
    wanted = put((slice(None), 2, 1, 1), 0.0)(expected(layer, x, hidden((3, 0)))).float()
    assert_close(seen.weights.dense(), wanted)
    assert_close(seen.weights[1][2].dense(), wanted[1, 2])
    assert_close(seen.weights[1, 2, 1:4, [0, 3]], wanted[1, 2, 1:4][:, [0, 3]])
    assert not seen.weights.allowed[0, 1, 3, 0]
    assert seen.weights.allowed[0, 1, 2, 0]
    assert seen.edits == ["block(query 3, key 0)", "zero(heads 2, query 1, key 1)", "mute(heads 0)"]
    assert verify(trace.runs[-1]), verify(trace.runs[-1])


def test_a_forced_edge_is_seen_where_the_mask_hid_it():
    layer, x = layer_of(), inputs()
    with torch.no_grad(), edit(layer) as e, watch(layer) as trace:
        e.force(query=0, key=3, weight=0.5)
        layer(x, mask=causal())
    weights, keys = trace.layers[0].weights[0, 0].top(2)
    assert_close(weights[0], torch.tensor([0.5, 0.5], dtype=torch.float64))
    assert keys[0].tolist() == [0, 3]


def test_a_muted_heads_map_and_gradient_are_still_its_own():
    layer, x = layer_of(), inputs()
    with edit(layer) as e, watch(layer, gradients=True) as trace:
        e.mute(heads=1)
        e.scale(None, 2, 3.0)
        layer(x).sum().backward()
    (seen,) = trace.layers
    assert_close(seen.weights.dense(), expected(layer, x))
    assert not seen.gradient[:, 1].any()
    columns = layer.out.weight.sum(0).unflatten(0, (HEADS, -1))  # h e
    assert_close(seen.gradient[:, 2], (3 * columns[2]).expand(2, LENGTH, -1))
