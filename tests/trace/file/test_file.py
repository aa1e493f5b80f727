"""A trace before it was saved and after it was loaded: the same numbers, the same words."""

import os
import subprocess
import sys
from typing import get_args

import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file
from torch.testing import assert_close

import regard
from regard.attention.map import AttentionMap, Computed, DropoutRecord
from regard.attention.map.source import MapPiece
from regard.attention.map.stitched import StitchedSource
from regard.attention.mask import Sizes, rule
from regard.attention.mask.bits import Bits
from regard.attention.mask.spans import SpanMask
from regard.attention.score import Additive, Gaussian
from regard.attention.weigh.sparsemax import sparsemax
from regard.errors import Stale, TraceError
from regard.positions.alibi import ALiBi
from regard.positions.buckets import Buckets
from regard.tokens import Tokens
from regard.trace.file import load, save
from regard.trace.file.container import open_container
from regard.trace.file.manifest import State
from regard.trace.record.diagonals import Diagonals
from regard.trace.record.even import WholeRows, even_softmax
from regard.trace.record.findings import LayerState
from regard.trace.record.layer import Layer, ProofSample
from regard.trace.record.trace import Run, Trace

B, H, G, Q, K, D, E = 2, 6, 3, 7, 11, 5, 4
SIZES = Sizes((B, H), Q, K)


def asked(*, dtype=torch.float32, groups=H, sizes=SIZES, **more):
    q, k = torch.randn(B, H, sizes.q, D).to(dtype), torch.randn(B, groups, sizes.k, D).to(dtype)
    return Computed(q, k, sizes, **({"scale": D**-0.5} | more))


def layer_of(source, name="blocks.0.attention", **more):
    return Layer(name, "self", AttentionMap(source), **more)


def trip(tmp_path, *layers, **more):
    """The layers after they were saved and loaded."""
    save(Trace([Run(list(layers))]), tmp_path / "a.trace", **more)
    return load(tmp_path / "a.trace").layers


class Slanted:
    """A bias that no library knows, with or without a law."""

    def __init__(self, free):
        self.heads, self.free = H, free

    def block(self, queries, keys, of=None):
        of = torch.arange(H) if of is None else of
        by_key = (keys % 3).float() if self.free else torch.zeros(len(keys))
        return (keys - queries[:, None]).float()[None] * (of[:, None, None] + 1.0) + by_key


def blind_rows():
    seen = torch.rand(1, 1, Q, K) > 0.5
    seen[..., 2, :] = False
    return regard.allowed(seen)


ASKED = {
    "open": {},
    "causal": {"mask": regard.causal()},
    "padded": {"mask": regard.causal() & regard.padding([4, 9])},
    "with holes": {"mask": regard.window(3, 3, dilation=2)},
    "by tensor": {"mask": regard.allowed(torch.rand(B, H, Q, K) > 0.4)},
    "blind rows": {"mask": blind_rows(), "weigh": even_softmax},
    "bias": {"bias": torch.randn(B, H, Q, K)},
    "small bias": {"bias": torch.randn(1, H, 1, K)},
    "expanded bias": {"bias": torch.randn(1, 1, Q, K).expand(B, H, Q, K)},
    "diagonals": {"bias": Diagonals(torch.randn(H, Q + K - 1), keys=K)},
    "one diagonal for all heads": {"bias": Diagonals(torch.randn(1, Q + K - 1), keys=K, heads=H)},
    "more diagonals than needed": {"bias": Diagonals(torch.randn(H, Q + K + 5), keys=K + 2)},
    "ALiBi": {"bias": ALiBi(H), "mask": regard.causal()},
    "buckets": {"bias": Buckets(H)},
    "another bias by distance": {"bias": Slanted(free=False)},
    "a bias without a law": {"bias": Slanted(free=True)},
    "sink": {"sink": torch.randn(1, H, 1, 1), "mask": regard.causal()},
    "softcap": {"softcap": 2.5, "scale": 0.1},
    "grouped": {"groups": G},
    "one key head": {"groups": 1},
    "half": {"dtype": torch.float16},
    "brain": {"dtype": torch.bfloat16, "groups": G, "bias": torch.randn(1, H, Q, K).bfloat16()},
    "double": {"dtype": torch.float64},
    "everything": {
        "dtype": torch.bfloat16,
        "groups": G,
        "mask": regard.causal() & regard.padding([4, 9], side="left"),
        "bias": Diagonals(torch.randn(H, Q + K - 1), keys=K),
        "sink": torch.randn(1, H, 1, 1),
        "softcap": 30.0,
    },
}


