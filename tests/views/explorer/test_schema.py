"""schema.ts says what the manifest says, and the traces that TypeScript reads are those that Python writes."""

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch as tensors
from safetensors import safe_open
from safetensors.numpy import load
from torch.testing import assert_close

from regard.trace.file import load as load_trace
from regard.trace.file.manifest import Manifest
from regard.views.explorer.schema import literal, schema
from tests.views.explorer import held_traces

SCHEMA = Path(__file__).parents[3] / "web" / "src" / "trace" / "schema.ts"


def test_the_committed_schema_is_what_the_manifest_makes():
    assert SCHEMA.read_text(encoding="utf-8") == schema(), (
        "run python -m regard.views.explorer.schema web/src/trace/schema.ts"
    )


def test_every_class_and_word_of_the_manifest_is_there():
    text = schema()
    classes = {**Manifest.model_json_schema()["$defs"], "Manifest": Manifest.model_json_schema()}
    assert len(classes) >= 9
    for name, words in classes.items():
        part = text.split(f"export interface {name} {{")[1].split("}")[0]
        assert [line.split()[1].rstrip(":") for line in part.strip().splitlines()] == list(words["properties"])


def test_large_bounds_are_written_as_powers():
    assert literal({"least": -(1 << 63), "below": 1 << 64}) == "{ least: -(2 ** 63), below: 2 ** 64 }"
    assert literal([1, 0.5, None, True, "a"]) == '[1, 0.5, null, true, "a"]'


@pytest.fixture(scope="module")
def made():
    return held_traces.made()


def must_tell_the_same(ours: bytes, theirs: bytes, advice: str) -> None:
    """The same words and arrays; what was computed may differ in its last bits between processors, and its digests."""
    facts = [json.loads(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["regard"])
            for data in (ours, theirs)]  # fmt: skip
    assert facts[0] == facts[1], advice
    arrays = [tensors.load(data) for data in (ours, theirs)]
    assert arrays[0].keys() == arrays[1].keys(), advice
    for name in arrays[0].keys() - {"digests"}:
        assert_close(arrays[0][name], arrays[1][name], atol=1e-6, rtol=1e-5, equal_nan=True, msg=f"{name} in {advice}")


def test_the_committed_traces_are_what_python_writes(made):
    there = {path.name for path in held_traces.FOLDER.iterdir()}
    assert there >= set(made), "run python -m tests.views.explorer.held_traces"
    assert sum(map(len, made.values())) < 150_000
    for name, data in made.items():
        kept = (held_traces.FOLDER / name).read_bytes()
        if name.endswith(".trace"):
            must_tell_the_same(data, kept, f"{name}: run python -m tests.views.explorer.held_traces")
            continue
        if name.endswith(".packed"):
            continue  # zlib may pack otherwise elsewhere; what it holds is a trace of the folder
        ours, theirs = load(data), load(kept)
        assert ours.keys() == theirs.keys()
        for array in ours:
            np.testing.assert_allclose(ours[array], theirs[array], atol=1e-6, rtol=1e-5)


def test_the_answers_tell_the_same_measures(made, tmp_path):
    for name in (held_traces.KINDS, held_traces.PAIR):
        facts = []
        for data in (made[f"{name}.safetensors"], (held_traces.FOLDER / f"{name}.safetensors").read_bytes()):
            (tmp_path / "x").write_bytes(data)
            with safe_open(tmp_path / "x", "np") as file:
                facts.append(json.loads(file.metadata()["facts"])["measures"])
        for ours, theirs in zip(*facts, strict=True):
            for one, other in zip(ours, theirs, strict=True):
                assert one["notes"] == other["notes"]
                for measure, values in one["values"].items():
                    assert values == pytest.approx(other["values"][measure], abs=1e-6)


def test_the_traces_are_files_that_regard_opens(made, tmp_path):
    path = tmp_path / "kinds.trace"
    path.write_bytes(made["kinds.trace"])
    layers = load_trace(path).layers
    assert len(layers) == 17
    for ours, theirs in zip(held_traces.kinds().layers, layers, strict=True):
        np.testing.assert_array_equal(ours.weights.dense(), theirs.weights.dense())
