"""Measures of heads, against loops over the dense map in float64."""

import math

import pytest
import torch

import regard
from regard.attention.map import AttentionMap
from regard.attention.mask import rule
from regard.errors import TraceError
from regard.tokens import Tokens
from regard.trace.measure import tally as walk
from regard.trace.measure.measure import NAMES, measure, measures, similarity
from regard.trace.record.layer import Layer

MASKS = {
    "open": lambda: None,
    "causal": lambda: regard.causal(),
    "window": lambda: regard.window(2, 1),
    "one blind row": lambda: rule(lambda b, h, q, k: (q != 2) & (k + b + h >= 0)),
    "by head": lambda: rule(lambda b, h, q, k: (q - k) % (h + 2) == 0),
}


def made(mask=None, *, b=2, h=3, q=7, k=7, kind="self", vocabulary=4, dtype=torch.float64, groups=3, sink=None):
    """A layer of random q and k, with token ids that repeat and two special tokens."""
    x, y = torch.randn(b, h, q, 5, dtype=dtype), torch.randn(b, groups, k, 5, dtype=dtype)
    weights = regard.attend(x * 3, y, y, mask=mask, sink_logits=sink).weights
    return Layer("blocks.0.attention", kind, weights, **tokens(b, q, k, vocabulary))


def tokens(b, q, k, vocabulary):
    named = []
    for _ in range(b):
        ids = torch.randint(2, 2 + vocabulary, (max(q, k),)).tolist()
        ids[0], ids[-2] = 0, 1
        shown = ["[CLS]" if i == 0 else "[SEP]" if i == 1 else f"t{i}" for i in ids]
        named.append(Tokens(tuple(shown), tuple(ids), special=tuple(i < 2 for i in ids)))
    cut = [tuple(last(one, size) for one in named) for size in (q, k)]
    return {"queries": cut[0], "keys": cut[1]}


def last(one, size):
    return Tokens(one.shown[-size:], one.ids[-size:], special=one.special[-size:])


def loop(w, seen, query_ids, key_ids, special, counted):
    """Every measure of one head's dense map (q, k), cell by cell."""
    q, k = w.shape
    rows = [i for i in range(q) if counted[i] and seen[i].any()]
    keys = [j for j in range(k) if seen[:, j].any()]
    place = {i: i + k - q for i in range(q)}

    def mean(values):
        values = list(values)
        return sum(values) / len(values) if values else math.nan

    def share(wanted, always=False):
        """The mean share on the keys that `wanted(i, j)` picks, over rows that may see one of them."""
        found = []
        for i in rows:
            chosen = [j for j in range(k) if wanted(place[i], j)]
            if always or any(seen[i, j] for j in chosen):
                found.append(sum(float(w[i, j]) for j in chosen))
        return mean(found)

    def id_of(place_of_query):
        return query_ids[place_of_query - (k - q)]

    return {
        "entropy": mean(-sum(float(x) * math.log(x) for x in w[i] if x > 0) for i in rows),
        "distance": mean(sum(float(w[i, j]) * abs(place[i] - j) for j in range(k)) / float(w[i].sum()) for i in rows),
        "sink": share(lambda i, j: j == keys[0], always=True),
        "itself": share(lambda i, j: i == j, always=True),
        "previous": share(lambda i, j: j == i - 1),
        "next": share(lambda i, j: j == i + 1),
        "duplicate": share(lambda i, j: i != j and key_ids[j] == id_of(i)),
        "induction": share(lambda i, j: j >= 1 and key_ids[j - 1] == id_of(i) and j - 1 < i),
        "to [CLS]": share(lambda i, j: special[j] == "[CLS]", always=True),
        "to [SEP]": share(lambda i, j: special[j] == "[SEP]", always=True),
        "rows": len(rows),
        "blind": sum(not seen[i].any() for i in range(q)),
    }


def expected(layer, b, h, counted=None):
    w, seen = layer.weights[b, h].dense().double(), layer.weights.allowed[b, h]
    q, k = w.shape
    padded = [not bool(layer.weights.allowed[b][:, :, j].any()) for j in range(k)]
    counted = [not p for p in padded[k - q :]] if counted is None else counted
    special = [shown if is_special else "" for shown, is_special in zip(layer.keys[b].shown, layer.keys[b].special)]
    return loop(w, seen, layer.queries[b].ids, layer.keys[b].ids, special, counted)


def agree(layer, found, counted=None, tolerance=1e-9):
    compared = 0
    for b in range(layer.batch):
        for h in range(layer.heads):
            wanted = expected(layer, b, h, None if counted is None else counted[b])
            for name, value in wanted.items():
                ours = found.special.get(name) if name.startswith("to ") else getattr(found, name)
                if ours is None:
                    assert math.isnan(value) or value == 0
                    continue
                assert float(ours[b, h]) == pytest.approx(value, abs=tolerance, nan_ok=True), (name, b, h)
                compared += 1
    assert compared >= 10 * layer.batch * layer.heads


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("budget", [1, 11, 60, 1 << 19])
def test_every_measure_equals_a_loop_over_the_dense_map(mask, budget, monkeypatch):
    monkeypatch.setattr(walk, "walk_blocks", lambda source: BLOCKS(source, budget))
    layer = made(MASKS[mask]())
    agree(layer, measure(layer))


