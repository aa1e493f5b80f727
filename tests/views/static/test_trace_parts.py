"""What every view of a trace needs, against plain loops."""

import math

import numpy as np
import pytest
import torch

import regard
from regard.attention.map import AttentionMap
from regard.errors import TraceError
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace
from regard.trace.record.weights import from_weights
from regard.trace.watch import watch
from regard.views.static import trace_figure, trace_parts
from regard.views.static.grid import as_grid, coarsen
from regard.views.static.trace_parts import (
    choose,
    describe,
    describe_proof,
    glimpse,
    grid_of,
    group_stacks,
    look,
    measure_sharpness,
)
from tests.views.traces import decoder, layer, translator

MASKS = {"open": None, "causal": regard.causal(), "window": regard.window(3, 1)}


def one(q, k, mask=None) -> AttentionMap:
    x, y = torch.randn(1, q, 4), torch.randn(1, k, 4)
    return regard.attend(x, y, y, mask=mask).weights[0]


def test_a_layer_by_number_path_kind_or_itself():
    trace = translator()
    last = trace.layers[-1]
    for which in (5, -1, "decoder.1.cross", ("decoder.1", "cross"), last, np.int64(5)):
        assert choose(trace, which) is last
    with pytest.raises(TraceError, match="'decoder' fits 4 layers"):
        choose(trace, "decoder")
    for wrong in (1.5, True, None):
        with pytest.raises(TraceError, match="named by its number or a part of its path, not by"):
            choose(trace, wrong)


def test_stacks_are_what_differs_in_more_than_numbers():
    found = [[layer.name for layer in stack] for stack in group_stacks(translator())]
    assert found == [
        ["encoder.0.self", "encoder.1.self"],
        ["decoder.0.self", "decoder.1.self"],
        ["decoder.0.cross", "decoder.1.cross"],
    ]
    assert len(group_stacks(decoder())) == 1
    again = [
        layer(name, "self", one(3, 3)) for name in ("shared.attention", "shared.attention#2", "shared.attention#3")
    ]
    assert len(group_stacks(Trace([Run(again)]))) == 1


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize(("rows", "columns"), [(100, 100), (5, 4), (37, 3), (1, 1), (2, 60)])
def test_a_grid_is_the_dense_map_made_coarser(mask, rows, columns, monkeypatch):
    map = one(37, 41, mask)
    dense = map.dense().masked_fill(~map.allowed[...], torch.nan)
    wanted, block = coarsen(as_grid(dense), rows, columns)
    for budget in (1, 100, 1 << 19):
        monkeypatch.setattr("regard.views.static.trace_parts.BUDGET", budget)
        got, size = grid_of(map, rows, columns)
        assert size == block
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_a_map_without_rows_is_refused():
    with pytest.raises(TraceError, match="a map of 0 queries and 3 keys has nothing to look at"):
        grid_of(AttentionMap.stored(torch.zeros(0, 3)), 5, 5)


def test_a_glimpse_shows_evenly_spread_rows():
    map = one(21, 30, regard.causal())
    dense = as_grid(map.dense().masked_fill(~map.allowed[...], torch.nan))
    seen = glimpse(map, 5, 10)
    assert seen.shape == (5, 10)
    for line, row in zip(seen, (0, 5, 10, 15, 20), strict=True):
        np.testing.assert_allclose(line, coarsen(dense[[row]], 1, 10)[0][0], rtol=1e-6)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_sharpness_is_the_mean_entropy_and_the_strongest_look_of_a_row_that_had_a_choice(mask):
    map = one(7, 7, mask)
    found = measure_sharpness(layer("a", "self", batch_of(map)), 0)
    dense, seen = map.dense().double(), map.allowed[...]
    entropy = [sum(-p * math.log(p) for p in row if p > 0) for row in dense.tolist()]
    assert found.entropy == pytest.approx(sum(entropy) / 7, rel=1e-5)
    best = max((dense[i, j].item(), i, j) for i in range(7) for j in range(7) if seen[i].sum() > 1)
    assert found[1:] == (pytest.approx(best[0], rel=1e-6), *best[1:])


def batch_of(map: AttentionMap) -> AttentionMap:
    """The same map as (1, 1, q, k)."""
    return AttentionMap.stored(map.dense()[None, None], mask=getattr(map.source, "mask", None))


def test_sharpness_of_a_long_map_looks_at_some_rows_exactly(monkeypatch):
    monkeypatch.setattr("regard.views.static.trace_parts.ALL_ROWS", 9)
    monkeypatch.setattr("regard.views.static.trace_parts.SOME_ROWS", 4)
    map = one(10, 10)
    found = measure_sharpness(layer("a", "self", batch_of(map)), 0)
    assert found.entropy == pytest.approx(map.entropy()[[0, 3, 6, 9]].mean().item(), rel=1e-5)
    assert found.query in (0, 3, 6, 9)


def test_words_and_parts_are_told():
    trace = from_weights(torch.eye(3), ["un", "##seen", "cat"])
    assert describe(trace.layers, "unverified") == "self-attention; stored weights, float32; unverified"
    merged = look(trace[0], words=True, rows=[0])
    assert merged.head(0).tokens == (("unseen",), ("unseen", "cat"))
    assert "stored weights, word pieces merged, cropped, float32" in describe([merged], "")


def test_the_proof_is_told():
    assert describe_proof(from_weights(torch.eye(3)).layers) == "given, not watched, so unverified"
    model = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False
    ).eval()
    with torch.no_grad(), watch(model) as trace:
        model(torch.randn(1, 5, 8))
    assert describe_proof(trace.layers[:1]) == "verified"
    assert describe_proof(trace.layers) == "2 verified"
    assert describe_proof(decoder(layers=1).layers) == "unverified"


def test_a_figure_of_a_very_long_map_says_that_it_is_sampled_and_how_sure_it_is(monkeypatch):
    monkeypatch.setattr(trace_parts, "QUICK", 100)
    monkeypatch.setattr(trace_parts, "DRAWN", 3)
    monkeypatch.setattr(trace_figure, "FINEST", 4)
    x = torch.randn(1, 2, 37, 5, generator=torch.Generator().manual_seed(0))
    map = regard.attend(x, x, x, mask=regard.causal()).weights
    trace = Trace([Run([Layer("a", "self", map)])])
    said = {
        how: " ".join(axes.get_ylabel() for axes in trace.figure(0, 1, exact=how).axes) for how in (None, True, False)
    }
    assert said[None] == said[False]
    assert "sampled: the largest of 3 of 10 queries × 10 keys" in said[None].replace("\n", " ")
    assert "% sure" in said[None].replace("\n", " ")
    assert "each cell is the largest of 10 × 10" in said[True]
