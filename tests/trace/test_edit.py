"""An edited model against the same arithmetic written out, door by door."""

import threading
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

import regard
from regard.errors import WatchError
from regard.trace.doors.kernel import DOORS
from regard.trace.doors.scene import SCENE
from regard.trace.edit import edit
from regard.trace.verify import verify
from regard.trace.watch import watch
from tests.trace.models import Attention, Stack, expected, seeded

WAYS = ["sdpa", "by_hand", "by_bmm", "by_einsum"]
HEADS, WIDTH, LENGTH = 3, 24, 5


def layer_of(way: str = "sdpa", **how) -> Attention:
    return seeded(Attention(WIDTH, HEADS, way, **how)).double()


def inputs(batch: int = 2, length: int = LENGTH) -> Tensor:
    return torch.randn(batch, length, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def by_formula(
    layer: Attention,
    x: Tensor,
    mask: Tensor | None = None,
    *,
    weights: Callable[[Tensor], Tensor] = lambda w: w,
    mix: Callable[[Tensor], Tensor] = lambda m: m,
) -> Tensor:
    """The layer written out, with something done to its weights and to its mix."""
    _, v = layer.kv(x).unflatten(-1, (2, layer.kv_heads, -1)).permute(2, 0, 3, 1, 4)
    v = v.repeat_interleave(layer.num_heads // layer.kv_heads, 1)
    mixed = mix(weights(expected(layer, x, mask)) @ v)
    return layer.out(mixed.transpose(1, 2).flatten(2))


def hidden(*cells: tuple[int, int], heads: slice = slice(None), length: int = LENGTH) -> Tensor:
    """A mask that hides these (query, key) cells of some heads."""
    mask = torch.ones(1, HEADS, length, length, dtype=torch.bool)
    for query, key in cells:
        mask[:, heads, query, key] = False
    return mask


def causal(length: int = LENGTH) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()


def put(where: tuple, value: Tensor | float) -> Callable[[Tensor], Tensor]:
    """What sets some cells to something."""

    def change(given: Tensor) -> Tensor:
        given = given.clone()
        given[where] = value
        return given

    return change


# What each edit does


@pytest.mark.parametrize("way", WAYS)
def test_an_edit_of_nothing_leaves_outputs_and_gradients_bit_equal(way):
    layer, x = layer_of(way).float(), inputs().float().requires_grad_()
    plain = layer(x)
    (wanted,) = torch.autograd.grad(plain.square().sum(), x)
    with edit(layer):
        out = layer(x)
    assert torch.equal(out, plain)
    assert torch.equal(torch.autograd.grad(out.square().sum(), x)[0], wanted)


@pytest.mark.parametrize("way", WAYS)
def test_muting_a_head_is_zeroing_its_columns_of_the_output_projection(way):
    layer, x = layer_of(way), inputs()
    with torch.no_grad(), edit(layer) as e:
        e.mute("Attention", heads=[1])
        found = layer(x)
    assert_close(found, by_formula(layer, x, mix=put((slice(None), 1), 0.0)))
    with torch.no_grad():
        layer.out.weight[:, WIDTH // HEADS : 2 * WIDTH // HEADS] = 0
    assert_close(found, layer(x))


@pytest.mark.parametrize("way", WAYS)
def test_scaling_a_head_scales_what_it_gives(way):
    layer, x = layer_of(way), inputs()
    with torch.no_grad(), edit(layer) as e:
        e.scale(None, [0, 2], 2.5)
        found = layer(x)
    assert_close(found, by_formula(layer, x, mix=lambda m: m * torch.tensor([2.5, 1.0, 2.5])[:, None, None]))


@pytest.mark.parametrize("way", WAYS)
def test_muting_to_the_mean_gives_every_position_the_mean_of_the_call(way):
    layer, x = layer_of(way), inputs()
    with torch.no_grad(), edit(layer) as e:
        e.mute(heads=2, how="mean")
        found = layer(x)
    assert_close(found, by_formula(layer, x, mix=lambda m: torch.cat([m[:, :2], m[:, 2:].mean(2, True).expand_as(m[:, 2:])], 1)))


@pytest.mark.parametrize("way", WAYS)
def test_resampling_takes_a_head_from_the_next_entry_of_the_batch(way):
    layer, x = layer_of(way), inputs(batch=4)
    with torch.no_grad(), edit(layer) as e:
        e.mute(heads=0, how="resample")
        found = layer(x)
    assert_close(found, by_formula(layer, x, mix=lambda m: torch.cat([m[[3, 0, 1, 2], :1], m[:, 1:]], 1)))


@pytest.mark.parametrize("way", WAYS)
def test_blocking_an_edge_is_hiding_that_cell_by_a_mask(way):
    layer, x = layer_of(way), inputs()
    with torch.no_grad(), edit(layer) as e:
        e.block(query=3, key=[0, 4], heads=slice(1, None))
        e.block(query=[1, -1], key=2)
        found = layer(x)
    mask = hidden((1, 2), (4, 2)) & hidden((3, 0), (3, 4), heads=slice(1, None))
    assert_close(found, layer(x, mask=mask))
    assert_close(found, by_formula(layer, x, mask))


@pytest.mark.parametrize("way", WAYS)
def test_zeroing_an_edge_leaves_the_rest_of_the_row_as_it_is(way):
    layer, x = layer_of(way), inputs()
    with torch.no_grad(), edit(layer) as e:
        e.zero(query=slice(2, None), key=1)
        found = layer(x)
    assert_close(found, by_formula(layer, x, weights=put((..., slice(2, None), 1), 0.0)))


@pytest.mark.parametrize("way", WAYS)
def test_forcing_an_edge_shares_what_is_left_in_the_old_proportions(way):
    layer, x = layer_of(way), inputs()

    def forced(w: Tensor) -> Tensor:
        rest = w[:, 1, 3].clone()
        rest[:, [0, 2]] = 0
        w = w.clone()
        w[:, 1, 3] = 0.4 * rest / rest.sum(-1, keepdim=True)
        w[:, 1, 3, [0, 2]] = 0.3
        return w

    with torch.no_grad(), edit(layer) as e:
        e.force(query=3, key=[0, 2], weight=0.6, heads=1)
        found = layer(x)
    assert_close(found, by_formula(layer, x, weights=forced))


@pytest.mark.parametrize("way", WAYS)
def test_replacing_by_uniform_is_even_over_what_the_mask_lets_see(way):
    layer, x, mask = layer_of(way), inputs(), causal()
    with torch.no_grad(), edit(layer) as e:
        e.replace(None, [0, 1])
        found = layer(x, mask=mask)
    even = mask.double() / mask.sum(-1, keepdim=True)
    assert_close(found, by_formula(layer, x, mask, weights=put((slice(None), slice(0, 2)), even)))


@pytest.mark.parametrize("axes", [2, 3, 4])
def test_replacing_by_a_tensor_uses_it_as_it_is(axes):
    layer, x = layer_of(), inputs()
    given = torch.rand((2, HEADS, LENGTH, LENGTH)[4 - axes :], dtype=torch.float64)
    with torch.no_grad(), edit(layer) as e:
        e.replace("Attention", 2, by=given)
        found = layer(x)
    whole = given.expand(2, HEADS, LENGTH, LENGTH)
    assert_close(found, by_formula(layer, x, weights=put((slice(None), 2), whole[:, 2])))


def test_replacing_by_another_traces_layer_takes_each_head_from_its_own():
    layer, x, other = layer_of(), inputs(), inputs(length=2 * LENGTH)[:, LENGTH:]
    with watch(layer) as trace:
        layer(other)
    with torch.no_grad(), edit(layer) as e:
        e.replace(heads=[0, 2], by=trace.layers[0])
        found = layer(x)
        e.clear()
        e.replace(heads=[1], by=trace.layers[0].weights[0, 2])
        one = layer(x)
    wanted = expected(layer, other)
    assert_close(found, by_formula(layer, x, weights=put((slice(None), [0, 2]), wanted[:, [0, 2]])))
    assert_close(one, by_formula(layer, x, weights=put((slice(None), 1), wanted[0, 2])))


@pytest.mark.parametrize("kind", ["inputs", "trace"])
def test_a_reference_gives_its_mean_or_its_own_output(kind):
    layer, x, other = layer_of(), inputs(), inputs(batch=4)[2:]
    given = other
    if kind == "trace":
        with watch(layer) as given:
            layer(other)
    mixes: list[Tensor] = []
    by_formula(layer, other, mix=lambda m: mixes.append(m) or m)
    with torch.no_grad(), edit(layer) as e:
        e.mute(heads=1, how="mean", reference=given)
        usual = layer(x)
        e.clear()
        e.mute(heads=1, how="resample", reference=given)
        foreign = layer(x)
    assert_close(usual, by_formula(layer, x, mix=put((slice(None), 1), mixes[0][:, 1].mean((0, 1)))))
    assert_close(foreign, by_formula(layer, x, mix=put((slice(None), 1), mixes[0][:, 1])))


# At the edges


def test_a_query_whose_last_key_is_blocked_gets_nothing():
    layer, x = layer_of(), inputs()
    with torch.no_grad(), edit(layer) as e:
        e.block(query=0, key=0)
        found = layer(x, mask=causal())
    assert_close(found, by_formula(layer, x, causal(), weights=put((..., 0, slice(None)), 0.0)))


def test_what_is_left_after_a_block_is_exact_however_little_it_was():
    class Sharp(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, scale=1.0)

    k = torch.tensor([[[[400.0], [0.0], [1.0]]]])
    with edit(Sharp()) as e:
        e.block(query=0, key=0)
        found = Sharp.forward(e._model, torch.ones(1, 1, 1, 1), k, torch.eye(3)[None, None])
    assert_close(found[0, 0, 0], torch.tensor([0.0, 1.0, torch.e]) / (1 + torch.e))


def test_a_forced_edge_is_forced_even_where_the_mask_hid_the_key():
    layer, x = layer_of(), inputs()

    def forced(w: Tensor) -> Tensor:
        w = w.clone()
        w[..., 1, :] *= 0.75
        w[..., 1, 4] = 0.25
        return w

    with torch.no_grad(), edit(layer) as e:
        e.force(query=1, key=4, weight=0.25)
        found = layer(x, mask=causal())
    assert_close(found, by_formula(layer, x, causal(), weights=forced))


def test_a_forced_edge_without_any_other_key_keeps_its_weight():
    layer, x = layer_of(), inputs()
    with torch.no_grad(), edit(layer) as e:
        e.force(query=0, key=0, weight=0.25)
        found = layer(x, mask=causal())
    assert_close(found, by_formula(layer, x, causal(), weights=put((..., 0, 0), 0.25)))


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
    half = by_formula(layer, x, weights=lambda w: put((..., 2, 1), 0.5)(torch.cat([w[..., :2, :], 0.5 * block(w)[..., 2:3, :], w[..., 3:, :]], -2)))
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
    with pytest.raises(ZeroDivisionError), edit(layer) as e:
        e.mute()
        layer(x)
        raise ZeroDivisionError
    assert SCENE.get() is None
    assert DOORS.users == 0
    assert torch.equal(layer(x), plain)


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
    assert_close(torch.autograd.grad(found.square().sum(), parameters), torch.autograd.grad(wanted.square().sum(), parameters))


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
    assert [note for note in seen.notes if note.startswith("edited")] == [
        "edited: block(query 3, key 0)",
        "edited: zero(heads 2, query 1, key 1)",
        "edited: mute(heads 0)",
    ]
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


# What goes wrong


def test_unknown_paths_are_refused_with_those_there_are():
    with edit(seeded(Stack(depth=2))) as e, pytest.raises(WatchError, match=r"'encoder'; there are: layers.0, layers.0.q"):
        e.mute("encoder")


def test_a_path_of_two_layers_is_refused_with_both():
    model = seeded(Stack(depth=2)).double()
    with pytest.raises(WatchError, match=r"'layers' fits layers.0 and layers.1; give more"), edit(model) as e:
        e.mute("layers")
        model(inputs())


def test_a_head_that_is_not_there_is_refused():
    layer = layer_of()
    with pytest.raises(WatchError, match=r"Attention has 3 heads, but head 3 was asked for; count from 0 to 2"), edit(layer) as e:
        e.mute(heads=[0, 3])
        layer(inputs())


@pytest.mark.parametrize(
    ("edge", "words"),
    [
        ({"query": 5, "key": 0}, r"block\(query 5, key 0\) names query 5, but the longest call had 5"),
        ({"query": [0, -6]}, "names query -6, but the longest call had 5"),
        ({"key": 7}, "names key 7, but the longest call had 5; count from 0 to 4"),
        ({"query": slice(6, 9)}, "names no cell: the longest call had 5 queries and 5 keys"),
    ],
    ids=["query", "from the end", "key", "slice"],
)
def test_edges_beyond_the_end_are_refused_after_the_run(edge, words):
    layer = layer_of()
    with pytest.raises(WatchError, match=words), edit(layer) as e:
        e.block(**edge)
        layer(inputs())
    with pytest.raises(WatchError, match=words), edit(layer) as e:
        e.block(**edge)
        e.run(inputs())


def test_a_model_without_attention_and_one_that_did_not_run_are_told():
    for run in (True, False):
        model = nn.Sequential(nn.Linear(3, 3))
        with pytest.raises(WatchError, match=r"mute\(heads 1\) changed nothing: the model was not called"), edit(model) as e:
            e.mute(heads=1)
            if run:
                model(torch.zeros(2, 3))


def test_a_layer_that_computes_no_attention_is_told_with_those_that_do():
    model = seeded(Stack(depth=2)).double()
    with pytest.raises(WatchError, match=r"mute\('layers.0.out'\) met no attention; the model has it at: layers.0, layers.1"):
        with edit(model) as e:
            e.mute("layers.0.out")
            model(inputs())


BAD = {
    "how": (lambda e: e.mute(how="loud"), "muted by zero, mean, resample, but how='loud'"),
    "reference": (lambda e: e.mute(reference=inputs()), "needs no reference"),
    "path": (lambda e: e.mute(3), "named by a part of its path, but 3 came"),
    "no path": (lambda e: e.mute([]), "no layer was named"),
    "call": (lambda e: e.mute("q#0"), "count them from 1"),
    "heads": (lambda e: e.mute(heads="first"), "heads is 'first'; give a whole number"),
    "no heads": (lambda e: e.mute(heads=[]), "heads names nothing"),
    "factor": (lambda e: e.scale(None, 0, "loud"), "factor is 'loud'; give a number"),
    "edge": (lambda e: e.block(), "block needs an edge"),
    "query": (lambda e: e.block(query=1.5), "query is 1.5; give a whole number"),
    "true": (lambda e: e.block(query=True), "query is True"),
    "weight": (lambda e: e.force(0, 0, 1.5), "weight is 1.5, but it is a share"),
    "no key": (lambda e: e.force(query=0), "forced to some key"),
    "by": (lambda e: e.replace(by="even"), "replaced by 'uniform'"),
    "negative": (lambda e: e.replace(by=torch.tensor([[-1.0]])), "some that came are below 0"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_cannot_be_meant_is_refused_in_a_sentence(bad):
    ask, words = BAD[bad]
    with edit(layer_of()) as e, pytest.raises(WatchError, match=words):
        ask(e)


RUNNING = {
    "one position": (lambda e: e.mute(how="mean"), inputs(length=1), "called for one position; give reference="),
    "one entry": (lambda e: e.mute(how="resample"), inputs(batch=1), "called with one entry; run several"),
    "map": (lambda e: e.replace(by=torch.ones(4, 5)), inputs(), r"\(1, 1, 4, 5\), but Attention was called with \(2, 3, 5, 5\)"),
    "reference": (
        lambda e: e.mute(how="resample", reference=inputs(length=4)),
        inputs(),
        r"reference of mute\(how resample\) has \(b, h, q, e\) = \(2, 3, 4, 8\) at Attention, but the call has",
    ),
}


@pytest.mark.parametrize("bad", RUNNING)
def test_what_does_not_fit_the_call_is_refused_in_a_sentence(bad):
    ask, x, words = RUNNING[bad]
    layer = layer_of()
    with pytest.raises(WatchError, match=words), edit(layer) as e:
        ask(e)
        layer(x)
    assert DOORS.users == 0


def test_an_editor_is_of_no_use_after_its_block():
    layer = layer_of()
    with edit(layer) as e:
        pass
    with pytest.raises(WatchError, match="the block of this edit is over"):
        e.mute()
    with pytest.raises(WatchError, match="the block of this edit is over"):
        e.run(inputs())


def test_a_trace_without_values_gives_no_reference():
    layer = layer_of()
    with watch(layer, values=False) as trace:
        layer(inputs())
    with pytest.raises(WatchError, match="keeps no values of Attention; watch it with values=True"), edit(layer) as e:
        e.mute(how="mean", reference=trace)
        layer(inputs())


def test_edits_say_what_was_asked_for():
    with edit(layer_of()) as e:
        e.mute("q", heads=[1, 2])
        e.force(query=slice(1, None), key=-1, weight=0.5)
        assert e.edits == ["mute('q', heads [1, 2])", "force(query 1:, key -1, weight 0.5)"]
        e.clear()
        assert e.edits == []
    assert regard.errors.WatchError is WatchError