BLOCKS = walk.walk_blocks


def test_fewer_rows_than_columns_are_aligned_at_their_ends():
    layer = made(regard.causal(), q=4, k=9)
    agree(layer, measure(layer))


def test_grouped_heads_learned_sinks_and_half_precision_are_measured_alike():
    layer = made(regard.causal(), h=6, groups=2, sink=torch.randn(6, dtype=torch.float64))
    agree(layer, measure(layer))
    layer = made(regard.causal(), dtype=torch.bfloat16)
    agree(layer, measure(layer), tolerance=1e-5)


def test_stored_weights_are_measured_as_they_are():
    asked = made(regard.causal(), q=6, k=6)
    stored = Layer("kept", "self", AttentionMap.stored(asked.weights.dense()), queries=asked.queries, keys=asked.keys)
    ours, theirs = measure(stored), measure(asked)
    for name in (*NAMES, "rows", "blind"):
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name), equal_nan=True)


def test_implied_weights_are_measured_like_stored_ones():
    asked = made(regard.causal())
    whole = asked.weights.dense()
    implied = AttentionMap.implied(
        lambda chosen, rows: whole[chosen][..., rows, :], (2, 3, 7, 7), device=whole.device, dtype=whole.dtype
    )
    ours = measure(Layer("implied", "self", implied, queries=asked.queries, keys=asked.keys))
    for name in (*NAMES, "rows", "blind"):
        torch.testing.assert_close(getattr(ours, name), getattr(measure(asked), name), equal_nan=True)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_padding_counts_for_nothing_whichever_side_it_is_on(side, stored, causal):
    mask = regard.padding([4, 7], side=side)
    layer = made(mask & regard.causal() if causal else mask)
    if stored:
        kept = AttentionMap.stored(layer.weights.dense())
        layer = Layer(layer.name, "self", kept, queries=layer.queries, keys=layer.keys)
    found = measure(layer)
    assert found.rows.tolist() == [[4.0] * 3, [7.0] * 3]
    part = slice(3, 7) if side == "left" else slice(0, 4)
    alone = Layer(
        "alone",
        "self",
        AttentionMap.stored(layer.weights.dense()[:1, :, part, part]),
        queries=tuple(Tokens(one.shown[part], one.ids[part], special=one.special[part]) for one in layer.queries[:1]),
        keys=tuple(Tokens(one.shown[part], one.ids[part], special=one.special[part]) for one in layer.keys[:1]),
    )
    theirs = measure(alone)
    for name in NAMES:
        torch.testing.assert_close(getattr(found, name)[:1], getattr(theirs, name), equal_nan=True)


def test_a_mask_that_hides_everyone_from_himself_hides_no_row():
    layer = made(rule(lambda b, h, q, k: k < q))
    assert measure(layer).rows.tolist() == [[6.0] * 3] * 2  # the first row sees nothing
    assert measure(layer).blind.tolist() == [[1.0] * 3] * 2


def test_the_rows_that_count_can_be_given():
    layer = made(regard.causal())
    rows = torch.tensor([[True, False, True, True, False, True, True], [False] * 6 + [True]])
    agree(layer, measure(layer, rows=rows), counted=rows.tolist())
    with pytest.raises(TraceError, match=r"rows has shape \(7,\), but blocks.0.attention needs \(2, 7\)"):
        measure(layer, rows=rows[0])
    with pytest.raises(TraceError, match="rows has shape"):
        similarity(layer, rows=rows[0])


@pytest.mark.parametrize("kind", ["cross", "unknown"])
def test_cross_attention_has_no_neighbours_and_says_so(kind):
    found = measure(made(q=4, k=7, kind=kind))
    for name in ("distance", "itself", "previous", "next", "duplicate", "induction"):
        assert getattr(found, name).isnan().all()
        assert f"(kind '{kind}')" in found.notes[name]
    assert not found.entropy.isnan().any()
    assert not found.sink.isnan().any()
    assert found.records()[0]["previous"] is None


def test_without_ids_only_what_compares_tokens_is_missing():
    layer = made()
    layer.queries = layer.keys = None
    found = measure(layer)
    assert found.duplicate.isnan().all()
    assert found.notes == dict.fromkeys(("duplicate", "induction"), "the token ids of blocks.0.attention are not known")
    assert not found.previous.isnan().any()


