"""SpanMask and bits against loops over cells, and against themselves inside a map."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from regard.attention.map import AttentionMap, Computed
from regard.attention.mask import Sizes
from regard.attention.mask.bits import Bits, pack
from regard.attention.mask.spans import SpanMask
from regard.errors import MaskError

B, H, Q, K = 2, 3, 5, 11


def some_spans(b=B, h=H, q=Q, k=K):
    start = torch.randint(0, k, (b, h, q))
    return SpanMask(start, start + (torch.rand(b, h, q) * (k + 1 - start)).long())


def test_spans_say_cell_by_cell_what_stands_between_start_and_stop():
    spans = some_spans()
    dense = spans.dense(Q, K, batch=B, heads=H)
    for b, h, i, j in np.ndindex(B, H, Q, K):
        assert dense[b, h, i, j] == (spans.start[b, h, i] <= j < spans.stop[b, h, i])


@pytest.mark.parametrize("lead", [(1, 1, 1), (B, 1, 1), (1, H, 1), (1, 1, Q), (B, 1, Q)])
def test_spans_of_size_one_stand_for_all(lead):
    spans = some_spans(*lead)
    full = SpanMask(spans.start.expand(B, H, Q), spans.stop.expand(B, H, Q))
    assert spans.dense(Q, K, batch=B, heads=H).equal(full.dense(Q, K, batch=B, heads=H))


@given(st.integers(0, Q - 1), st.integers(1, Q), st.integers(0, 99))
def test_the_range_of_spans_is_exactly_what_their_rows_see(first, rows, seed):
    torch.manual_seed(seed)
    spans = some_spans()
    seen = spans.dense(Q, K, batch=B, heads=H)[:, :, first : first + rows].any(0).any(0).any(0).nonzero()
    want = (int(seen.min()), int(seen.max()) + 1) if len(seen) else (0, 0)
    assert spans.span(first, min(Q, first + rows), Sizes((B, H), Q, K)) == want


@given(st.integers(0, Q - 1), st.integers(1, Q), st.integers(0, 99))
def test_what_all_rows_of_spans_see_is_clear(first, rows, seed):
    torch.manual_seed(seed)
    spans = some_spans(b=1, h=1)
    seen = spans.dense(Q, K, batch=1, heads=1)[0, 0, first : first + rows].all(0).nonzero()
    want = (int(seen.min()), int(seen.max()) + 1) if len(seen) else (0, 0)
    assert spans.clear(first, min(Q, first + rows), Sizes((1, 1), Q, K)) == want


def test_rows_that_see_nothing_do_not_widen_the_range_of_spans():
    spans = SpanMask(torch.tensor([[[0, 4, 6]]]), torch.tensor([[[0, 6, 6]]]))
    assert spans.span(0, 3, Sizes((1, 1), 3, 7)) == (4, 6)
    assert spans.span(2, 3, Sizes((1, 1), 3, 7)) == (0, 0)


@given(st.integers(1, 40), st.integers(0, 99))
def test_bits_hold_what_numpy_packs_and_give_it_back(k, seed):
    seen = torch.rand(B, H, Q, k, generator=torch.Generator().manual_seed(seed)) > 0.5
    assert pack(seen).numpy().tolist() == np.packbits(seen.numpy(), axis=-1, bitorder="little").tolist()
    assert Bits(pack(seen)).dense(Q, k, batch=B, heads=H).equal(seen)
    if k > 1:
        assert pack(seen[..., 1:]).equal(pack(seen[..., 1:].clone()))  # memory that does not start at a word


@pytest.mark.parametrize("lead", [(1, 1, 1), (B, 1, 1), (1, H, 1), (B, 1, Q)])
def test_bits_of_size_one_stand_for_all(lead):
    seen = torch.rand(*lead, K) > 0.5
    assert Bits(pack(seen)).dense(Q, K, batch=B, heads=H).equal(seen.expand(B, H, Q, K))


@pytest.mark.parametrize("form", ["spans", "bits"])
def test_a_map_under_a_small_mask_is_the_map_under_its_tensor(form):
    mask = some_spans() if form == "spans" else Bits(pack(torch.rand(B, H, Q, K) > 0.5))
    dense = regard.allowed(mask.dense(Q, K, batch=B, heads=H))
    q, k = torch.randn(B, H, Q, 4), torch.randn(B, H, K, 4)
    ours, theirs = (AttentionMap(Computed(q, k, Sizes((B, H), Q, K), mask=each)) for each in (mask, dense))
    assert ours.dense().equal(theirs.dense())
    assert ours[1, 2, 3].equal(theirs[1, 2, 3])
    assert ours[1, [2, 0], 1:4, [3, 1, 7]].equal(theirs[1, [2, 0], 1:4, [3, 1, 7]])
    assert ours.top(3)[1].equal(theirs.top(3)[1])


def test_small_masks_serve_flex_attention_too():
    mask = some_spans()
    bits = Bits(pack(mask.dense(Q, K, batch=B, heads=H)))
    assert bits.to_flex(Q, K, batch=B, heads=H).to_dense().equal(mask.to_flex(Q, K, batch=B, heads=H).to_dense())


def ends(b, h, q, stop):
    return SpanMask(torch.zeros(b, h, q, dtype=torch.int32), torch.full((b, h, q), stop, dtype=torch.int32))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ends(7, 1, Q, K), r"\(7, 1, 5\), but the map has \(2, 3, 5\)"),
        (lambda: ends(1, 1, 1, K + 2), "ends at key 13, but there are only 11"),
        (lambda: Bits(torch.zeros(1, 4, 1, 2, dtype=torch.uint8)), r"\(1, 4, 1\), but the map has \(2, 3, 5\)"),
        (lambda: Bits(torch.zeros(1, 1, 1, 3, dtype=torch.uint8)), "3 bytes a row, but 11 keys need 2"),
    ],
    ids=["batch", "keys", "heads", "bytes"],
)
def test_small_masks_that_do_not_fit_are_refused_in_words(make, words):
    with pytest.raises(MaskError, match=words):
        make().check(Sizes((B, H), Q, K))
    some_spans().check(Sizes((B, H), Q, K))


def test_small_masks_say_what_they_are():
    spans, bits = some_spans(), Bits(pack(torch.rand(1, 1, Q, K) > 0.5))
    assert repr(spans & bits) == "spans(of shape (2, 3, 5)) & bits(of shape (1, 1, 5, 2))"
    assert "one run of keys" in spans.describe()
    assert "one bit per cell" in bits.describe()
