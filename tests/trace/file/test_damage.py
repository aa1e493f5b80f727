"""A file that was damaged: every flipped bit is refused, or nothing that can be shown has changed."""

import hashlib
import json
import random

import pytest
import torch

import regard
from regard.attention.map import AttentionMap, Computed
from regard.attention.mask import Sizes
from regard.errors import TraceError
from regard.trace.file import load, save
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace
from tests.trace.file.test_hostile import sound

FLIPS = 2_000


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "good.trace"
    save(sound(), path)
    return path.read_bytes()


def shown(trace):
    """All that anybody can read of a trace, as plain values."""
    found = [trace.model, trace.fingerprint, trace.notes]
    for run in trace.runs:
        found.append(run.notes)
        for layer in run.layers:
            found += [layer.name, layer.kind, layer.door, layer.notes, layer.queries, layer.keys]
            seen = layer.seen
            tensors = [layer.weights.dense(), layer.weights.allowed[...], layer.q, layer.k, layer.v, layer.gradient]
            if seen is not None:
                found += [seen.rows, seen.causal, seen.scale, seen.dropout, seen.keys]
                tensors += [seen.mix, seen.allowed, seen.weights]
            found += [None if x is None else (x.dtype, x.shape, as_bytes(x)) for x in tensors]
    return found


def as_bytes(x: torch.Tensor) -> bytes:
    return x.contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def refuses(path):
    """Whether the file is refused in the typed way, when it is opened or when its numbers are read."""
    try:
        shown(load(path))
    except TraceError as error:
        return str(path) in str(error)
    return False


def flipped(good, bit):
    damaged = bytearray(good)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def test_one_flipped_bit_is_refused_or_changes_nothing_that_is_shown(good, tmp_path):
    path, draw = tmp_path / "bad.trace", random.Random(3)
    path.write_bytes(good)
    before = shown(load(path))
    words = 8 + int.from_bytes(good[:8], "little")
    used = words - (len(good[8:words]) - len(good[8:words].rstrip()))
    bits = [draw.randrange(8 * used) for _ in range(FLIPS // 2)] + [
        draw.randrange(8 * used, 8 * len(good)) for _ in range(FLIPS // 2)
    ]
    refused = 0
    for bit in [*range(64), *bits]:
        path.write_bytes(flipped(good, bit))
        if not refuses(path):
            assert shown(load(path)) == before, f"bit {bit % 8} of byte {bit // 8} of {len(good)}"
        else:
            refused += 1
    assert refused == len(bits) + 64  # of a file as small as this one even the padding has a digest


def test_every_cut_and_every_splice_is_refused(good, tmp_path):
    path, draw = tmp_path / "bad.trace", random.Random(5)
    for _ in range(60):
        at, length = draw.randrange(len(good)), draw.randrange(1, 300)
        other = draw.randrange(len(good) - length)
        for damaged in (
            good[:at],
            good[:at] + good[at + length :],
            good[:at] + good[other : other + length] + good[at:],
            good[:at] + good[other : other + length] + good[at + length :],
        ):
            if damaged != good:
                path.write_bytes(damaged)
                assert refuses(path), (at, length, other)


def test_arrays_that_changed_places_are_refused(good, tmp_path):
    path = tmp_path / "bad.trace"
    begin = 8 + int.from_bytes(good[:8], "little")
    header = json.loads(good[8:begin])
    same = {}
    for name, entry in header.items():
        if name != "__metadata__" and not name.startswith("pad/"):
            same.setdefault((entry["dtype"], tuple(entry["shape"])), []).append(name)
    pairs = [names[:2] for names in same.values() if len(names) > 1]
    assert pairs
    for one, other in pairs:
        (a, b), (c, d) = (header[name]["data_offsets"] for name in (one, other))
        numbers = bytearray(good)
        numbers[begin + a : begin + b], numbers[begin + c : begin + d] = (
            good[begin + c : begin + d],
            good[begin + a : begin + b],
        )
        names = (
            good[:begin].replace(f'"{one}":'.encode(), b'"?":').replace(f'"{other}":'.encode(), f'"{one}":'.encode())
        )
        names = names.replace(b'"?":', f'"{other}":'.encode())
        for damaged in (bytes(numbers), names + good[begin:]):
            assert damaged != good
            path.write_bytes(damaged)
            assert refuses(path), (one, other)


def test_only_what_is_asked_is_read_and_damage_elsewhere_does_no_harm(tmp_path):
    n, d, path = 6000, 96, tmp_path / "large.trace"
    torch.manual_seed(2)
    layers = []
    for number in range(2):
        q, k = torch.randn(1, 3, n, d), torch.randn(1, 3, n, d)
        map_ = AttentionMap(Computed(q, k, Sizes((1, 3), n, n), mask=regard.causal(), scale=d**-0.5))
        layers.append(Layer(f"blocks.{number}", "self", map_, q=q, k=k))
    save(Trace([Run(layers)]), path)
    expected = layers[1].weights[0, 2, 5000].clone()
    whole = path.read_bytes()
    at = whole.index(layers[1].weights.source.k[0, 1].contiguous().numpy().tobytes())
    with open(path, "r+b") as file:
        file.seek(at + 700_000)
        file.write(bytes([whole[at + 700_000] ^ 4]))
    trace, read = load(path), []
    container = trace.layers[1].weights.source.files["q"].container
    inner = container.read
    container.read = lambda into, start: (read.append(len(into)), inner(into, start))
    assert trace.layers[1].weights[0, 2, 5000].equal(expected)  # another head than the damaged one
    assert sum(read) < len(whole) / 5
    assert trace.layers[0].weights[0, 1, 5000].shape == (n,)
    with pytest.raises(TraceError, match=r"large\.trace is damaged: its bytes \d+ to \d+ are not those written"):
        trace.layers[1].weights[0, 1, 5000]
    with pytest.raises(TraceError, match="is damaged"):
        trace.measures()


def test_a_file_without_digests_is_refused_in_words(good, tmp_path):
    path = tmp_path / "bare.trace"
    begin = 8 + int.from_bytes(good[:8], "little")
    header = json.loads(good[8:begin])
    del header["__metadata__"]["seal"]
    text = json.dumps(header).encode()
    text = text.ljust(-(-(len(text) + 8) // 64) * 64 - 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + good[begin:])
    with pytest.raises(TraceError, match="holds no digests, so nobody can check") as error:
        load(path)
    assert error.value.code == "file.unchecked"
    path.write_bytes(path.read_bytes().replace(b'\\"version\\":2', b'\\"version\\":1'))
    with pytest.raises(TraceError, match="is a trace of version 1, but this regard reads version 2"):
        load(path)


def test_digests_are_those_of_another_program(good, tmp_path):
    """By the format alone, from the bytes: what a reader in another language would do."""
    begin = 8 + int.from_bytes(good[:8], "little")
    header = json.loads(good[8:begin])
    said = header["__metadata__"]
    at = good.index(said["seal"].encode())
    assert hashlib.sha256(good[:at] + b"0" * 64 + good[at + 64 : begin]).hexdigest() == said["seal"]
    first, last = header["digests"]["data_offsets"]
    assert begin + last == len(good)
    digests = good[begin + first :]
    assert hashlib.sha256(digests).hexdigest() == said["digests"]
    arrays = good[begin : begin + first]
    chunks = [arrays[at : at + 262_144] for at in range(0, len(arrays), 262_144)]
    assert digests == b"".join(hashlib.sha256(chunk).digest() for chunk in chunks)