@pytest.mark.parametrize("more", ASKED.values(), ids=ASKED)
def test_a_computed_map_comes_back_bit_for_bit(tmp_path, more):
    source = asked(**more)
    (layer,) = trip(tmp_path, layer_of(source, q=source.q, k=source.k))
    back = layer.weights.source
    assert layer.weights.kind == "computed"
    assert layer.weights.dense().equal(AttentionMap(source).dense())
    assert layer.q.equal(source.q)
    assert layer.k.dtype == source.k.dtype
    assert layer.q.data_ptr() == back.q.data_ptr()
    assert_close(layer.head(H - 1, batch=1)[3], AttentionMap(source)[1, H - 1, 3])


def test_an_even_row_counts_all_keys_also_those_that_no_row_sees(tmp_path):
    mask = WholeRows(regard.padding([0, 9]))
    (layer,) = trip(tmp_path, layer_of(asked(mask=mask, weigh=even_softmax)))
    back = layer.weights.source
    assert isinstance(back.mask.inner, SpanMask)
    assert_close(layer.head(2, batch=0)[1:3], torch.full((2, K), 1 / K))
    assert_close(layer.head(2, batch=1).dense()[:, 9:], torch.zeros(Q, 2))


def test_masks_and_biases_are_kept_small(tmp_path):
    forms = {"causal": SpanMask, "padded": SpanMask, "with holes": Bits}
    for name, form in forms.items():
        (layer,) = trip(tmp_path, layer_of(asked(**ASKED[name])))
        assert isinstance(layer.weights.source.mask, form)
    for name in ("diagonals", "one diagonal for all heads", "ALiBi", "buckets", "another bias by distance"):
        (layer,) = trip(tmp_path, layer_of(asked(**ASKED[name])))
        assert isinstance(layer.weights.source.bias, Diagonals)
    (layer,) = trip(tmp_path, layer_of(asked(**ASKED["expanded bias"])))
    assert layer.weights.source.bias.shape == (1, 1, Q, K)


def test_stored_weights_come_back_with_their_mask(tmp_path):
    for dtype in (torch.float32, torch.float16):
        weights = torch.rand(B, H, Q, K).softmax(-1).to(dtype)
        (layer,) = trip(tmp_path, Layer("a", "cross", AttentionMap.stored(weights, mask=regard.padding([4, 9]))))
        assert (layer.kind, layer.weights.kind) == ("cross", "stored")
        assert layer.weights.source.kept.equal(weights)
        assert layer.weights.allowed[...].equal(regard.padding([4, 9]).dense(Q, K, batch=B, heads=H))


OTHERS = {
    "additive": lambda: (
        regard.attend(
            torch.randn(B, H, Q, D), *[torch.randn(B, H, K, D)] * 2, score=Additive(query=D, key=D, hidden=3)
        ).weights.source
    ),
    "gaussian": lambda: asked(score=Gaussian()),
    "sparsemax": lambda: asked(weigh=sparsemax),
    "picked heads": lambda: asked(mask=rule(lambda b, h, q, k: k <= q + h)).pick((slice(None), torch.tensor([4, 1]))),
    "implied": lambda: (
        AttentionMap.implied(
            lambda chosen, rows: EVEN[chosen][..., rows, :], (B, H, Q, K), device=torch.device("cpu")
        ).source
    ),
}
EVEN = torch.rand(B, H, Q, K).softmax(-1)


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_what_softmax_over_a_product_does_not_give_is_kept_as_weights(tmp_path, make):
    source = make()
    (layer,) = trip(tmp_path, layer_of(source))
    assert layer.weights.kind == "stored"
    assert_close(layer.weights.dense(), AttentionMap(source).dense().detach())
    assert "is kept in the file as weights" in layer.notes[-1]
    with pytest.raises(TraceError, match=r"the map of blocks.0.attention can only be kept as weights, .* is 99 bytes"):
        save(Trace([Run([layer_of(source)])]), tmp_path / "b.trace", budget=99)
    assert sorted(os.listdir(tmp_path)) == ["a.trace"]