def test_records_are_one_per_entry_and_head():
    layer = made()
    found = measure(layer)
    records = found.records()
    assert [(one["batch"], one["head"]) for one in records] == [(b, h) for b in range(2) for h in range(3)]
    assert records[4]["entropy"] == float(found.entropy[1, 1])
    assert records[4]["to [SEP]"] == float(found.special["to [SEP]"][1, 1])
    assert records[4]["rows"] == 7
    assert [one.name for one in measures([layer, layer])] == ["blocks.0.attention"] * 2


@pytest.mark.parametrize("mask", MASKS)
def test_similarity_is_the_mean_overlap_of_rows(mask, monkeypatch):
    monkeypatch.setattr("regard.trace.measure.measure.BUDGET", 50)
    layer = made(MASKS[mask](), q=6, k=8, h=4, groups=2)
    found = similarity(layer)
    w, seen = layer.weights.dense(), layer.weights.allowed[...]
    for b in range(2):
        padded = [not bool(seen[b, :, :, j].any()) for j in range(8)][2:]
        for one in range(4):
            for two in range(4):
                rows = [i for i in range(6) if seen[b, one, i].any() and seen[b, two, i].any() and not padded[i]]
                overlap = [sum(math.sqrt(w[b, one, i, j] * w[b, two, i, j]) for j in range(8)) for i in rows]
                assert float(found[b, one, two]) == pytest.approx(sum(overlap) / len(rows), abs=1e-9)
    assert torch.allclose(found.diagonal(dim1=1, dim2=2), torch.ones(2, 4, dtype=torch.float64))


def test_rare_words_get_what_is_given_and_what_is_fair():
    layer = made(regard.causal())
    rare = torch.rand(2, 7) < 0.4
    found = walk.tally(layer, rare=rare)
    w, seen = layer.weights.dense(), layer.weights.allowed[...].double()
    given = (w * rare[:, None, None, :]).sum((-1, -2))
    fair = ((seen * rare[:, None, None, :]).sum(-1) / seen.sum(-1)).sum(-1)
    torch.testing.assert_close(found.sums["rare"], given)
    torch.testing.assert_close(found.sums["fair"], fair)


@pytest.mark.parametrize("mask", ["open", "causal", "by head"])
@pytest.mark.parametrize("band", [2, 128])
def test_the_share_explained_by_offsets_equals_loops(mask, band, monkeypatch):
    monkeypatch.setattr(walk, "BAND", band)
    monkeypatch.setattr(walk, "walk_blocks", lambda source: BLOCKS(source, 30))
    layer = made(MASKS[mask]())
    found = walk.positional(walk.tally(layer, offsets=True).sums)
    w, seen = layer.weights.dense(), layer.weights.allowed[...]
    for b in range(2):
        for h in range(3):
            by_offset, spread = {}, 0.0
            for i in range(7):
                keys = int(seen[b, h, i].sum())
                for j in range(7):
                    if seen[b, h, i, j]:
                        away = float(w[b, h, i, j]) - 1 / keys
                        by_offset.setdefault(i - j if abs(i - j) <= band else "far", []).append(away)
                        spread += away**2
            explained = sum(sum(some) ** 2 / len(some) for some in by_offset.values())
            assert float(found[b, h]) == pytest.approx(explained / spread, abs=1e-9)


def test_offsets_explain_a_head_that_looks_two_back_and_not_one_that_looks_at_content():
    n = 60
    back = torch.zeros(1, 1, n, n)
    back[0, 0, torch.arange(n), (torch.arange(n) - 2).clamp_min(0)] = 1.0
    content = torch.zeros(1, 1, n, n)
    content[0, 0, torch.arange(n), (torch.arange(n) * torch.rand(n)).long()] = 1.0
    even = torch.full((1, 1, n, n), 1 / n)
    first = torch.zeros(1, 1, n, n)
    first[..., 0] = 1.0
    shares = [
        float(walk.positional(walk.tally(Layer("x", "self", AttentionMap.stored(w)), offsets=True).sums))
        for w in (back, content, even, first)
    ]
    assert shares[0] > 0.9
    assert shares[1] < 0.3
    assert shares[2] == 0
    assert shares[3] < 0.4


def test_long_maps_are_measured_without_holding_one():
    n = 3000
    x = torch.randn(1, 2, n, 8)
    ids = tuple((torch.arange(n) % 50).tolist())
    named = (Tokens(tuple(map(str, ids)), ids),)
    layer = Layer("long", "self", regard.attend(x, x, x, mask=regard.causal()).weights, queries=named, keys=named)
    found = measure(layer)
    w = layer.weights[0, 1].dense().double()
    i = torch.arange(n)
    same = (i[:, None] - i) % 50 == 0
    assert float(found.previous[0, 1]) == pytest.approx(float(w.diagonal(-1).mean()), abs=1e-6)
    apart = (w * (same & (i[:, None] != i))).sum(-1)[50:].mean()
    assert float(found.duplicate[0, 1]) == pytest.approx(float(apart), abs=1e-6)
    assert float(found.entropy[0, 1]) == pytest.approx(float(torch.special.entr(w).sum(-1).mean()), abs=1e-5)
