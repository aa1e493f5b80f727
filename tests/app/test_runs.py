"""Running models from a page: events, limits, and a run that somebody stops."""

import subprocess
import sys
import threading
import time

import pytest
import torch
from PIL import Image

from regard.app.runners.monitor import RunMonitor
from regard.app.runners.writers import WriterRunner
from regard.data.picture_file import address_of
from regard.models import embedded
from regard.tasks.text_translator import open_translator
from regard.trace.file import load
from regard.trace.watch import watch
from tests.app.served import ASK, EDIT, HOST, opened, row, run, trace_of


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("kept")) as (client, _):
        yield client


def test_an_empty_studio_opens_with_a_translation(client):
    (card,) = client.get("/api/traces").json()
    assert set(card) == {"id", "name", "model", "text", "made"}
    assert (card["model"], card["text"]) == ("en-zh", "The cat sat on the mat.")
    info = client.get(f"/api/traces/{card['id']}").json()
    assert info["output"] == {"text": "猫坐在垫子上。", "next": None, "classes": None}
    assert len(info["layers"]) == 9


def test_every_embedded_model_is_listed_with_an_example_that_it_can_run(client):
    listed = client.get("/api/models").json()
    assert [model["name"] for model in listed] == embedded.names()
    assert [model["tasks"][0] for model in listed] == [
        "see", "translate", "translate", "translate", "read", "see", "generate", "read", "read", "read", "see",
        "summarise", "generate",
    ]  # fmt: skip
    for model in listed:
        assert set(model) == {"name", "about", "reads", "writes", "tasks", "example"}
        seen = {"picture": address_of(Image.new("L", (28, 28)))} if model["reads"] == "picture" else {}
        assert run(client, model=model["name"], text=model["example"], **seen)[-1]["kind"] == "done"


@pytest.mark.parametrize("name", ["en-zh-grammar", "en-zh-grammar-recurrent"])
def test_a_translation_is_the_one_of_the_interpreter_and_so_are_its_weights(client, name):
    text = "My friend bought two books yesterday."
    events = run(client, model=name, text=text)
    (one,) = open_translator(name).translate([text])
    assert events[-1]["text"] == one.text
    for number, layer in enumerate(one.trace().layers):
        found = row(client, events[-1]["trace"], number, 0, 3)
        torch.testing.assert_close(found, layer.weights[0, 0, 3].detach(), rtol=1e-6, atol=1e-7)


def test_writing_gives_each_token_as_it_comes_and_rows_that_can_be_opened(client):
    events = run(client, steps=6)
    tokens = [event for event in events if event["kind"] == "token"]
    assert [(event["number"], event["of"]) for event in tokens] == [(n, 6) for n in range(1, 7)]
    assert "".join(event["text"] for event in tokens) == " cat sees A B C ."
    assert events[-1]["text"] == "cat sees A B C ."
    assert "rows" in [event["kind"] for event in events]
    model, words = embedded.load("induction"), embedded.tokenizer("induction")
    ids = words.encode(f"{ASK['text']} cat sees A B C .")
    with torch.no_grad(), watch(model) as trace:
        logits = model(torch.tensor([ids]))[0, -1]
    last = row(client, events[-1]["trace"], 1, 2, len(ids) - 1)
    torch.testing.assert_close(last, trace.layers[1].weights[0, 2, -1], rtol=1e-5, atol=1e-6)
    told = client.get(f"/api/traces/{events[-1]['trace']}").json()["output"]["next"]
    assert len(told) == 10
    assert told[0]["name"] == words.decode([int(logits.argmax())])
    assert told[0]["share"] == pytest.approx(float(logits.softmax(-1).max()), rel=1e-5)


def test_reading_alone_says_what_comes_next(client):
    events = run(client, steps=0)
    assert [event["kind"] for event in events if event["kind"] != "progress"] == ["done"]
    assert events[-1]["text"] is None
    info = client.get(f"/api/traces/{events[-1]['trace']}").json()
    assert info["output"]["next"][0]["name"] == "cat"
    assert info["layers"][0]["shape"] == [1, 4, 8, 8]


def test_a_warm_run_draws_its_tokens_and_another_draws_others(client):
    told = {run(client, text="A", steps=12, temperature=3.0)[-1]["text"] for _ in range(4)}
    assert len(told) > 1


def test_each_look_at_a_growing_run_stays_as_it_was_drawn(client, monkeypatch):
    monkeypatch.setattr(RunMonitor, "EVERY", 0.0)
    looks = []
    with client.websocket_connect("/api/run", headers={"host": HOST}) as socket:
        socket.send_json(ASK | {"steps": 4})
        while (event := socket.receive_json())["kind"] != "done":
            if event["kind"] == "rows":
                answer = client.get(f"/api/traces/{event['trace']}")
                looks.append((int(answer.headers["x-look"]), answer.json()["layers"][0]["shape"][2]))
    whole = client.get(f"/api/traces/{event['trace']}")
    assert (whole.headers["x-look"], whole.json()["layers"][0]["shape"][2]) == ("0", 12)
    for look, rows in looks:
        if look:
            assert len(row(client, event["trace"], query=rows - 1, look=look)) == rows
    gone = client.post(f"/api/traces/{event['trace']}/ask/row?look=99", json={})
    assert gone.status_code == 410
    assert "has gone on" in gone.json()["error"]