def test_a_stitched_map_comes_back_from_its_parts(tmp_path):
    first = asked(mask=regard.causal(), sizes=Sizes((B, H), 5, 5))
    second = asked(groups=G, sizes=Sizes((B, H), 2, 9))
    source = StitchedSource([MapPiece(first, 0), MapPiece(second, 2)])
    (layer,) = trip(tmp_path, layer_of(source))
    back = layer.weights.source
    assert layer.weights.kind == "computed"
    assert [(part.source.sizes, part.column) for part in back.pieces()] == [(first.sizes, 0), (second.sizes, 2)]
    assert layer.weights.dense().equal(AttentionMap(source).dense())
    assert_close(layer.head(4, batch=1)[5], AttentionMap(source)[1, 4, 5])


def tokens_in_many_scripts():
    words = ("naïve", "中文", "नमस्ते", "👩‍👩‍👧", "\u202eعربي", "\x00\n⏎", 'q"uo\\te', "<b>&amp;", "\u2028", "", "🏳️")
    offsets = (None, *((i, i + 1) for i in range(10)))
    words_of = (None, *range(9), 8)
    return Tokens(words, tuple(range(-1, 10)), offsets, (True,) + (False,) * 10, words_of, "x" * 12, (1, 11))


def test_tokens_in_any_script_come_back_and_are_kept_once(tmp_path):
    tokens, plain = tokens_in_many_scripts(), Tokens(tuple("abcdefg"))
    source = asked()
    layers = [
        layer_of(source, f"blocks.{i}.attention", queries=(plain, plain), keys=(tokens, tokens)) for i in range(3)
    ]
    for layer in trip(tmp_path, *layers):
        assert layer.queries == (plain, plain)
        assert layer.keys == (tokens, tokens)
        assert layer.head(0).tokens == (plain.shown, tokens.shown)
    text = open_container(tmp_path / "a.trace").metadata["regard"]
    assert text.count("naïve") == 1


def test_half_of_a_surrogate_pair_becomes_one_mark(tmp_path):
    tokens = Tokens(("a\ud800b",) * Q, text="\udc00" * 9)
    (layer,) = trip(tmp_path, layer_of(asked(), queries=(tokens,) * B))
    assert layer.queries[0].shown[0] == "a\N{REPLACEMENT CHARACTER}b"
    assert len(layer.queries[0].text) == 9


def test_all_that_a_layer_knows_comes_back(tmp_path):
    source = asked(groups=G)
    seen = ProofSample(
        (0, 3, 6),
        torch.randn(B, H, 3, E),
        torch.rand(B, 1, 3, K) > 0.5,
        torch.rand(B, H, 3, K),
        causal=True,
        scale=0.37,
        dropout=0.1,
        keys=K,
    )
    layer = Layer(
        "décodeur.1",
        "cross",
        AttentionMap(source, dropped=DropoutRecord(0.25, 2**63 + 5)),
        q=source.q,
        k=source.k,
        v=torch.randn(B, G, K, E),
        door="kernel",
        seen=seen,
        gradient=torch.randn(B, H, Q, E),
        notes=["one", "two"],
    )
    runs = [Run([layer], ["first"]), Run([], ["nothing"]), Run([layer, layer_of(asked(), "other")])]
    save(Trace(runs, notes=["all"], model="Model", fingerprint="0a1b"), tmp_path / "a.trace")
    trace = load(tmp_path / "a.trace")
    assert (trace.notes, trace.model, trace.fingerprint) == (["all"], "Model", "0a1b")
    assert [[one.name for one in run.layers] for run in trace.runs] == [["décodeur.1"], [], ["décodeur.1", "other"]]
    assert [run.notes for run in trace.runs] == [["first"], ["nothing"], []]
    found = trace.runs[0].layers[0]
    assert (found.name, found.kind, found.door, found.notes) == ("décodeur.1", "cross", "kernel", ["one", "two"])
    assert found.v.equal(layer.v)
    assert found.gradient.equal(layer.gradient)
    assert found.weights.dropped == DropoutRecord(0.25, 2**63 + 5)
    for name in ("rows", "causal", "scale", "dropout", "keys"):
        assert getattr(found.seen, name) == getattr(seen, name)
    for name in ("mix", "allowed", "weights"):
        assert getattr(found.seen, name).equal(getattr(seen, name))
    assert trace.runs[2].layers[0].v.data_ptr() == found.v.data_ptr()


