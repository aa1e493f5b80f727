"""A model that was watched before is watched as if it never was: what changed since is seen."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention
from torch.testing import assert_close

from regard.trace.change.edit import edit
from regard.trace.watch import watch
from tests.trace.models import Attention, Stack, expected, seeded, x_of

MASK = torch.rand(2, 1, 7, 7, generator=torch.Generator().manual_seed(3)) > 0.4
MASK |= torch.eye(7, dtype=torch.bool)


def maps(model: Any, x: Tensor, mask: Tensor | None = None) -> list[Tensor]:
    """The weights of every layer in float64, straight from its projections."""
    found = []
    with torch.no_grad():
        for layer in model.layers:
            found.append(expected(layer, x, mask).float())
            x = x + layer(x, mask=mask)
    return found


def hold(model: Any, x: Tensor, mask: Tensor | None = None) -> None:
    """One watch, two calls in it: both are right, and the model gives what it gives unwatched."""
    plain, right = model(x, mask), maps(model, x, mask)
    with watch(model) as trace:
        assert torch.equal(model(x, mask), plain)
        assert torch.equal(model(x, mask), plain)
    assert len(trace.runs) == 2
    for run in trace.runs:
        assert len(run.layers) == len(right)
        for layer, weights in zip(run.layers, right, strict=True):
            assert_close(layer.weights.dense(), weights)
            assert layer.kind == "self"
    assert trace.verify(), trace.verify()


def replace_layer(model: Any) -> None:
    model.layers[1] = seeded(Attention(way=model.layers[0].way), seed=5)


def change_heads(model: Any) -> None:
    for layer in model.layers:
        layer.num_heads = layer.kv_heads = 6


def write_weights(model: Any) -> None:
    with torch.no_grad():
        model.layers[0].q.weight.mul_(1.7)


def patch_forward(model: Any) -> None:
    whole = model.layers[0].forward

    def forward(x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        return 2 * whole(x, mask=mask)

    model.layers[0].forward = forward


def change_way(model: Any) -> None:
    model.layers[0].way = "by_hand" if model.layers[0].way == "sdpa" else "sdpa"


def add_layer(model: Any) -> None:
    model.layers.append(seeded(Attention(), seed=9))


def train(model: Any) -> None:
    model.train()


CHANGES = [replace_layer, change_heads, write_weights, patch_forward, change_way, add_layer, train]


@pytest.mark.parametrize("way", ["sdpa", "by_hand"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_between_two_watches_is_seen(change: Callable[[Any], None], way: str) -> None:
    model = seeded(Stack(depth=2, way=way)).eval()
    hold(model, x_of())
    change(model)
    hold(model, x_of())


@pytest.mark.parametrize("way", ["sdpa", "by_hand"])
def test_what_is_changed_between_two_calls_of_one_watch_is_seen(way: str) -> None:
    model: Any = seeded(Stack(depth=2, way=way))
    x, inputs = x_of(), [(x_of(seed=4), None), (x_of(), MASK), (x_of(b=3, n=5), None)]
    right = [maps(model, x), *(maps(model, *given) for given in inputs)]
    with torch.no_grad(), watch(model) as trace:
        model(x)
        for given in inputs:
            model(*given)
        replace_layer(model)
        model(x)
    *known, last = trace.runs
    for run, weights in zip(known, right, strict=True):
        assert not run.missed
        for layer, one in zip(run.layers, weights, strict=True):
            assert_close(layer.weights.dense(), one)
    assert_close(last.layers[0].weights.dense(), right[0][0])
    assert [layer.name for layer in last.layers] == ["layers.0"]  # the new layer is no part of what is watched
    assert last.missed
    assert not trace.verify()


class Forks(nn.Module):
    """Two texts of one length; which of them the second layer works on is decided by a number."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Embedding(11, 24), nn.Embedding(11, 24)
        self.first, self.second = Attention(), Attention()

    def forward(self, ids: Tensor, others: Tensor, swaps: bool) -> Tensor:
        x, y = self.one(ids), self.other(others)
        x = x + self.first(x)
        return self.second(y if swaps else x)


def test_another_branch_on_the_same_shapes_has_other_names() -> None:
    model = seeded(Forks())
    a, b = torch.tensor([[1, 2, 3, 4, 5]]), torch.tensor([[6, 7, 8, 9, 10]])
    words = [f"w{i}" for i in range(11)]

    class Names:
        def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
            return [words[i] for i in ids]

        def decode(self, ids: list[int], **_: Any) -> str:
            return " ".join(words[i] for i in ids)

    def rows(swaps: bool) -> list[tuple[str, ...]]:
        with torch.no_grad(), watch(model, Names()) as trace:
            model(a, b, swaps)
        shown = [() if layer.queries is None else layer.queries[0].shown for layer in trace.layers]
        return [tuple(word.strip("·") for word in line) for line in shown]

    for swaps in (False, True, False, True):
        first, second = rows(swaps)
        assert first in ((), ("w1", "w2", "w3", "w4", "w5"))
        wrong = ("w1", "w2", "w3", "w4", "w5") if swaps else ("w6", "w7", "w8", "w9", "w10")
        assert second != wrong
    assert rows(True)[1] == ("w6", "w7", "w8", "w9", "w10")


class Holds(nn.Module):
    """Attention by whatever function it holds."""

    def __init__(self) -> None:
        super().__init__()
        self.attend: Any = None
        self.qkv = nn.Linear(24, 72)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, 3, -1)).permute(2, 0, 3, 1, 4)
        out: Tensor = self.attend(q, k, v)
        return out.transpose(1, 2).flatten(2)


def test_a_function_that_a_module_holds_is_looked_up_in_each_watch() -> None:
    model: Any = seeded(Holds())
    x, doors = x_of(), []
    for function in (F.scaled_dot_product_attention, flex_attention, F.scaled_dot_product_attention, flex_attention):
        model.attend = function
        with torch.no_grad():
            plain = model(x)
            with watch(model) as trace:
                assert torch.equal(model(x), plain)
        assert trace.verify(), trace.verify()
        assert model.attend is function
        doors.append(trace[0].door)
    assert doors == ["kernel", "flex", "kernel", "flex"]


def test_nested_watches_edits_and_another_thread_share_nothing() -> None:
    model: Any = seeded(Stack(depth=2))
    x, right = x_of(), maps(model, x_of())
    plain = model(x)
    with torch.no_grad(), watch(model) as outer:
        model(x)
        with watch(model.layers[1]) as inner, edit(model) as edited:
            edited.mute("layers.1", heads=0)
            model(x)
        there: list[Tensor] = []
        thread = threading.Thread(target=lambda: there.append(model(x)))
        thread.start()
        thread.join()
        model(x)
    assert torch.equal(there[0], plain)
    assert len(outer.runs) == 3
    assert len(inner.runs) == 1
    for run in (outer.runs[0], outer.runs[2]):
        assert not run.changes
        for layer, weights in zip(run.layers, right, strict=True):
            assert_close(layer.weights.dense(), weights)
    assert outer.runs[1].changes
    assert_close(outer.runs[1].layers[0].weights.dense(), right[0])
