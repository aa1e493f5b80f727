"""flex_attention: any mask and any score function that somebody writes, cell by cell."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.testing import assert_close

import regard
from regard.errors import Stale
from regard.trace.doors.flex import open_flex
from tests.trace import flex_helper
from tests.trace.flex_helper import attend as attend_there
from tests.trace.watched import MODES, watched


class Flex(nn.Module):
    def __init__(self, **how: Any) -> None:
        super().__init__()
        self.how = how

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        return flex_attention(q, k, v, **self.how)


Q, K = 9, 11
LENGTHS = torch.tensor([5, 8])


def nearby(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return i >= j - 1


def by_head(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return (i >= j) | ((h == 1) & (b == 0))


def blind(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return (i >= j) & (i != 3)


def short(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return j < LENGTHS[b]


def distance(s: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return s + 0.1 * (j - i) * (h + 1)


def hidden(s: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return torch.where(i >= j, s, -math.inf)


def capped(s: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return 5 * torch.tanh(s / 5)


def clamped(s: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return torch.clamp(s, -4.0, 4.0)


def warmer(s: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return s * (1 + 0.1 * h)


FLEX: dict[str, tuple[dict[str, Any], Callable[..., Tensor] | None, str]] = {
    "plain": ({}, None, "computed"),
    "with a scale": ({"scale": 0.7}, None, "computed"),
    "with grouped heads": ({"enable_gqa": True}, None, "computed"),
    "with its normaliser": ({"return_lse": True}, None, "computed"),
    "masked": ({}, nearby, "computed"),
    "masked by head": ({}, by_head, "computed"),
    "masked by length": ({}, short, "computed"),
    "with a blind row": ({}, blind, "computed"),
    "with distances added": ({"score_mod": distance}, None, "computed"),
    "hiding by -inf": ({"score_mod": hidden}, None, "computed"),
    "capped": ({"score_mod": capped}, None, "stored"),
    "capped, masked and grouped": ({"score_mod": capped, "enable_gqa": True}, nearby, "stored"),
    "scaled by head": ({"score_mod": warmer}, None, "stored"),
    "clamped": ({"score_mod": clamped}, None, "stored"),
}


def cell_by_cell(q: Tensor, k: Tensor, how: dict[str, Any], mask: Callable[..., Tensor] | None) -> Tensor:
    """What flex_attention is defined to do, in float64 loops."""
    q, k = q.double(), k.double()
    found = torch.zeros(*q.shape[:3], k.shape[2], dtype=torch.float64)
    group = q.shape[1] // k.shape[1]
    for b, h, i in torch.cartesian_prod(*(torch.arange(n) for n in q.shape[:3])):
        scores = torch.full((k.shape[2],), -math.inf, dtype=torch.float64)
        for j in torch.arange(k.shape[2]):
            if mask is None or mask(b, h, i, j):
                score = (q[b, h, i] @ k[b, h // group, j]) * how.get("scale", q.shape[-1] ** -0.5)
                scores[j] = how["score_mod"](score, b, h, i, j) if "score_mod" in how else score
        if not scores.isneginf().all():
            found[b, h, i] = scores.softmax(-1)
    return found


@MODES
@pytest.mark.parametrize("name", FLEX)
def test_flex_attention_gives_the_map_of_its_definition(name: str, mode: Any) -> None:
    how, mask, kind = FLEX[name]
    groups = 2 if "enable_gqa" in how else 4
    with mode():
        q, k, v = torch.randn(2, 4, Q, 8) * 2, torch.randn(2, groups, K, 8) * 2, torch.randn(2, groups, K, 8)
        blocks = {} if mask is None else {"block_mask": create_block_mask(mask, 2, 4, Q, K, device="cpu")}
        trace = watched(Flex(**how, **blocks), q, k, v)
    assert_close(trace[0].weights.dense().double(), cell_by_cell(q, k, how, mask), atol=1e-6, rtol=0)
    assert trace[0].weights.kind == kind
    assert trace.verify(), trace.verify()


def test_a_score_function_is_not_verified_by_values_that_are_all_alike() -> None:
    q, k = torch.randn(2, 4, Q, 8) * 3, torch.randn(2, 4, K, 8) * 3
    with torch.no_grad():
        trace = watched(Flex(score_mod=clamped), q, k, torch.ones(2, 4, K, 8))
    right = cell_by_cell(q, k, {"score_mod": clamped}, None)
    is_right = torch.allclose(trace[0].weights.dense().double(), right, atol=1e-6)
    assert is_right or trace.verify()[0].status != "verified"


@MODES
def test_what_a_flex_mask_closes_over_may_change_afterwards(mode: Any) -> None:
    lengths, slopes = torch.tensor([4, 7]), torch.tensor([0.1, 0.2, 0.4, 0.8])
    with mode():
        q, k, v = torch.randn(2, 4, Q, 8), torch.randn(2, 4, K, 8), torch.randn(2, 4, K, 8)
        mask = create_block_mask(lambda b, h, i, j: j < lengths[b], 2, None, Q, K, device="cpu")
        trace = watched(Flex(score_mod=lambda s, b, h, i, j: s - slopes[h] * j, block_mask=mask), q, k, v)
    biases = -slopes.clone().view(1, -1, 1, 1) * torch.arange(K)
    scores = q @ k.mT / math.sqrt(8) + biases
    right = scores.masked_fill(torch.arange(K) >= lengths.view(-1, 1, 1, 1), -math.inf).softmax(-1)
    lengths.fill_(K)
    slopes.zero_()
    try:
        assert_close(trace[0].weights.dense(), right, atol=1e-6, rtol=0)
        assert trace.verify(), trace.verify()
    except Stale:
        pass


def test_flex_attention_that_a_watch_does_not_hear_is_missed_aloud() -> None:
    from torch.nn.attention import flex_attention as library

    class Mixed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x = F.scaled_dot_product_attention(x, x, x)
            return library.flex_attention(x, x, x)

    model, x = Mixed(), torch.randn(2, 3, 7, 8)
    with torch.no_grad():
        trace = watched(model, x)
        counted = regard.audit(model, x)
    assert len(trace.layers) == 2 or not counted, counted


def test_watches_that_overlap_leave_the_name_as_it_was_whoever_ends_first() -> None:
    """Threads do: the second begins while the first has wrapped the name, and ends after it."""
    from torch.nn.attention import flex_attention as library

    original, model = flex_attention, Flex()
    for first_ends_first in (True, False):
        closing = [open_flex([model]), open_flex([model])]
        assert library.flex_attention is not original
        closing.pop(0 if first_ends_first else 1)()
        assert library.flex_attention is not original, "somebody still listens"
        closing.pop()()
        assert library.flex_attention is original
        assert flex_attention is original
    trace = watched(model, *(torch.randn(1, 2, 7, 8) for _ in range(3)))
    assert trace.layers[0].weights.shape == (1, 2, 7, 7)


class Held(nn.Module):
    """Flex as an attribute, as a default of the constructor, or out of another file."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.attend = way, flex_attention

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        first = F.scaled_dot_product_attention(q, k, v)
        if self.way == "attribute":
            return self.attend(first, k, v)
        return flex_helper.attend(first, k, v) if self.way == "another file" else attend_there(first, k, v)


@MODES
@pytest.mark.parametrize("way", ["attribute", "another file", "a function of another file"])
def test_flex_attention_is_heard_under_any_name(way: str, mode: Any) -> None:
    model, (q, k, v) = Held(way), (torch.randn(3, 2, n, 8) * 2 for n in (Q, K, K))
    with mode():
        trace = watched(model, q, k, v)
        right = (F.scaled_dot_product_attention(q, k, v) @ k.mT / math.sqrt(8)).softmax(-1)
    assert len(trace.layers) == 2
    assert_close(trace[1].weights.dense(), right, atol=1e-6, rtol=0)
    assert trace.verify(), trace.verify()
    assert model.attend is flex_attention
    assert not hasattr(flex_helper.flexible, "_regard_hears")


def test_flex_attention_under_a_name_that_nobody_finds_is_missed_by_name() -> None:
    hidden_names = [flex_attention]

    class Hidden(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
            return hidden_names[0](F.scaled_dot_product_attention(q, k, v), k, v)

    with torch.no_grad():
        trace = watched(Hidden(), *(torch.randn(3, 2, n, 8) * 2 for n in (Q, K, K)))
    assert len(trace.layers) == 1
    assert not trace.verify(), trace.verify()