def test_states_doubts_edits_and_refusals_come_back(tmp_path):
    layer = layer_of(asked(), "blocks.0", notes=["a remark"], doubts=["its keys repeat"], edits=["mute(heads 0)"])
    layer.mark(LayerState.PADDING_ROWS_EMPTY)
    layer.mark(LayerState.PADDING_ROWS_EMPTY)
    run = Run([layer], refused={"blocks.1": "it has 3 softmaxes"}, changes=["block(key 1)", "mute(heads 0)"])
    save(Trace([run]), tmp_path / "a.trace")
    back = load(tmp_path / "a.trace").runs[0]
    (found,) = back.layers
    assert found.states == [LayerState.PADDING_ROWS_EMPTY]
    assert found.sentences() == layer.sentences()
    assert (found.doubts, found.edits) == (["its keys repeat"], ["mute(heads 0)"])
    assert back.edits == ["block(key 1)", "mute(heads 0)"]
    assert back.sentences() == ["blocks.1 was refused: it has 3 softmaxes"]
    assert set(get_args(State)) == set(LayerState)


def test_what_layers_share_is_written_once(tmp_path):
    bias, mask, value = torch.randn(1, H, Q, K), regard.causal(), torch.randn(B, H, K, E)
    layers = [layer_of(asked(bias=bias, mask=mask), f"blocks.{i}", v=value) for i in range(4)]
    found = trip(tmp_path, *layers)
    assert len({layer.weights.source.bias.data_ptr() for layer in found}) == 1
    assert len({layer.weights.source.mask for layer in found}) == 1
    names = list(open_container(tmp_path / "a.trace").infos)
    assert sum("bias" in name for name in names) == 1
    assert sum(name.endswith("/v") for name in names) == 1


def test_an_expanded_batch_is_written_once_and_comes_back_whole(tmp_path):
    latent = torch.randn(1, H, Q, D).expand(B, H, Q, D)
    source = Computed(latent, torch.randn(B, H, K, D), SIZES)
    (layer,) = trip(tmp_path, layer_of(source, q=latent))
    assert layer.q.shape == (B, H, Q, D)
    assert layer.weights.shape == (B, H, Q, K)
    assert open_container(tmp_path / "a.trace").infos["0/blocks.0.attention/q"].shape == (1, H, Q, D)
    assert_close(layer.weights.dense(), AttentionMap(source).dense())


def test_the_safetensors_library_opens_the_file(tmp_path):
    source = asked(groups=G, mask=regard.causal(), bias=torch.randn(1, H, Q, K))
    odd = ProofSample((1,), torch.randn(B, H, 1, E).half(), torch.rand(B, 1, 1, K) > 0.5)
    trip(tmp_path, layer_of(source, seen=odd), layer_of(asked(), "blocks.1"))
    arrays = load_file(tmp_path / "a.trace")
    assert torch.from_numpy(arrays["0/blocks.0.attention/k"]).equal(source.k)
    with safe_open(tmp_path / "a.trace", "pt") as file:
        assert file.get_tensor("0/blocks.0.attention/q").equal(source.q)
        assert '"version":2' in file.metadata()["regard"]


def test_an_empty_trace_and_empty_maps_are_traces_too(tmp_path):
    save(Trace(), tmp_path / "none.trace")
    assert load(tmp_path / "none.trace").runs == []
    empty = Sizes((B, H), 0, K)
    (layer,) = trip(tmp_path, layer_of(asked(sizes=empty, mask=regard.causal())))
    assert layer.weights.dense().shape == (B, H, 0, K)


