"""Which axis is the batch, which the heads: found out from the run, or said to be unknown, and never guessed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

import regard
from regard.errors import WatchError
from tests.trace.layouts import (
    WIDTH,
    CatHeads,
    GroupedFive,
    HeadsFirst,
    InnerModule,
    LocalModule,
    LocalWindows,
    OneHeadInWindows,
    Oracle,
    OwnParameters,
    Rearranged,
    SeveralLayers,
    SharedKeys,
    Viewed,
    Windows,
)
from tests.trace.watched import MODES, watched

ORDERS = ("(b h)", "(h b)")
KINDS: dict[str, Callable[..., Oracle]] = {
    "cat": CatHeads,
    "view": Viewed,
    "inner module": InnerModule,
    **{
        f"{order} by {how}": lambda order=order, how=how, **more: Rearranged(order, how, **more)
        for order in ORDERS
        for how in ("matmul", "bmm", "kernel")
    },
}
WIDER: dict[str, Callable[..., Oracle]] = {
    **{
        f"grouped, {how}": lambda how=how, **more: GroupedFive(how, **more)
        for how in ("kernel", "by hand", "expanded kernel", "expanded by hand")
    },
    **{f"windows, {how}": lambda how=how, **more: Windows(how, **more) for how in ("kernel", "by hand")},
    "merged heads beside windows": LocalWindows,
    "merged heads beside windows, in a module of their own": LocalModule,
    **{f"shared keys {order}": lambda order=order, **more: SharedKeys(order, **more) for order in ORDERS},
    **{f"heads first, {how}": lambda how=how, **more: HeadsFirst(how, **more) for how in ("kernel", "by hand")},
}
ALL = KINDS | WIDER
BARE: dict[str, Callable[..., Oracle]] = {
    f"bare parameters {order}": lambda order=order, **more: OwnParameters(order, **more) for order in ORDERS
}


def x_of(b: int = 3, n: int = 10) -> torch.Tensor:
    return torch.randn(b, n, WIDTH, generator=torch.Generator().manual_seed(b + n))


@MODES
@pytest.mark.parametrize("name", ALL)
def test_every_head_of_every_entry_is_shown_where_it_stands(name: str, mode: Any) -> None:
    if "bmm" in name or name in ("cat", "view", "inner module"):
        mode = torch.no_grad  # bmm of inference tensors is heard where no other thread lives
    model = ALL[name]().eval()
    with mode():
        trace = watched(model, x_of())
    assert model.true.std() > 0.1  # far from uniform, so that a wrong order shows
    assert_close(trace[0].weights.dense(), model.true, atol=2e-6, rtol=0)
    assert trace.verify(), trace.verify()


@pytest.mark.parametrize("name", ALL)
def test_every_head_is_shown_where_it_stands_with_a_graph(name: str) -> None:
    model = ALL[name]()
    trace = watched(model, x_of())
    assert_close(trace[0].weights.dense(), model.true, atol=2e-6, rtol=0)
    assert trace.verify(), trace.verify()


@pytest.mark.parametrize("name", ALL)
def test_the_head_that_is_muted_is_the_head_that_was_named(name: str) -> None:
    model, x = ALL[name]().eval(), x_of()
    with torch.no_grad():
        for head in range(4):
            model.silent = head
            right = model(x)
            model.silent = None
            with regard.edit(model) as e:
                e.mute(heads=head)
                found = model(x)
            assert_close(found, right, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("b", [1, 4])
def test_one_entry_or_as_many_as_heads(name: str, b: int) -> None:
    model = ALL[name]().eval()
    with torch.no_grad():
        trace = watched(model, x_of(b))
    assert_close(trace[0].weights.dense(), model.true, atol=2e-6, rtol=0)
    assert trace.verify(), trace.verify()


@pytest.mark.parametrize("name", [name for name in KINDS if "by" in name])
def test_one_head_is_no_entry_of_the_batch(name: str) -> None:
    model = KINDS[name](heads=1).eval()
    with torch.no_grad():
        trace = watched(model, x_of())
    assert trace[0].weights.shape == (3, 1, 10, 10)
    assert_close(trace[0].weights.dense(), model.true, atol=2e-6, rtol=0)
    assert trace.verify(), trace.verify()


def test_windows_are_said_to_be_windows() -> None:
    with torch.no_grad():
        trace = watched(Windows("kernel").eval(), x_of())
    assert trace[0].states == ["windows"]


def test_windows_of_a_single_head_are_no_heads() -> None:
    model = OneHeadInWindows().eval()
    with torch.no_grad():
        trace = watched(model, x_of())
    assert_close(trace[0].weights.dense(), model.true, atol=2e-6, rtol=0)
    assert trace[0].states == ["windows"]
    assert trace.verify(), trace.verify()


@pytest.mark.parametrize("how", ["kernel", "by hand"])
def test_heads_before_the_batch_are_told_where_there_are_as_many_as_positions(how: str) -> None:
    model = HeadsFirst(how).eval()
    with torch.no_grad():
        trace = watched(model, x_of(3, n=4))
    assert_close(trace[0].weights.dense(), model.true, atol=2e-6, rtol=0)
    assert trace.verify(), trace.verify()


# What cannot be known


@pytest.mark.parametrize("order", ORDERS)
def test_what_cannot_be_told_is_said_to_be_unknown_and_no_head_of_it_is_edited(order: str) -> None:
    model, x = OwnParameters(order).eval(), x_of(4)
    with torch.no_grad():
        trace = watched(model, x)
        (proof,) = trace.verify()
        assert (proof.status, "batch or heads" in proof.why) == ("unverified", True), proof
        assert trace[0].weights.shape == (16, 1, 10, 10)
        with regard.edit(model) as e:
            e.mute(heads=0)
            with pytest.raises(WatchError, match=r"heads=.*layout="):
                model(x)
            e.clear()
        with regard.edit(model) as e:  # all heads of all entries: nothing needs to be known
            e.mute()
            muted = model(x)
    assert_close(muted, model.out.bias.expand_as(muted))


@pytest.mark.parametrize("order", ORDERS)
def test_a_hint_says_what_cannot_be_told(order: str) -> None:
    model, x = OwnParameters(order).eval(), x_of(4)
    layout = "batch-major" if order == "(b h)" else "head-major"
    with torch.no_grad():
        with regard.watch(model, heads=4, layout=layout) as trace:
            model(x)
        model.silent = 2
        right = model(x)
        model.silent = None
        with regard.edit(model, heads=4, layout=layout) as e:
            e.mute(heads=2)
            muted = model(x)
    assert_close(trace[0].weights.dense(), model.true, atol=2e-6, rtol=0)
    assert trace.verify(), trace.verify()
    assert_close(muted, right)


def test_a_reference_is_read_by_the_same_hint() -> None:
    model, x = OwnParameters("(h b)").eval(), x_of(4)
    with torch.no_grad(), regard.edit(model, heads=4, layout="head-major") as e:
        e.mute(heads=1, how="resample", reference=x)
        again = model(x)
    assert_close(again, model(x).detach())


def test_a_layout_for_all_layers_is_one_of_those_that_merge_axes() -> None:
    model, x = GroupedFive("kernel").eval(), x_of()
    with torch.no_grad(), regard.watch(model, layout="head-major") as trace:
        model(x)
    assert_close(trace[0].weights.dense(), model.true, atol=2e-6, rtol=0)
    assert trace.verify(), trace.verify()


def test_a_hint_that_contradicts_the_shapes_or_the_numbers_is_refused() -> None:
    model, x = CatHeads().eval(), x_of()
    with torch.no_grad():
        with regard.watch(model, heads=5) as trace:
            model(x)
        assert "heads=5" in next(iter(trace.runs[0].refused.values()))
        with regard.watch(model, layout="batch-major") as trace:
            model(x)
        assert "batch-major" in next(iter(trace.runs[0].refused.values()))
    assert not trace.layers


def test_hints_are_for_the_parts_that_they_name() -> None:
    model, x = SeveralLayers(CatHeads).eval(), x_of()
    with torch.no_grad():
        with regard.watch(model, heads={"second": 5}) as trace:
            model(x)
        assert [layer.name for layer in trace.layers] == ["first"]
        with pytest.raises(WatchError, match="third"), regard.watch(model, heads={"third": 5}):
            pass
        with pytest.raises(WatchError, match="head-major"), regard.watch(model, layout="tail-major"):
            pass
        with pytest.raises(WatchError, match="heads"), regard.watch(model, heads=0):
            pass


def test_importance_leaves_out_a_layer_whose_heads_are_unknown_and_says_so() -> None:
    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.known, self.unknown = CatHeads(), OwnParameters("(h b)")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.unknown(self.known(x))

    found = regard.importance(Both().eval(), x_of(4), progress=False)
    assert {row["layer"] for row in found.rows} == {"known"}
    assert any("unknown" in note for note in found.notes)


@pytest.mark.parametrize("name", ALL | BARE)
@pytest.mark.parametrize("alike", [False, True], ids=["all differ", "entries alike"])
def test_what_is_verified_is_right_whatever_the_sizes(name: str, alike: bool) -> None:
    unknown = []
    for heads in (2, 4, 6) if "grouped" not in name else (4, 6):
        for b, n in [(1, 4), (2, 4), (2, 6), (3, 2), (4, 12), (6, 6), (12, 2)]:
            model, x = (ALL | BARE)[name](heads=heads).eval(), x_of(b, n)
            with torch.no_grad():
                trace = watched(model, x[:1].expand_as(x) if alike else x)
            if trace.verify():
                assert_close(trace[0].weights.dense(), model.true, atol=5e-6, rtol=0)
            else:
                unknown.append((heads, b, n))
    hidden = "bare" in name or (alike and "shared" in name)  # nothing tells one reading from the other
    assert hidden or not unknown, unknown


class Turned(nn.Module):
    """The softmax stands batch first; where it meets the values, heads do."""

    def __init__(self, how: str, heads: int, size: int) -> None:
        super().__init__()
        self.how, self.num_heads, self.qkv = how, heads, nn.Linear(heads * size, 3 * heads * size)

    def parts(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        w = (q @ k.mT).softmax(-1)
        if self.how == "matmul":
            mix = (w.transpose(0, 1) @ v.transpose(0, 1)).transpose(0, 1)
        elif self.how == "bmm":
            flat = torch.bmm(w.transpose(0, 1).flatten(0, 1), v.transpose(0, 1).flatten(0, 1))
            mix = flat.unflatten(0, (self.num_heads, -1)).transpose(0, 1)
        else:  # two axes of channels, and another order of the others
            mix = torch.einsum("bhij,rbhjd->rihbd", w, torch.stack([v, v])).mean(0).permute(2, 1, 0, 3)
        return mix.transpose(1, 2).flatten(2)


@pytest.mark.parametrize("how", ["matmul", "bmm", "einsum"])
@pytest.mark.parametrize(("batch", "heads"), [(2, 3), (3, 3)])
def test_axes_that_change_places_between_softmax_and_values(how: str, batch: int, heads: int) -> None:
    torch.manual_seed(0)
    model, x = Turned(how, heads, 4), torch.randn(batch, 7, heads * 4)
    with torch.no_grad():
        trace = watched(model, x)
        q, k, v = model.parts(x)
        weights = (q @ k.mT).softmax(-1)
        assert_close(trace[0].weights.dense(), weights)
        assert trace.verify(), trace.verify()
        with regard.edit(model) as e:
            e.mute(heads=1)
            mix = weights @ v
            mix[:, 1] = 0.0
            assert_close(model(x), mix.transpose(1, 2).flatten(2))


class Aligned(nn.Module):
    """As in the MSA Transformer: (r, c, b, m), one map for all rows together, and one for each column."""

    num_heads = 3

    def __init__(self, rows: bool) -> None:
        super().__init__()
        self.rows, self.qkv = rows, nn.Linear(12, 36)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, 3, 4)).unbind(-3)
        if self.rows:
            w = torch.einsum("rinhd,rjnhd->hnij", q, k).div(5).softmax(-1)
            return torch.einsum("hnij,rjnhd->rinhd", w, v).flatten(3)
        w = torch.einsum("icnhd,jcnhd->hcnij", q, k).softmax(-1)
        return torch.einsum("hcnij,jcnhd->icnhd", w, v).flatten(3)


class Alignments(nn.Module):
    def __init__(self, rows: bool) -> None:
        super().__init__()
        self.embedding, self.attention = nn.Embedding(20, 12), Aligned(rows)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.attention(self.embedding(tokens).permute(1, 2, 0, 3))


@pytest.mark.parametrize("rows", [True, False], ids=["rows", "columns"])
def test_alignments_whose_batch_stands_third(rows: bool) -> None:
    torch.manual_seed(0)
    model, tokens = Alignments(rows), torch.randint(20, (2, 5, 7))
    with torch.no_grad():
        trace = watched(model, tokens)
        q, k, _ = model.attention.qkv(model.embedding(tokens)).unflatten(-1, (3, 3, 4)).unbind(-3)
    if rows:
        wanted = torch.einsum("brihd,brjhd->bhij", q, k).div(5).softmax(-1)
    else:
        wanted = torch.einsum("bichd,bjchd->bchij", q, k).softmax(-1).flatten(0, 1)
    assert_close(trace[0].weights.dense(), wanted)
    assert trace.verify(), trace.verify()
