"""Answers that the explorer's own tests read: web/test/fixtures/answers.json and answers.bin.

`REGARD_WRITE=1 pytest tests/views/explorer/answer/test_fixture.py` writes them anew.
"""

import json
import os

import numpy as np
import torch
from safetensors.numpy import load

import regard
from regard.attention.map import AttentionMap
from regard.tokens import Tokens
from regard.trace.record.layer import Layer, ProofSample
from regard.trace.record.trace import Run, Trace
from regard.views.explorer.answer import Answers

N, HEADS, D, E = 18, 2, 3, 4
HEAD = {"layer": 0, "batch": 0, "head": 1}
ASKS = [
    ("tile", {**HEAD, "level": 0, "row": 0, "column": 0, "coarse": False}),
    ("tile", {**HEAD, "level": 2, "row": 0, "column": 0, "coarse": False}),
    ("tile", {**HEAD, "level": 2, "row": 0, "column": 0, "coarse": True}),
    ("row", {**HEAD, "query": 11}),
    ("row", {**HEAD, "layer": 1, "query": 11}),
    ("column", {**HEAD, "key": 3}),
    ("top", {**HEAD, "first": 1, "queries": 5, "count": 4}),
    ("thumbs", {"layer": 0, "batch": 0, "size": 8}),
    ("measures", {"layer": 0, "batch": 0}),
    ("proof", {"layer": 0}),
    ("hidden", HEAD),
    ("numbers", {**HEAD, "query": 11, "key": 3}),
    ("numbers", {**HEAD, "layer": 1, "query": 11, "key": 3}),
    ("flow", {"query": 11, "batch": 0, "residual": 0.5, "by": "weights", "coarse": False}),
]


def waves(*shape: int, seed: float) -> torch.Tensor:
    """Numbers that are the same on every machine."""
    return torch.sin(torch.arange(np.prod(shape), dtype=torch.float64) * seed + seed).view(shape) * 2


def made() -> tuple[dict, bytes]:
    """What stands in the two files."""
    q, k, v = (waves(1, HEADS, N, width, seed=seed) for width, seed in ((D, 1.7), (D, 2.3), (E, 0.9)))
    asked = regard.attend(q.float(), k.float(), v.float(), mask=regard.causal())
    strange = ("</script>", "猫", "\ud83d", "\u202e", *(f"t{i}" for i in range(4, N)))
    tokens = (Tokens(strange, ids=tuple(range(N))),)
    stored = torch.softmax(waves(1, HEADS, N, N, seed=1.1), -1)
    first = Layer("blocks.0", "self", asked.weights, q.float(), k.float(), v.float(), queries=tokens, keys=tokens)
    first.seen = ProofSample(rows=(11,), mix=asked.mix[:, :, 11:12])
    second = Layer("blocks.1", "self", AttentionMap.stored(stored.float()), queries=tokens, keys=tokens)
    answers = Answers(Trace([Run([first, second])], model="Small"), identity="fixture", name="a fixture")
    blobs = [answers.ask(what, about) for what, about in ASKS]
    ends = np.cumsum([0, *map(len, blobs)]).tolist()
    scores = (q @ k.mT / D**0.5)[0, 1].masked_fill(~torch.ones(N, N).tril().bool(), -torch.inf)
    words = {
        "info": answers.info(),
        "asks": [
            {"what": what, "about": about, "start": start, "stop": stop}
            for (what, about), start, stop in zip(ASKS, ends, ends[1:])
        ],
        "weights": [[round(w, 9) for w in row] for row in torch.softmax(scores, -1).tolist()],  # of HEAD, in float64
    }
    return words, b"".join(blobs)


def test_the_answers_that_the_explorer_is_tested_with_are_those_that_python_gives(repository):
    folder = repository / "web" / "test" / "fixtures"
    words, data = made()
    if os.environ.get("REGARD_WRITE"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "answers.json").write_text(json.dumps(words) + "\n", encoding="ascii")
        (folder / "answers.bin").write_bytes(data)
    advice = "write it anew: REGARD_WRITE=1 pytest tests/views/explorer/answer/test_fixture.py"
    there, bytes_there = json.loads((folder / "answers.json").read_text()), (folder / "answers.bin").read_bytes()
    assert there == json.loads(json.dumps(words)) | {"asks": there["asks"]}, advice
    assert [(one["what"], one["about"]) for one in there["asks"]] == [(what, about) for what, about in ASKS], advice
    for old, new in zip(there["asks"], words["asks"]):
        before, after = bytes_there[old["start"] : old["stop"]], data[new["start"] : new["stop"]]
        same(before, after, f"{old['what']}: {advice}")
    assert len(data) + len(json.dumps(words)) < 60_000


def same(before: bytes, after: bytes, advice: str) -> None:
    """The same arrays to the last digits, and the same words."""
    old, new = load(before), load(after)
    assert {name: (x.dtype, x.shape) for name, x in old.items()} == {n: (x.dtype, x.shape) for n, x in new.items()}, (
        advice
    )
    for name in old:
        np.testing.assert_allclose(old[name], new[name], rtol=1e-5, atol=1e-6, err_msg=advice)
    facts = [
        json.loads(json.loads(x[8 : 8 + int.from_bytes(x[:8], "little")])["__metadata__"]["facts"])
        for x in (before, after)
    ]
    if "status" in facts[0]:  # a proof counts last places, which differ from machine to machine
        facts = [{key: value for key, value in one.items() if not isinstance(value, float)} for one in facts]
    assert near(*facts), advice


def near(a: object, b: object) -> bool:
    """Equal, numbers almost."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(near(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(near, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) < 1e-5
    return a == b