def test_only_the_layers_that_were_asked_for_are_written(tmp_path):
    layers = [layer_of(asked(), name) for name in ("blocks.1.attention", "blocks.11.attention", "head")]
    assert [one.name for one in trip(tmp_path, *layers, layers="blocks.1")] == ["blocks.1.attention"]
    assert [one.name for one in trip(tmp_path, *layers, layers=["blocks.11", "head"])] == [
        "blocks.11.attention",
        "head",
    ]
    with pytest.raises(TraceError, match=r"no layer has 'blocks.2' in its path; there are: blocks.1.attention"):
        trip(tmp_path, *layers, layers="blocks.2")


def test_a_map_whose_numbers_changed_is_not_written(tmp_path):
    source = asked()
    source.q.add_(1)
    with pytest.raises(Stale):
        save(Trace([Run([layer_of(source)])]), tmp_path / "a.trace")
    assert os.listdir(tmp_path) == []


def test_a_trace_that_could_not_be_read_again_is_not_written(tmp_path):
    save(Trace([Run([layer_of(asked())])]), tmp_path / "a.trace")
    before = (tmp_path / "a.trace").read_bytes()
    wrong = layer_of(asked(), queries=(Tokens(("too", "few")),) * B)
    with pytest.raises(TraceError, match=r"a\.trace is damaged at run 0, blocks\.0\.attention: tokens are named"):
        save(Trace([Run([wrong])]), tmp_path / "a.trace")
    assert (tmp_path / "a.trace").read_bytes() == before
    assert os.listdir(tmp_path) == ["a.trace"]


def test_writing_to_a_loaded_tensor_changes_neither_the_file_nor_the_map(tmp_path):
    source = asked()
    (layer,) = trip(tmp_path, layer_of(source, q=source.q))
    before = (tmp_path / "a.trace").read_bytes()
    mine = layer.q
    mine.zero_()
    layer.weights.source.k.add_(1)
    assert layer.weights.dense().equal(AttentionMap(source).dense())
    assert layer.q.equal(source.q)
    assert (tmp_path / "a.trace").read_bytes() == before


def test_a_loaded_trace_is_saved_over_itself(tmp_path):
    source = asked(mask=regard.causal())
    (layer,) = trip(tmp_path, layer_of(source))
    (again,) = trip(tmp_path, layer)
    assert again.weights.dense().equal(AttentionMap(source).dense())
    assert layer.weights.dense().equal(AttentionMap(source).dense())  # the old file lives as long as it is held


def test_the_same_trace_gives_the_same_bytes(tmp_path):
    layer = layer_of(asked(mask=regard.causal()), keys=(tokens_in_many_scripts(),) * B)
    for name in ("a", "b"):
        save(Trace([Run([layer])]), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


LONG = """
import resource, sys, time
from pathlib import Path
import torch
from regard.trace.file import load
import regard.trace.file.read
torch.zeros(1).sum(); load(sys.argv[2])
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
trace = load(sys.argv[1])
took = time.perf_counter() - start
row = trace.layers[-1].weights[0, 1, 4000]
print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, float(row.sum()))
"""


def test_a_large_file_opens_at_once_and_takes_no_memory(tmp_path):
    n = 5000
    q = torch.randn(1, 2, n, 128)
    layers = [
        Layer(
            f"blocks.{i}",
            "self",
            AttentionMap(Computed(q * i, q, Sizes((1, 2), n, n), mask=regard.causal(), scale=0.01)),
        )
        for i in range(8)
    ]
    save(Trace([Run(layers)]), tmp_path / "large.trace")
    save(Trace(), tmp_path / "small.trace")
    assert (tmp_path / "large.trace").stat().st_size > 40_000_000
    done = subprocess.run(
        [sys.executable, "-c", LONG, tmp_path / "large.trace", tmp_path / "small.trace"], capture_output=True, text=True
    )
    took, kilobytes, total = map(float, done.stdout.split())
    print(f"opened in {took * 1000:.1f} ms")
    assert took < 0.5
    assert kilobytes < 30_000  # one row was asked too, which reads k of one head
    assert abs(total - 1) < 1e-5