def test_edits_can_be_made_from_the_beginning(client):
    plain, edited = run(client), run(client, edits=[EDIT | {"layer": 1}])
    assert plain[-1]["text"] != edited[-1]["text"]
    same = run(client, model="en-zh-grammar", text="The cat sat on the mat.", edits=[EDIT | {"layer": 5, "heads": [0]}])
    assert same[-1]["kind"] == "done"


LONG = "A " * 6000
REFUSED = [
    ({"text": ""}, "the text is empty"),
    ({"text": " \n "}, "the text is empty"),
    ({"model": "en-zh-grammar", "text": "  "}, "a text is empty; give some words"),
    ({"text": "dog of the"}, "'of' is not among the 140 words of this model"),
    ({"text": LONG}, "the text has 6,000 tokens, but induction reads at most 4,096; shorten it"),
    (
        {"text": "A " * 4000, "steps": 200},
        "4,000 tokens and 200 more were asked for, but induction reads at most 4,096",
    ),
    ({"model": "en-zh-grammar", "text": "cat " * 1500}, "has 1,500 tokens, but at most 1,000 are read at once"),
    ({"text": "A" * 100_001}, "the text has 100,001 characters, but at most 100,000 are read at once"),
    ({"model": "../../etc/passwd"}, "there is no model '../../etc/passwd' here; there are: digits, en-zh"),
    ({"model": 7}, "model cannot be taken"),
    ({"steps": 513}, "steps is 513, but at most 512 is taken"),
    ({"steps": -1}, "steps is -1, but at least 0 is wanted"),
    ({"steps": "3"}, "steps cannot be taken"),
    ({"temperature": -0.5}, "temperature is -0.5, but at least 0"),
    ({"surprise": 1}, "surprise cannot be taken"),
    ({"edits": [{"kind": "mute", "layer": 8}]}, "an edit names layer 8, but there are 2"),
    ({"edits": [{"kind": "mute", "layer": 0, "heads": [4]}]}, "has 4 heads, but head 4 was asked for"),
    ({"edits": [{"kind": "scale", "layer": 0}]}, "needs a factor"),
    ({"edits": [{"kind": "explode", "layer": 0}]}, "edits.0.kind cannot be taken"),
]


@pytest.mark.parametrize(("ask", "sentence"), REFUSED, ids=[sentence[:30] for _, sentence in REFUSED])
def test_what_cannot_run_is_refused_in_one_sentence(client, ask, sentence):
    last = run(client, **ask)[-1]
    assert last["kind"] == "failed"
    assert sentence in last["text"]
    assert "\n" not in last["text"]


def test_an_ask_that_is_too_large_is_refused(client):
    last = run(client, picture="x" * (1 << 20))[-1]
    assert (last["kind"], "at most 1 MB are taken" in last["text"]) == ("failed", True)


def test_a_model_that_fails_says_so_and_the_next_run_works(client, monkeypatch):
    def fail(self, request, monitor):
        raise IndexError("index out of range\nin self")

    with monkeypatch.context() as patched:
        patched.setattr(WriterRunner, "run", fail)
        why = "IndexError: index out of range in self"
        about = {"model": "induction", "why": why}
        told = {"kind": "failed", "text": f"induction failed: {why}", "code": "model.failed", "about": about}
        assert run(client)[-1] == told
    assert run(client)[-1]["kind"] == "done"


def test_closing_the_connection_stops_the_run_and_keeps_what_was_shown(client, monkeypatch):
    monkeypatch.setattr(RunMonitor, "EVERY", 0.0)
    written = []
    monkeypatch.setattr(RunMonitor, "token", lambda self, text, number, of: (written.append(number), time.sleep(0.01)))
    with client.websocket_connect("/api/run", headers={"host": HOST}) as socket:
        socket.send_json(ASK | {"steps": 500})
        while (event := socket.receive_json())["kind"] != "rows":
            pass
    for _ in range(200):
        if (kept := client.get(f"/api/traces/{event['trace']}")).headers.get("x-look") == "0":
            break
        time.sleep(0.02)
    assert kept.json()["layers"][0]["shape"][2] < 200
    assert len(written) < 200
    assert event["trace"] in [card["id"] for card in client.get("/api/traces").json()]


def test_runs_wait_for_each_other_and_only_so_many(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.app.studio.studio.WAITING", 1)
    gate = threading.Event()
    with opened(tmp_path) as (client, studio):
        client.get("/api/traces")
        studio.queue(gate.wait)
        assert "are waiting already" in run(client)[-1]["text"]
        gate.set()
        while studio.waiting:
            time.sleep(0.01)
        assert run(client)[-1]["kind"] == "done"


def test_a_run_is_on_the_disk_as_a_trace_that_anybody_can_load(tmp_path):
    with opened(tmp_path / "kept") as (client, _):
        name = trace_of(client)
        found = row(client, name, 1, 1, 4)
    trace = load(tmp_path / "kept" / f"{name}.trace")
    torch.testing.assert_close(trace.layers[1].weights[0, 1, 4], found)
    assert trace.fingerprint


def test_a_first_run_loads_no_algebra(tmp_path):
    """SymPy takes a second, in which nobody else gets far; some functions of torch load it, so they are not used."""
    program = (
        "import sys; from pathlib import Path; from regard.app.studio.studio import Studio\n"
        "from regard.app.runners.monitor import RunMonitor; from regard.app.protocol.messages import RunRequest\n"
        f"studio = Studio(keep=Path({str(tmp_path)!r}))\n"
        "studio.run(RunRequest(model='induction', text='A B C A', steps=3), RunMonitor())\n"
        "print(len(studio.traces.list_traces()), 'sympy' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["1", "False"], done.stderr
