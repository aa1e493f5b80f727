"""Weights that meet more than the values of the keys, or of which some columns meet none."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

import regard
from regard.errors import WatchError
from tests.trace.watched import MODES, watched

H, D, E = 3, 4, 5


class Written(nn.Module):
    """Queries of `x`, keys and values of `source`; `attend` is how somebody writes the rest."""

    def __init__(self, attend: Callable[..., Tensor], q: int, k: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads, self.attend, self.dropout = H, attend, nn.Dropout(dropout)
        self.q, self.k, self.v = nn.Linear(8, H * D), nn.Linear(8, H * D), nn.Linear(8, H * E)
        self.relative_keys, self.relative = nn.Parameter(torch.randn(q + k, D)), nn.Parameter(torch.randn(q + k, E))
        self.sinks, self.met = nn.Parameter(torch.randn(H)), torch.zeros(())

    def forward(self, x: Tensor, source: Tensor) -> Tensor:
        q = self.q(x).unflatten(-1, (H, D)).transpose(1, 2) / math.sqrt(D)
        k, v = (f(source).unflatten(-1, (H, -1)).transpose(1, 2) for f in (self.k, self.v))
        return self.attend(self, q, k, v).transpose(1, 2).flatten(2)

    def table(self, of: Tensor, q: int, k: int) -> Tensor:
        """(q, k, d): the learned vector of each distance."""
        return of[torch.arange(k) - torch.arange(q)[:, None] + q]

    def record(self, weights: Tensor) -> Tensor:
        self.met = weights.detach().clone()
        return weights


def by_einsum(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    n, m = q.shape[2], k.shape[2]
    scores = q @ k.mT + torch.einsum("bhqd,qkd->bhqk", q, self.table(self.relative_keys, n, m))
    w = self.dropout(self.record(scores.softmax(-1)))
    return w @ v + torch.einsum("bhqk,qkd->bhqd", w, self.table(self.relative, n, m))


def first_by_einsum(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    w = self.dropout(self.record((q @ k.mT).softmax(-1)))
    return torch.einsum("bhqk,qkd->bhqd", w, self.table(self.relative, q.shape[2], k.shape[2])) + w @ v


def by_matmul(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    (b, h, n, _), m = q.shape, k.shape[2]
    relative = q.permute(2, 0, 1, 3).flatten(1, 2) @ self.table(self.relative_keys, n, m).mT
    w = self.dropout(self.record((q @ k.mT + relative.unflatten(1, (b, h)).permute(1, 2, 0, 3)).softmax(-1)))
    more = w.permute(2, 0, 1, 3).flatten(1, 2) @ self.table(self.relative, n, m)
    return w @ v + more.unflatten(1, (b, h)).permute(1, 2, 0, 3)


def heads_first(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Queries, then heads, then the batch."""
    (b, h, n, _), m = q.shape, k.shape[2]
    w = self.dropout(self.record((q @ k.mT).softmax(-1)))
    more = w.permute(2, 1, 0, 3).flatten(1, 2) @ self.table(self.relative, n, m)
    return more.unflatten(1, (h, b)).permute(2, 1, 0, 3) + w @ v


SHAW = [by_einsum, first_by_einsum, by_matmul, heads_first]


def build(
    attend: Callable[..., Tensor], b: int = 2, q: int = 7, k: int = 9, **how: float
) -> tuple[Written, Tensor, Tensor]:
    torch.manual_seed(1)
    return Written(attend, q, k, **how), torch.randn(b, q, 8), torch.randn(b, k, 8)


@MODES
@pytest.mark.parametrize(("b", "q", "k"), [(2, 7, 9), (2, 6, 8), (2, 6, 6)], ids=["", "q = b · h", "q = k = b · h"])
@pytest.mark.parametrize("attend", SHAW)
def test_relative_values_are_a_second_sum_of_the_same_map(attend, b, q, k, mode) -> None:  # type: ignore[no-untyped-def]
    model, x, source = build(attend, b, q, k)
    with mode():
        trace = watched(model.eval(), x, source)
    if "torch.bmm" in "".join(trace.notes):  # beside other threads, which an earlier test left
        return
    assert len(trace.layers) == 1
    assert_close(trace[0].weights.dense(), model.met, atol=0, rtol=0)
    assert trace.verify(), trace.verify()
    assert any("values of each query's own" in note for note in trace[0].notes)


@pytest.mark.parametrize("attend", SHAW)
def test_a_second_sum_is_known_behind_dropout(attend) -> None:  # type: ignore[no-untyped-def]
    model, x, source = build(attend, dropout=0.3)
    with torch.no_grad():
        trace = watched(model.train(), x, source)
    assert_close(trace[0].weights.dense(), model.met, atol=0, rtol=0)
    assert trace.verify(), trace.verify()


@pytest.mark.parametrize("attend", SHAW)
def test_an_edit_would_leave_the_second_sum_so_it_is_refused(attend) -> None:  # type: ignore[no-untyped-def]
    model, x, source = build(attend)
    with torch.no_grad(), regard.edit(model) as edit:
        edit.mute(heads=[1])
        with pytest.raises(WatchError, match="values of each query's own"):
            model(x, source)


