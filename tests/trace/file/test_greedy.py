"""Small files that ask for much work: arrays without width, maps without numbers. All are refused at once, in words."""

import json

import pytest
import torch

import regard
from regard.attention.map import AttentionMap, Computed
from regard.attention.mask import Sizes
from regard.errors import TraceError
from regard.trace.file import load, save
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace
from tests.trace.file.test_hostile import entry, file_of, header_of, sound

MANY = 4_000  # a side that the size of the file allows


def made(layers, arrays, tokens=()):
    """A file with these layers over these arrays, (shape, kind), all of them zeros; it is sound in every other way."""
    sizes = {"F32": 4, "F16": 2, "U8": 1, "I32": 4, "BOOL": 1}
    header, data = {"__metadata__": {"seal": "", "digests": ""}}, b""
    for name, (shape, kind) in arrays.items():
        size = sizes[kind]
        for side in shape:
            size *= side
        header[name] = entry(list(shape), len(data), len(data) + size, kind)
        data += bytes(size)
    pad = -len(data) % 64
    header["pad/0"] = entry([pad], len(data), len(data) + pad, "U8")
    data += bytes(pad)
    count = -(-len(data) // 262_144)
    header["digests"] = entry([count, 32], len(data), len(data) + 32 * count, "U8")
    manifest = {"version": 2, "tokens": list(tokens), "runs": [{"layers": layers}]}
    header["__metadata__"]["regard"] = json.dumps(manifest)
    return file_of(header, data)


def layer(shape, name="a", *, part=None, **more):
    rows, columns = [0, shape[2]], [0, shape[3]]
    part = {"rows": rows, "columns": columns} | ({"q": "q", "k": "k"} if part is None else part)
    return {"name": name, "kind": "self", "shape": list(shape), "parts": [part]} | more


FILL = {"fill": ((4_400,), "U8")}
ASKED = {"q": "q", "k": "k"}
GREEDY = {
    "no channels": ([layer((1, 1, MANY, MANY))], {"q": ((1, 1, MANY, 0), "F32"), "k": ((1, 1, MANY, 0), "F32")}),
    "no channels, many heads": (
        [layer((MANY, MANY, MANY, MANY))],
        {"q": ((MANY, MANY, MANY, 0), "F32"), "k": ((MANY, MANY, MANY, 0), "F32")},
    ),
    "no keys, many rows": (
        [layer((MANY, MANY, MANY, 0))],
        {"q": ((1, 1, MANY, 1), "F16"), "k": ((MANY, MANY, 0, 1), "F16")},
    ),
    "no rows, many heads": (
        [layer((MANY, MANY, 0, 3))],
        {"q": ((MANY, MANY, 0, 1), "F16"), "k": ((1, 1, 3, 1), "F16")},
    ),
    "crossed": (
        [layer((900, 900, 900, 900))],
        {"q": ((1, 900, 900, 1), "F16"), "k": ((900, 1, 900, 1), "F16")},
    ),
    "stored without keys": (
        [layer((MANY, MANY, MANY, 0), part={"weights": "w"})],
        {"w": ((MANY, MANY, MANY, 0), "F32")},
    ),
    "stored without rows": (
        [layer((MANY, MANY, 0, MANY), part={"weights": "w"})],
        {"w": ((MANY, MANY, 0, MANY), "F32")},
    ),
    "values without channels": (
        [layer((1, 1, 2, MANY), v="v")],
        {"q": ((1, 1, 2, 1), "F16"), "k": ((1, 1, MANY, 1), "F16"), "v": ((1, MANY, MANY, 0), "F32")},
    ),
    "a gradient without channels": (
        [layer((1, MANY, 2, 3), gradient="g")],
        {"q": ((1, MANY, 2, 1), "F16"), "k": ((1, 1, 3, 1), "F16"), "g": ((1, MANY, 2, 0), "F32")},
    ),
    "bits of no keys": (
        [layer((MANY, 1, MANY, 0), part=ASKED | {"mask": {"bits": "m"}})],
        {
            "q": ((MANY, 1, MANY, 0), "F16"),
            "k": ((MANY, 1, 0, 0), "F16"),
            "m": ((MANY, 1, MANY, 0), "U8"),
        },
    ),
    "rows that were seen again and again": (
        [layer((1, 1, 2, MANY), seen={"rows": [1] * 60_000, "keys": MANY, "causal": True})],
        {"q": ((1, 1, 2, 1), "F16"), "k": ((1, 1, MANY, 1), "F16")},
    ),
    "one small pair for many layers": (
        [layer((1, 1, 2_000, 2_000), f"a.{i}") for i in range(500)],
        {"q": ((1, 1, 2_000, 1), "F16"), "k": ((1, 1, 2_000, 1), "F16")},
    ),
    "a long map of one channel": (
        [layer((1, 1, 200_000, 200_000))],
        {"q": ((1, 1, 200_000, 1), "F16"), "k": ((1, 1, 200_000, 1), "F16")},
    ),
}


@pytest.mark.parametrize(("layers", "arrays"), GREEDY.values(), ids=GREEDY)
def test_a_small_file_cannot_ask_for_much_work(tmp_path, layers, arrays):
    path = tmp_path / "greedy.trace"
    path.write_bytes(made(layers, arrays | FILL))
    with pytest.raises(TraceError) as error:
        load(path)
    assert error.value.code in ("file.greedy", "file.array", "file.damaged")
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_the_files_above_are_sound_but_for_their_greed(tmp_path):
    path = tmp_path / "small.trace"
    arrays = {"q": ((1, 1, 40, 1), "F16"), "k": ((1, 1, 50, 1), "F16")}
    path.write_bytes(made([layer((1, 1, 40, 50))], arrays | FILL))
    assert load(path).layers[0].weights.dense().equal(torch.full((1, 1, 40, 50), 1 / 50))


@pytest.mark.parametrize("grid", [[2**52, 1], [1, 2**52], [0, 0]])
def test_a_grid_is_one_of_the_tokens_there_are(tmp_path, grid):
    save(sound(), tmp_path / "a.trace")
    header, data = header_of((tmp_path / "a.trace").read_bytes())
    manifest = json.loads(header["__metadata__"]["regard"])
    manifest["tokens"][0]["grid"] = grid
    header["__metadata__"]["regard"] = json.dumps(manifest)
    (tmp_path / "b.trace").write_bytes(file_of(header, data))
    with pytest.raises(TraceError, match="grid"):
        load(tmp_path / "b.trace")


def test_long_honest_maps_are_not_refused(tmp_path):
    """131,072 tokens of one head of 8 channels in half precision: 4 MB for a map of 17 · 10⁹ cells."""
    n, path = 1 << 17, tmp_path / "long.trace"
    q, k = torch.zeros(2, 1, 1, n, 8, dtype=torch.float16)
    map_ = AttentionMap(Computed(q, k, Sizes((1, 1), n, n), mask=regard.causal()))
    save(Trace([Run([Layer("a", "self", map_)])]), path)
    assert load(path).layers[0].weights[0, 0, 5][:7].tolist() == [pytest.approx(1 / 6)] * 6 + [0]
