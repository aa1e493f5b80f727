"""What there is, who may ask what, and several asking at once."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import regard
from regard.attention.map import AttentionMap
from regard.errors import RegardError, TraceError
from regard.tokens import Tokens
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace
from regard.views.explorer.answer import Answers, answers, pyramid, questions
from tests.views.explorer.answer.cases import CASES, ask, asked, close, triangle
from tests.views.traces import decoder, translator

INFO = [
    *("id", "name", "model", "run", "runs", "tokens", "layers", "notes", "edits", "missed"),
    *("precision", "error", "output", "picture"),
]
LAYER = ["name", "kind", "side", "how", "shape", "queries", "keys", "scores", "values", "notes", "states", "edits"]
TOKENS = ["shown", "ids", "offsets", "special", "words", "text", "grid"]
HEAD = {"layer": 0, "batch": 0, "head": 0}


def test_info_has_exactly_the_keys_of_the_interface():
    made = Answers(translator(), identity="t1", name="cat", output={"text": "猫", "next": None, "classes": None})
    info = made.info()
    assert list(info) == INFO
    assert [list(layer) for layer in info["layers"]] == [LAYER] * 6
    assert [list(tokens) for tokens in info["tokens"]] == [TOKENS] * 2
    assert (info["id"], info["name"], info["model"], info["run"], info["runs"]) == ("t1", "cat", "Translator", 0, 1)
    assert info["output"]["text"] == "猫"
    assert (info["precision"], info["error"], info["picture"]) == ("float32", None, None)
    json.dumps(info, allow_nan=False)


def test_the_keys_of_info_stand_in_the_interface(repository):
    text = (repository / "web/src/trace/source.ts").read_text(encoding="utf-8")
    for name, keys in (("TraceInfo", INFO), ("LayerInfo", LAYER), ("Tokens", TOKENS)):
        body = text.split(f"export interface {name} {{")[1].split("\n}")[0]
        found = [line.split(":")[0].removeprefix("readonly ") for line in map(str.strip, body.splitlines()) if line]
        assert [key for key in found if not key.endswith("?")] == keys
        assert [key for key in found if key.endswith("?")] == (["reading?"] if name == "TraceInfo" else [])  # of a page


def test_sides_tell_an_encoder_from_its_decoder():
    found = [(layer["name"], layer["side"]) for layer in Answers(translator()).info()["layers"]]
    assert found == [
        ("encoder.0.self", "encoder"),
        ("encoder.1.self", "encoder"),
        ("decoder.0.self", "decoder"),
        ("decoder.0.cross", "decoder"),
        ("decoder.1.self", "decoder"),
        ("decoder.1.cross", "decoder"),
    ]
    assert {layer["side"] for layer in Answers(decoder()).info()["layers"]} == {""}


def test_sides_of_paths_that_do_not_tell_follow_the_order():
    one = AttentionMap.stored(torch.eye(3)[None, None])
    kinds = ["self", "self", "cross", "self", "cross"]
    layers = [Layer(f"block.{i}", kind, one) for i, kind in enumerate(kinds)]
    sides = [layer["side"] for layer in Answers(Trace([Run(layers)])).info()["layers"]]
    assert sides == ["encoder", "decoder", "decoder", "decoder", "decoder"]


def test_how_scores_and_values_are_told():
    facts = {
        name: Answers(CASES[name]().trace).info()["layers"][0] for name in ("causal", "stored", "implied", "stitched")
    }
    assert {name: (one["how"], one["scores"], one["values"]) for name, one in facts.items()} == {
        "causal": ("computed", True, True),
        "stored": ("stored", False, False),
        "implied": ("implied", False, False),
        "stitched": ("computed", True, True),
    }
    assert facts["causal"]["shape"] == [2, 4, 13, 13]
    assert facts["causal"]["queries"] == [0, 1]
    assert facts["stored"]["queries"] is None


def test_hostile_tokens_survive_json():
    strange = ("</script>", "\ud800", "\u2028", "\x00", "🐈", "a" * 10_000, "\u202e", '"')
    layer = regard.from_weights(torch.eye(8), Tokens(strange, ids=tuple(range(8)), text="\udfff")).layers[0]
    info = Answers(Trace([Run([layer])])).info()
    back = json.loads(json.dumps(info).encode("ascii"))
    assert tuple(back["tokens"][0]["shown"]) == strange
    assert back["tokens"][0]["text"] == "\udfff"


def test_notes_of_refused_layers_are_told_and_a_run_can_be_chosen():
    run = Run([], ["blocks.3 was refused: its kernel is unknown"])
    trace = Trace([run, *decoder().runs], notes=["watched with care"])
    assert Answers(trace, run=0).info()["notes"] == [*run.notes, "watched with care"]
    assert Answers(trace).info()["run"] == 1
    assert Answers(trace, run=0).info()["runs"] == 2
    with pytest.raises(TraceError, match="run 2 was asked for, but the trace has 2"):
        Answers(trace, run=2)
    with pytest.raises(TraceError, match="the trace has 0"):
        Answers(Trace())


BAD = [
    ("tiles", {}, "'tiles' was asked, but a trace answers tile, row,"),
    (None, {}, "None was asked"),
    (["tile"], {}, "was asked, but a trace answers"),
    ("row", None, "'row' was asked with None; give an object with layer, batch, head, query"),
    ("row", [1, 2], "give an object"),
    ("row", HEAD, "'row' was asked without query"),
    ("row", {**HEAD, "query": True}, "query = True: input should be a valid integer"),
    ("row", {**HEAD, "query": 1.0}, "query = 1.0"),
    ("row", {**HEAD, "query": "1"}, "query = '1'"),
    ("row", {**HEAD, "query": None}, "query = None"),
    ("row", {**HEAD, "query": -1}, "query = -1"),
    ("row", {**HEAD, "query": 2**31}, "query = a huge number"),
    ("row", {**HEAD, "query": 10**5000}, "query = a huge number"),
    ("row", {**HEAD, "query": 1, "more": "x" * 999}, "more = 'xxx"),
    ("row", {**HEAD, "query": 1, "layer": 1}, "layer 1 was asked for, but the run has 1"),
    ("row", {**HEAD, "query": 1, "batch": 2}, "blocks.0 saw a batch of 2, but entry 2 was asked for"),
    ("row", {**HEAD, "query": 1, "head": 4}, "blocks.0 has 4 heads, but head 4 was asked for"),
    ("tile", {**HEAD, "level": 31, "row": 0, "column": 0, "coarse": False}, "level = 31"),
    ("tile", {**HEAD, "level": 0, "row": 0, "column": 0, "coarse": 1}, "coarse = 1"),
    ("top", {**HEAD, "first": 0, "queries": 513, "count": 1}, "queries = 513"),
    ("top", {**HEAD, "first": 0, "queries": 1, "count": 257}, "count = 257"),
    ("top", {**HEAD, "first": 0, "queries": 0, "count": 1}, "queries = 0"),
    ("thumbs", {"layer": 0, "batch": 0, "size": 129}, "size = 129"),
    ("proof", {"layer": 9}, "layer 9 was asked for"),
    ("flow", {"query": 0, "batch": 0, "residual": True, "by": "weights"}, "residual = True"),
]


@pytest.mark.parametrize(("what", "given", "sentence"), BAD)
def test_a_question_that_is_none_is_refused_in_one_sentence(what, given, sentence):
    with pytest.raises(RegardError) as error:
        Answers(CASES["causal"]().trace).ask(what, given)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


def test_every_question_has_an_interface_and_an_answer(repository):
    text = (repository / "web/src/trace/source.ts").read_text(encoding="utf-8")
    body = text.split("export interface Source {")[1]
    found = [line.strip().split("(")[0] for line in body.split("\n}")[0].splitlines() if "Promise<" in line]
    assert found == list(questions.QUESTIONS)


def test_no_gradient_is_needed_and_none_is_sent():
    q = torch.randn(1, 2, 6, 4, requires_grad=True)
    layer = Layer("blocks.0", "self", regard.attend(q, q, q).weights, q, q, q)
    made = Answers(Trace([Run([layer])]))
    for what, more in (("row", {"query": 1}), ("numbers", {"query": 1, "key": 0}), ("hidden", {})):
        assert made.ask(what, {**HEAD, **more})
    assert made.ask("tile", {**HEAD, "level": 1, "row": 0, "column": 0, "coarse": False})


def test_a_map_without_rows_is_told_and_its_parts_are_refused():
    x = torch.zeros(1, 1, 0, 3)
    made = Answers(Trace([Run([Layer("none", "self", regard.attend(x, x, x).weights)])]))
    assert made.info()["layers"][0]["shape"] == [1, 1, 0, 0]
    with pytest.raises(TraceError, match="has 0 × 0 tiles"):
        made.ask("tile", {**HEAD, "level": 0, "row": 0, "column": 0, "coarse": False})
    assert ask(made, "hidden", **HEAD)[1]["blind"].shape == (0,)


def test_threads_that_ask_for_one_overview_compute_it_once_and_agree(monkeypatch):
    monkeypatch.setattr(pyramid, "CELLS", 1 << 12)
    case = asked(regard.causal(), triangle(400, 400), b=1, h=2, q=400, k=400)
    made, walks, real = Answers(case.trace), [], answers.make_base

    def counted(lines):
        walks.append(threading.get_ident())
        return real(lines)

    monkeypatch.setattr(answers, "make_base", counted)

    def work(number):
        at = {"layer": 0, "batch": 0, "head": number % 2}
        _, tile = ask(made, "tile", **at, level=number % 5, row=0, column=0, coarse=number % 3 == 0)
        _, column = ask(made, "column", **at, key=number)
        _, row = ask(made, "row", **at, query=number)
        close(column["weights"], case.weights[0, number % 2, :, number])
        close(row["weights"], case.weights[0, number % 2, number])
        return number % 2, number % 5, number % 3 == 0, tile["max"]

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(work, range(120)))
    assert len(walks) == 2
    seen = {}
    for *which, found in done:
        assert np.allclose(seen.setdefault(tuple(which), found), found, atol=1e-7)
    assert len(seen) == 20


def test_a_long_walk_over_one_head_does_not_hold_up_another(monkeypatch):
    case = CASES["causal"]()
    made, real = Answers(case.trace), answers.make_base
    begun, may_end = threading.Event(), threading.Event()

    def slow(lines):
        begun.set()
        assert may_end.wait(20)
        return real(lines)

    at = {"layer": 0, "batch": 0, "level": 2, "row": 0, "column": 0, "coarse": False}
    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(answers, "make_base", slow)
        waiting = pool.submit(made.ask, "tile", {**at, "head": 0})
        assert begun.wait(20)
        monkeypatch.setattr(answers, "make_base", real)
        assert made.ask("tile", {**at, "head": 1})
        assert made.ask("row", {**HEAD, "query": 3})
        assert not waiting.done()
        may_end.set()
        assert waiting.result(20)


@pytest.mark.parametrize("name", ["padded", "window", "alibi", "bits", "stitched", "sinks and softcap", "grouped"])
def test_a_trace_from_a_file_answers_as_the_one_that_was_saved(name, tmp_path):
    case = CASES[name]()
    case.trace.save(tmp_path / "small.trace")
    before, after = Answers(case.trace), Answers(regard.load(tmp_path / "small.trace"))
    at = {**HEAD, "batch": case.weights.shape[0] - 1, "head": 1}
    tile = {"row": 0, "column": 0, "coarse": False}
    for what, more in (
        ("tile", {**tile, "level": 0}),
        ("tile", {**tile, "level": 2}),
        ("tile", {**tile, "level": 1, "coarse": True}),
        ("row", {"query": 4}),
        ("hidden", {}),
        ("numbers", {"query": 4, "key": 2}),
    ):
        (facts, old), (said, new) = ask(before, what, **at, **more), ask(after, what, **at, **more)
        assert facts == said
        assert old.keys() == new.keys()
        for array in old:
            np.testing.assert_allclose(old[array], new[array], rtol=1e-6, atol=1e-6)


def test_a_map_that_was_edited_is_asked_row_by_row():
    model = regard.MultiHead(8, heads=2)
    x = torch.randn(1, 6, 8)
    with torch.no_grad(), regard.edit(model) as edit, regard.watch(model) as trace:
        edit.block(query=4, key=2)
        model(x)
    made = Answers(trace)
    assert made.info()["layers"][0]["how"] == "implied"
    _, row = ask(made, "row", **HEAD, query=4)
    assert row["weights"][2] == 0
    assert row["allowed"].tolist() == [1, 1, 0, 1, 1, 1]
    _, tile = ask(made, "tile", **HEAD, level=0, row=0, column=0, coarse=False)
    close(tile["max"], trace.layers[0].weights.dense()[0, 0].double())