def of_each_query(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    w = self.record((q @ k.mT).softmax(-1))
    values = v[:, :, None] + self.table(self.relative, q.shape[2], k.shape[2])
    return torch.einsum("bhqk,bhqkd->bhqd", w, values)


def of_each_query_by_matmul(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    w = self.record((q @ k.mT).softmax(-1))
    return (w[..., None, :] @ (v[:, :, None] + self.table(self.relative, q.shape[2], k.shape[2])))[..., 0, :]


@pytest.mark.parametrize("attend", [of_each_query, of_each_query_by_matmul])
def test_values_of_each_querys_own_alone_are_refused_with_the_true_reason(attend) -> None:  # type: ignore[no-untyped-def]
    model, x, source = build(attend)
    with torch.no_grad():
        trace = watched(model, x, source)
    assert not trace.layers
    assert "met values of each query's own only" in repr(trace.verify())


def sink_behind(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.cat([q @ k.mT, self.sinks[:, None, None].expand(len(q), -1, q.shape[2], 1)], -1)
    return self.dropout(self.record(scores.softmax(-1)[..., :-1])) @ v


def sinks_before(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    sinks = self.sinks[:, None, None].expand(len(q), -1, q.shape[2], 2)
    w = torch.cat([sinks, torch.einsum("bhid,bhjd->bhij", q, k)], -1).softmax(-1)[..., 2:]
    return torch.einsum("bhij,bhjd->bhid", self.dropout(self.record(w)), v)


@MODES
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("attend", [sink_behind, sinks_before])
def test_columns_of_learned_sinks_meet_no_values(attend, dropout, mode) -> None:  # type: ignore[no-untyped-def]
    model, x, source = build(attend, dropout=dropout)
    with mode():
        trace = watched(model, x, source)
    assert_close(trace[0].weights.dense(), model.met, atol=0, rtol=0)
    assert trace.verify(), trace.verify()
    assert "such as a learned sink" in " ".join(trace[0].notes)


def grouped(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One key head for all, beside an axis of groups."""
    k, v = (x[:, :1].transpose(1, 2) for x in (k, v))  # b s kv d
    w = torch.einsum("bkgqd,bskd->bkgqs", q[:, None], k).softmax(-1)
    self.record(w[:, 0])
    return torch.einsum("bkgqs,bskd->bqkgd", w, v)[:, :, 0].transpose(1, 2)


def values_before_weights(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    w = self.record((q @ k.mT).softmax(-1))
    return torch.einsum("bhkd,bhqk->bqhd", v, w).transpose(1, 2)


def with_dots(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    w = self.record((q @ k.mT).softmax(-1))
    return torch.einsum("... q k, ... k d -> ... q d", w, v)


@MODES
@pytest.mark.parametrize("attend", [grouped, values_before_weights, with_dots])
def test_an_einsum_with_its_axes_in_any_order_is_heard(attend, mode) -> None:  # type: ignore[no-untyped-def]
    model, x, source = build(attend)
    with mode():
        trace = watched(model, x, source)
    assert_close(trace[0].weights.dense(), model.met, atol=0, rtol=0)
    assert trace.verify(), trace.verify()


class Even(nn.Module):
    """Channels before positions, so that weights are the right operand; scores are so small that all are near alike."""

    def forward(self, x: Tensor) -> Tensor:
        attn = (1e-6 * x.mT @ x).softmax(-1)
        return x @ attn.mT


def test_weights_of_a_softmax_are_heard_also_where_they_are_nearly_even() -> None:
    with torch.no_grad():
        trace = watched(Even(), torch.randn(2, 8, 8, generator=torch.Generator().manual_seed(0)))
    assert [layer.weights.shape for layer in trace.layers] == [(2, 1, 8, 8)]
    assert trace.verify(), trace.verify()


class HeadsFirst(nn.Module):
    """Heads before the batch, and three sums: over values, over values by position, over values of each query's own."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads, self.size = H, D
        self.q, self.k, self.v, self.positions = (nn.Linear(8, H * D) for _ in range(4))
        self.softmax, self.dropout = nn.Softmax(-1), nn.Dropout(0.1)

    def cut(self, x: Tensor) -> Tensor:
        return torch.cat(x.split(self.size, -1), 0)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v, more = (self.cut(part(x)) for part in (self.q, self.k, self.v, self.positions))
        w = self.dropout(self.softmax(q.bmm(k.mT)))
        apart = self.cut(self.positions(x[:, :, None] * x[:, None]))
        sums = w.matmul(v) + w.matmul(more) + w.unsqueeze(2).matmul(apart).squeeze(2)
        return torch.cat(sums.split(len(x), 0), -1)


def test_all_sums_over_the_same_weights_are_one_map() -> None:
    torch.manual_seed(0)
    model, x = HeadsFirst().eval(), torch.randn(2, 7, 8)
    with torch.no_grad():
        trace = watched(model, x)
        q, k = (part(x).unflatten(-1, (H, D)).transpose(1, 2) for part in (model.q, model.k))
    assert [layer.name for layer in trace.layers] == ["HeadsFirst"]
    assert_close(trace[0].weights.dense(), (q @ k.mT).softmax(-1))
    assert trace.verify(), trace.verify()
    with pytest.raises(WatchError, match="further values"), torch.no_grad(), regard.edit(model) as e:  # noqa: PT012
        e.mute(heads=0)
        model(x)
