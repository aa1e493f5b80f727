"""A file that was damaged: every flipped bit is refused, or nothing that can be shown has changed."""

import random

import pytest
import torch

from regard.errors import TraceError
from regard.trace.file import load, save
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
    assert refused > len(bits) * 0.4
