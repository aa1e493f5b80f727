"""Damaged and hostile files: one sentence each, no other error, and no memory that the file does not have."""

import json
import os
import resource
from hashlib import sha256

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.attention.map import AttentionMap, Computed
from regard.attention.map.source import MapPiece
from regard.attention.map.stitched import StitchedSource
from regard.attention.mask import Sizes
from regard.errors import RegardError, TraceError
from regard.tokens import Tokens
from regard.trace.file import load, save
from regard.trace.file.digests import OPEN, SEAL, ChunkDigests, seal_header
from regard.trace.record.diagonals import Diagonals
from regard.trace.record.layer import Layer, ProofSample
from regard.trace.record.trace import Run, Trace

B, H, G, Q, K, D, E = 2, 4, 2, 3, 5, 6, 7


def sound():
    """A trace with one of everything."""
    torch.manual_seed(0)
    draw = torch.randn
    sizes = Sizes((B, H), Q, K)
    q, k, v = draw(B, H, Q, D), draw(B, G, K, D), draw(B, G, K, E)
    queries, keys = Tokens(("a", "b", "c"), text="abc", offsets=((0, 1), None, (2, 3))), Tokens(("中",) * K, (7,) * K)
    seen = ProofSample((0, 2), draw(B, H, 2, E), torch.rand(B, 1, 2, K) > 0.5, None, False, 0.5, 0.0, K)
    full = Computed(q, k, sizes, scale=0.4, mask=regard.causal(), bias=Diagonals(draw(H, Q + K - 1), keys=K))
    holes = Computed(q, k, sizes, mask=regard.window(2, 2, dilation=2), sink=draw(1, H, 1, 1), softcap=3.0)
    parts = StitchedSource([MapPiece(full, 0), MapPiece(Computed(q[:, :, :1], k, Sizes((B, H), 1, K)), 1)])
    layers = [
        Layer(
            "a.0", "self", AttentionMap(full), q, k, v, "kernel", (queries,) * B, (keys,) * B, seen, draw(B, H, Q, E)
        ),
        Layer("a.1", "self", AttentionMap(holes), q, k),
        Layer("a.2", "cross", AttentionMap.stored(torch.rand(B, H, Q, K).half(), mask=regard.padding([1, 4]))),
        Layer("a.3", "self", AttentionMap(parts), notes=["stitched"]),
    ]
    return Trace([Run(layers, ["a note"])], model="Model", fingerprint="00ff", notes=["another"])


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "good.trace"
    save(sound(), path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    return tmp_path_factory.mktemp("bad") / "bad.trace"


def header_of(data):
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def file_of(header, data):
    """A file of this header and these arrays, digests and seal right, as who means harm would make it."""
    if isinstance(header, dict) and "digests" in header.get("__metadata__", {}):
        where, count = header["digests"]["data_offsets"][0], header["digests"]["shape"][0]
        found = ChunkDigests()
        found.update(data[:where])
        data = data[:where] + found.all()[: 32 * count]
        words = header["__metadata__"] | {"digests": sha256(found.all()).hexdigest()}
        header = {"__metadata__": {"seal": OPEN} | {name: words[name] for name in words if name != "seal"}} | {
            name: entry for name, entry in header.items() if name != "__metadata__"
        }
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    text = text.ljust(-(-(len(text) + 8) // 64) * 64 - 8)
    return (seal_header(text) if text.startswith(SEAL) else len(text).to_bytes(8, "little") + text) + data


def look_at_all(trace):
    """Ask everything of it once."""
    for run in trace.runs:
        for layer in run.layers:
            repr(layer), layer.weights.dense(), layer.weights.top(2), layer.weights.entropy(), layer.head(0)[0]


def try_to_load(path):
    """Whether the file was taken for a trace. Every error that is not ours comes through."""
    try:
        trace = load(path)
    except TraceError as error:
        said = str(error)
    else:
        look_at_all(trace)
        return True
    assert str(path) in said
    assert "\n" not in said
    assert len(said) < 700
    return False


def test_the_sound_file_is_sound(good, bad):
    bad.write_bytes(good)
    assert try_to_load(bad)
    header, data = header_of(good)
    bad.write_bytes(file_of(header, data))
    assert try_to_load(bad)


@settings(max_examples=200)
@given(st.data())
def test_flipped_bytes_give_an_error_of_ours_or_other_numbers(good, bad, data):
    damaged = bytearray(good)
    words = 8 + len(good[8:].split(b"}  ")[0])
    for _ in range(data.draw(st.integers(1, 3))):
        last = words if data.draw(st.booleans()) else len(good) - 1
        at = data.draw(st.integers(0, last))
        damaged[at] = data.draw(st.integers(0, 255) | st.sampled_from(list(b'0123456789-.,[]{}":eEnN')))
    bad.write_bytes(damaged)
    try_to_load(bad)


@settings(max_examples=100)
@given(st.data())
def test_a_file_cut_anywhere_is_refused(good, bad, data):
    bad.write_bytes(good[: data.draw(st.integers(0, len(good) - 1))])
    assert not try_to_load(bad)


@settings(max_examples=100)
@given(st.binary(max_size=300), st.booleans())
def test_any_other_bytes_are_refused(bad, content, with_length):
    bad.write_bytes(len(content).to_bytes(8, "little") + content if with_length else content)
    assert not try_to_load(bad)


@settings(max_examples=100)
@given(st.data())
def test_any_word_of_the_manifest_may_be_replaced_by_any_other(good, bad, data):
    header, content = header_of(good)
    manifest = json.loads(header["__metadata__"]["regard"])
    place = manifest
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.integers(0, 9)) == 0:
            break
        place = place[key]
    names = st.sampled_from([name for name in header if name != "__metadata__"])
    numbers = st.integers(-3, 12) | st.sampled_from([2**31, 2**53, 2**64, 10**30]) | st.floats()
    place[key] = data.draw(
        st.none() | st.booleans() | numbers | names | st.text(max_size=5) | st.just([]) | st.just({})
    )
    header["__metadata__"]["regard"] = json.dumps(manifest)
    bad.write_bytes(file_of(header, content))
    try_to_load(bad)


def entry(shape, start, stop, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


DEEP = b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
HEADERS = {
    "a huge shape": ({"x": entry([2**40, 2**40], 0, 8)}, b"x" * 8, "a shape that a file of"),
    "a shape that would overflow": ({"x": entry([2**32, 2**32], 0, 0)}, b"", "a shape that a file of"),
    "huge and empty": ({"x": entry([2**62, 0], 0, 0)}, b"", "a shape that a file of"),
    "too many axes": ({"x": entry([1] * 9, 0, 4)}, b"x" * 4, "a shape that a file of"),
    "a negative shape": ({"x": entry([-1, -2], 0, 8)}, b"x" * 8, "a shape that a file of"),
    "a shape of truths": ({"x": entry([True], 0, 4)}, b"x" * 4, "a shape that a file of"),
    "a shape of fractions": ({"x": entry([1.0], 0, 4)}, b"x" * 4, "a shape that a file of"),
    "a shape of text": ({"x": entry("11", 0, 4)}, b"x" * 4, "a shape that a file of"),
    "negative offsets": ({"x": entry([1], -4, 0)}, b"x" * 4, "does not say where"),
    "offsets that run backwards": ({"x": entry([1], 4, 0)}, b"x" * 4, "does not say where"),
    "one offset": ({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}, b"x" * 4, "does not say where"),
    "offsets beyond the file": ({"x": entry([25], 0, 100)}, b"x" * 4, "is cut off"),
    "bytes that do not fit the shape": (
        {"x": entry([3], 0, 8)},
        b"x" * 8,
        "8 bytes for the array 'x', but its shape needs 12",
    ),
    "arrays that overlap": ({"x": entry([2], 0, 8), "y": entry([2], 4, 12)}, b"x" * 12, "overlaps with another"),
    "one array twice": ({"x": entry([2], 0, 8), "y": entry([2], 0, 8)}, b"x" * 8, "overlaps with another"),
    "a gap": ({"x": entry([1], 0, 4), "y": entry([1], 8, 12)}, b"x" * 12, "leaves a gap"),
    "bytes at the end": ({"x": entry([1], 0, 4)}, b"x" * 9, "5 bytes at its end"),
    "numbers between two places": (
        {"x": entry([2], 0, 2, "U8"), "y": entry([1], 2, 6)},
        b"x" * 6,
        "between two numbers",
    ),
    "an unknown kind of number": ({"x": entry([1], 0, 1, "F8_E4M3")}, b"x", "'F8_E4M3'; known are"),
    "a kind that is no text": ({"x": entry([1], 0, 1, ["F32"])}, b"x", "known are"),
    "an array without words": ({"x": {}}, b"", "by other words than"),
    "an array that is a list": ({"x": [1]}, b"", "by other words than"),
    "metadata of numbers": ({"__metadata__": {"regard": 1}}, b"", "metadata that are not text"),
    "metadata that are a list": ({"__metadata__": []}, b"", "metadata that are not text"),
    "no manifest": ({"x": entry([1], 0, 4)}, b"x" * 4, "no trace: it has no manifest"),
    "a header that is a list": (b"[]", b"", "does not begin like safetensors"),
    "a header that is cut": (b'{"x": ', b"", "a header that cannot be read"),
    "a name twice": (b'{"x": {}, "x": {}}', b"", "stands there twice"),
    "no text": (b'{"\xff": 1}', b"", "a header that cannot be read"),
    "no number": (b'{"x": NaN}', b"", "NaN is no number"),
    "a number of many digits": (b'{"x": ' + b"9" * 9999 + b"}", b"", "a header that cannot be read"),
    "deep nesting": (DEEP, b"", "describes more than|nested too deeply"),
    "less deep nesting": (b'{"a":' + b"[" * 90_000 + b"]" * 90_000 + b"}", b"", "nested too deeply"),
    "many small objects": (b'{"a":[' + b"[]," * 2_000_000 + b"1]}", b"", "describes more than"),
}


@pytest.mark.parametrize(("header", "content", "words"), HEADERS.values(), ids=HEADERS)
def test_hostile_headers_are_refused_in_words(bad, header, content, words):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bad.write_bytes(file_of(header, content))
    with pytest.raises(TraceError, match=words) as error:
        load(bad)
    assert str(bad) in str(error.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


FILES = {
    "empty": (b"", "holds 0 bytes"),
    "too short": (b"1234567", "holds 7 bytes"),
    "never finished": (bytes(100), "was never finished"),
    "a header beyond the file": ((999).to_bytes(8, "little") + b"{}", "is cut off: its header alone has 999 bytes"),
    "a header beyond all files": (b"\xff" * 8 + b"{}", "no trace file"),
    "a header beyond the limit": ((100_000_001).to_bytes(8, "little") + b"{}", "no trace file"),
    "a zip": (b"PK\x03\x04" + bytes(200), "no trace file"),
    "a pickle": (b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07builtins" + bytes(50), "no trace file"),
    "text": (b"hello, this is a text", "no trace file"),
}


@pytest.mark.parametrize(("content", "words"), FILES.values(), ids=FILES)
def test_what_is_no_trace_file_is_refused_in_words(bad, content, words):
    bad.write_bytes(content)
    with pytest.raises(TraceError, match=words):
        load(bad)


def test_what_is_no_file_is_refused_in_words(tmp_path):
    with pytest.raises(TraceError, match="cannot be opened: No such file or directory"):
        load(tmp_path / "missing.trace")
    with pytest.raises(TraceError, match="is no file but something else"):
        load(tmp_path)
    with pytest.raises(TraceError, match="cannot be opened"):
        load("a\0b")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TraceError, match="is no file but something else"):
        load(tmp_path / "pipe")


def changed(good, change):
    """The sound file after something was done to its manifest and its arrays."""
    header, content = header_of(good)
    manifest = json.loads(header["__metadata__"]["regard"])
    content = bytearray(content)
    change(manifest, header, content)
    header["__metadata__"]["regard"] = manifest if isinstance(manifest, str) else json.dumps(manifest)
    return file_of(header, bytes(content))


def put(*path):
    """A change that puts the last of `path` where the others lead."""
    *steps, key, value = path

    def change(manifest, header, content):
        for step in steps:
            manifest = manifest[step]
        manifest[key] = value

    return change


def in_array(name, at, value):
    def change(manifest, header, content):
        content[header[name]["data_offsets"][0] + at] = value

    return change


LAYER, PART = ("runs", 0, "layers", 0), ("runs", 0, "layers", 0, "parts", 0)
WORDS = {
    "a version to come": (put("version", 7), "is a trace of version 7, but this regard reads version 2; update regard"),
    "no version": (put("version", "1"), "a manifest without a version"),
    "a true version": (put("version", True), "a manifest without a version"),
    "a word too many": (put("more", 1), "says something wrong at more"),
    "a model that is a number": (put("model", 3), "wrong at model: Input should be a valid string"),
    "a name that is a number": (put(*LAYER, "name", 3), "wrong at runs.0.layers.0.name"),
    "no parts": (put(*LAYER, "parts", []), "wrong at runs.0.layers.0.parts"),
    "three axes": (put(*LAYER, "shape", [B, H, Q]), "wrong at runs.0.layers.0.shape"),
    "a negative axis": (put(*LAYER, "shape", [B, H, Q, -1]), "wrong at runs.0.layers.0.shape"),
    "a huge map": (
        put(*LAYER, "shape", [B, H, Q, 2**50]),
        r"a map of \(2, 4, 3, 1125899906842624\) does not come from",
    ),
    "another batch": (put(*LAYER, "shape", [B + 1, H, Q, K]), "is not what belongs there"),
    "heads that do not group": (put(*LAYER, "shape", [B, 1, Q, K]), "is not what belongs there"),
    "more rows": (put(*LAYER, "shape", [B, H, Q + 1, K]), "have 3 rows, but the map has 4"),
    "an unknown array": (put(*PART, "q", "nowhere"), "there is no array 'nowhere'"),
    "no q": (put(*PART, "q", None), "there is no array None"),
    "k for q": (put(*PART, "q", "0/a.0/k"), "is not what belongs there"),
    "bits for q": (put(*PART, "q", "0/a.1/mask/bits"), "is not what belongs there"),
    "weights beside q": (put(*PART, "weights", "0/a.2/weights"), "nothing stands beside them"),
    "rows beyond the map": (put(*PART, "rows", [0, 99]), "is not what belongs there"),
    "rows from nowhere": (put(*PART, "rows", [1, Q]), "are no part of"),
    "columns beyond the map": (put(*PART, "columns", [1, K + 1]), "are no part of"),
    "an infinite scale": (put(*PART, "scale", 1e999), "Infinity is no number"),
    "a scale that is text": (put(*PART, "scale", "1"), "wrong at runs.0.layers.0.parts.0.scale"),
    "a softcap of 0": (put(*PART, "softcap", 0.0), "wrong at runs.0.layers.0.parts.0.softcap"),
    "another normaliser": (put(*PART, "weigh", "os.system"), "wrong at runs.0.layers.0.parts.0.weigh"),
    "a mask of nothing": (put(*PART, "mask", {}), "there is no array None"),
    "a mask that only stops": (put(*PART, "mask", {"stop": "0/a.0/mask/stop"}), "not where they start"),
    "a bias of two kinds": (put(*PART, "bias", "tensor", "0/a.0/bias/diagonals"), "a bias is a tensor or diagonals"),
    "a run of keys beyond the keys": (in_array("0/a.0/mask/stop", 0, 99), "does not lie within the 5 keys"),
    "a run of keys before the first": (in_array("0/a.0/mask/start", 3, 255), "does not lie within the 5 keys"),
    "half a truth": (in_array("0/a.0/seen/allowed", 0, 2), "between true and false"),
    "rows that were not seen": (put(*LAYER, "seen", "rows", [0, 99]), "rows were seen that"),
    "a dropout above 1": (put(*LAYER, "seen", "dropout", 1.5), "wrong at runs.0.layers.0.seen.dropout"),
    "tokens that are not there": (put(*LAYER, "queries", [0, 99]), "sequences of tokens are named"),
    "tokens of too few": (put(*LAYER, "queries", [0]), "1 sequences of tokens are named for a batch of 2"),
    "tokens of another length": (put(*LAYER, "queries", [1, 1]), "tokens are named that are not 3"),
    "fewer ids than tokens": (put("tokens", 1, "ids", [1]), "tokens came with 1 ids"),
    "a token outside its text": (put("tokens", 0, "offsets", [[0, 1], None, [2, 9]]), "outside of its text"),
    "a token that ends before it begins": (put("tokens", 0, "offsets", [[1, 0], None, None]), "outside of its text"),
    "a token that is a number": (put("tokens", 0, "shown", ["a", 1, "c"]), "wrong at tokens.0.shown.1"),
}


@pytest.mark.parametrize(("change", "words"), WORDS.values(), ids=WORDS)
def test_hostile_manifests_are_refused_in_words(good, bad, change, words):
    bad.write_bytes(changed(good, change))
    with pytest.raises(TraceError, match=words) as error:
        _ = [layer.seen and layer.seen.allowed for layer in load(bad).layers]
    assert str(bad) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "manifest", ["", "[]", "null", "{", '{"version":1,"version":1}', "[" * 5000, "\ud800", "1" * 9999]
)
def test_a_manifest_that_is_none_is_refused(good, bad, manifest):
    header, content = header_of(good)
    header["__metadata__"]["regard"] = manifest
    bad.write_bytes(file_of(header, content))
    assert not try_to_load(bad)


def test_a_long_name_does_not_make_a_long_sentence(bad):
    bad.write_bytes(file_of({"x" * 100_000: entry([3], 0, 8)}, b"x" * 8))
    assert not try_to_load(bad)


def test_errors_are_ours():
    assert issubclass(TraceError, RegardError)
