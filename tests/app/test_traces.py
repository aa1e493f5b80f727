"""What is kept: over restarts, on a full disk, from a file that somebody sends; and never a path of the client's."""

import errno
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from regard.app.protocol import limits
from regard.app.studio.cards import Card, read_card
from regard.app.studio.studio import ASKERS
from regard.app.studio.traces import Traces
from regard.trace.file import load
from regard.trace.record.weights import from_weights
from regard.views.explorer.answer import Answers
from regard.views.explorer.answer.questions import read_question
from tests.app.served import EDIT, HOST, POLICY, SENT, opened, row, run, said, trace_of


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("kept")) as (client, _):
        client.get("/api/traces")
        yield client


@pytest.fixture
def file(tmp_path):
    """A trace of two heads over three tokens, one of which means harm."""
    weights = torch.tensor([[[1.0, 0, 0], [0.25, 0.75, 0], [0.5, 0.25, 0.25]]] * 2)[None]
    path = tmp_path / "small.trace"
    from_weights(weights, ["a", "</script>", "c"]).save(path)
    return path


def send(client, data, name="small.trace", **headers):
    return client.post("/api/traces", content=data, headers={"x-name": name, **headers})


# Over a restart


def test_runs_are_there_after_a_restart_the_newest_first(tmp_path):
    with opened(tmp_path) as (client, _):
        first = client.get("/api/traces").json()[0]["id"]
        second = trace_of(client)
        client.patch(f"/api/traces/{second}", json={"name": "我的 </script>"})
        info, weights = client.get(f"/api/traces/{second}").json(), row(client, second, 1, 2, 5)
        assert info["name"] == "我的 </script>"
    with opened(tmp_path) as (client, studio):
        assert studio.welcomed is None  # a studio that is not empty runs nothing
        assert [card["id"] for card in client.get("/api/traces").json()] == [second, first]
        assert client.get(f"/api/traces/{second}").json() == info
        torch.testing.assert_close(row(client, second, 1, 2, 5), weights, rtol=0, atol=0)
        effect = client.post(f"/api/traces/{second}/edit", json={"edits": [EDIT]})
        assert effect.status_code == 200


def test_what_is_forgotten_is_gone_from_the_disk_too(tmp_path):
    with opened(tmp_path) as (client, _):
        name = trace_of(client)
        assert client.delete(f"/api/traces/{name}").status_code == 200
        assert client.get(f"/api/traces/{name}").status_code == 404
        assert client.delete(f"/api/traces/{name}").status_code == 404
        assert not list(tmp_path.glob(f"*{name}*"))


def test_a_file_that_was_named_is_shown_and_never_taken_away(tmp_path, file):
    with opened(tmp_path / "kept", file) as (client, _):
        (card,) = client.get("/api/traces").json()
        assert (card["name"], card["model"]) == ("small", "")
        assert row(client, card["id"], 0, 1, 1).tolist() == [0.25, 0.75, 0.0]
        assert "without the model that made it" in said(
            client.post(f"/api/traces/{card['id']}/edit", json={"edits": [EDIT]})
        )
        client.delete(f"/api/traces/{card['id']}")
        assert file.exists()
    with opened(tmp_path / "kept", file) as (client, _):
        assert client.get("/api/traces").json()[0]["id"] == card["id"]  # a link to it still leads there


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format": "regard-card/2"}',
        b'{"format": "regard-card/1", "id": "../../etc/passwd"}',
        b"[" * 5000,
        b"\xff\xfe",
    ],
)
def test_a_damaged_card_is_passed_over(tmp_path, damage):
    (tmp_path / "0123456789abcdef.json").write_bytes(damage)
    (tmp_path / "0123456789abcdef.trace").write_bytes(b"x")
    assert Traces(tmp_path).list_traces() == []


def test_a_card_is_read_only_under_its_own_name(tmp_path):
    card = Card("0123456789abcdef", "n", "m", "t")
    for name in ("0123456789abcdef", "fedcba9876543210"):
        (tmp_path / f"{name}.json").write_bytes(card.to_bytes())
    assert read_card(tmp_path / "0123456789abcdef.json") == card
    assert read_card(tmp_path / "fedcba9876543210.json") is None


# A file that is sent


def test_a_trace_that_is_sent_can_be_asked(client, file):
    answer = send(client, file.read_bytes(), "%E7%8C%AB.trace")
    assert answer.status_code == 200
    name = answer.json()["trace"]
    info = client.get(f"/api/traces/{name}").json()
    assert info["name"] == "猫"
    assert info["tokens"][0]["shown"] == ["a", "</script>", "c"]
    assert row(client, name, 0, 0, 2).tolist() == [0.5, 0.25, 0.25]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../../etc/x.trace", "x"),
        ("C:\\a\\b.trace", "b"),
        ("%00%0a.trace", "trace"),
        ("", "trace"),
        ("y" * 900, "y" * 200),
    ],
)
def test_the_name_of_a_file_is_a_name_and_no_path(client, file, name, shown):
    sent = send(client, file.read_bytes(), name).json()["trace"]
    assert client.get(f"/api/traces/{sent}").json()["name"] == shown


def newer(data):
    return (
        data.replace(b'\\"schema\\":1', b'\\"schema\\":9')
        if b'\\"schema\\":1' in data
        else data.replace(b"regard", b"regarb", 1)
    )


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:200], lambda data: data[:-3], lambda data: b"", lambda data: b"hello" * 99, newer],
    ids=["cut", "shorter", "empty", "text", "newer"],
)
def test_a_file_that_is_no_whole_trace_is_refused_by_its_name(client, file, damage):
    before = sorted(client.studio.traces.folder.iterdir())
    answer = send(client, damage(file.read_bytes()))
    assert answer.status_code == 422
    assert "'small'" in said(answer)
    assert str(client.studio.traces.folder) not in said(answer)
    assert sorted(client.studio.traces.folder.iterdir()) == before


def test_a_file_that_is_too_large_is_refused_before_it_is_read(client, file, monkeypatch):
    before = sorted(client.studio.traces.folder.iterdir())
    monkeypatch.setattr(limits, "UPLOAD", 1000)
    answer = send(client, file.read_bytes() + bytes(5000))
    assert answer.status_code == 413
    assert "but at most 1 kB are taken" in said(answer)
    pieces = (bytes(300) for _ in range(9))  # without a length
    answer = send(client, pieces)
    assert answer.status_code == 413
    lying = send(client, iter([bytes(5000)]), **{"content-length": "10"})
    assert lying.status_code in (413, 422)
    assert sorted(client.studio.traces.folder.iterdir()) == before


# What is asked


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"null", b'{"a":' * 5000, b'{"layer": NaN}', b"\xff"])
def test_a_question_that_is_none_is_refused(client, body):
    name = client.get("/api/traces").json()[0]["id"]
    answer = client.post(f"/api/traces/{name}/ask/row", content=body)
    assert answer.status_code in (400, 422)
    said(answer)


def test_a_question_that_is_too_long_is_refused(client):
    name = client.get("/api/traces").json()[0]["id"]
    answer = client.post(f"/api/traces/{name}/ask/row", content=b'{"a":"' + b"x" * 70_000 + b'"}')
    assert answer.status_code == 413
    assert "68 kB, but at most 64 kB are taken" in said(answer)
    pieces = client.post(f"/api/traces/{name}/ask/row", content=(b"x" * 9000 for _ in range(9)))
    assert pieces.status_code == 413


@pytest.mark.parametrize(
    ("what", "about"),
    [
        ("row", {"layer": 99, "batch": 0, "head": 0, "query": 0}),
        ("row", {"layer": 0, "batch": 0, "head": 0, "query": -1}),
        ("row", {"layer": 0}),
        ("__class__", {}),
        ("info", {}),
    ],
)
def test_what_does_not_exist_is_refused_by_name(client, what, about):
    name = client.get("/api/traces").json()[0]["id"]
    answer = client.post(f"/api/traces/{name}/ask/{what}", json=about)
    assert answer.status_code in (400, 404, 422)
    said(answer)


TRAVERSAL = [
    "..",
    "%2e%2e",
    "..%2f..%2fetc%2fpasswd",
    "%2fetc%2fpasswd",
    "0123456789abcdef%00",
    "0123456789ABCDEF",
    "a" * 5000,
]


@pytest.mark.parametrize("name", TRAVERSAL)
def test_a_name_never_is_a_path(client, name):
    for path in (f"/api/traces/{name}", f"/api/traces/{name}/page", f"/api/trainings/{name}/1/0"):
        assert client.get(path).status_code in (404, 405)
    assert client.request("DELETE", f"/api/traces/{name}").status_code in (404, 405)


@pytest.mark.parametrize("given", ["x", "1.5", "", "99999999"])
def test_a_run_that_is_no_number_is_refused(client, given):
    name = client.get("/api/traces").json()[0]["id"]
    assert client.get(f"/api/traces/{name}", params={"run": given}).status_code == 400


def test_a_run_that_is_not_there_is_refused(client):
    name = client.get("/api/traces").json()[0]["id"]
    assert client.get(f"/api/traces/{name}?run=0").status_code == 200
    answer = client.get(f"/api/traces/{name}?run=7")
    assert answer.status_code == 400
    said(answer)


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": 7}, {"name": "x" * 201}, {"name": "x", "id": "y"}])
def test_a_name_that_is_none_is_refused(client, body):
    name = client.get("/api/traces").json()[0]["id"]
    assert client.patch(f"/api/traces/{name}", json=body).status_code == 422


# A full disk


@pytest.fixture
def full_disk(monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("regard.app.studio.traces.save", fail)
    monkeypatch.setattr("regard.app.studio.traces.put", fail)


def test_a_run_on_a_full_disk_is_shown_and_says_that_it_was_not_kept(tmp_path, full_disk):
    with opened(tmp_path) as (client, _):
        events = run(client)
        (trouble,) = [event for event in events if event["kind"] == "trouble"]
        told, about = trouble["text"], {"folder": str(tmp_path), "why": "No space left on device"}
        assert (trouble["code"], trouble["about"]) == ("disk.memory", about)
        assert "could not be kept" in told
        assert "No space left on device" in told
        assert "--keep" in told
        assert events[-1]["kind"] == "done"
        assert len(row(client, events[-1]["trace"], 0, 0, 3)) == 13
        assert told in client.get(f"/api/traces/{events[-1]['trace']}").json()["notes"]
        assert client.post(f"/api/traces/{events[-1]['trace']}/edit", json={"edits": [EDIT]}).status_code == 200
        assert not list(tmp_path.iterdir())


def test_a_file_that_is_sent_to_a_full_disk_is_refused(tmp_path, file, full_disk):
    with opened(tmp_path / "kept") as (client, _):
        answer = send(client, file.read_bytes())
        assert answer.status_code == 507
        assert "free some space" in said(answer)
        assert answer.json()["code"] == "disk.full"
        assert not list((tmp_path / "kept").glob("*.trace"))


def test_a_folder_that_cannot_be_made_is_no_reason_not_to_run(tmp_path, file):
    (tmp_path / "taken").write_text("a file stands where the folder should")
    with opened(tmp_path / "taken" / "kept") as (client, _):
        assert run(client)[-1]["kind"] == "done"
        assert send(client, file.read_bytes()).status_code == 507


# Taken along


def test_a_page_is_taken_along_and_never_opened_as_one_of_ours(client, monkeypatch):
    monkeypatch.setattr("regard.views.explorer.page.read_bundle", lambda: "export {}")
    name = client.get("/api/traces").json()[-1]["id"]
    answer = client.get(f"/api/traces/{name}/page")
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith("attachment; filename*=UTF-8''The%20cat%20sat")
    assert answer.text.startswith("<!doctype html>")


def test_an_explorer_that_is_not_built_says_how_to_build_it(client, monkeypatch, tmp_path):
    monkeypatch.setattr("regard.views.explorer.bundle.BUILT", tmp_path / "none.js")
    answer = client.get("/assets/regard.js")
    assert answer.status_code == 400
    assert "make bundle" in said(answer)


# Several at once


def test_eight_viewers_look_while_a_model_runs(client):
    name = client.get("/api/traces").json()[-1]["id"]
    true = [row(client, name, 5, 0, query) for query in range(8)]
    found = {}

    def look(viewer):
        found[viewer] = all(
            torch.allclose(row(client, name, 5, 0, query), true[query], rtol=1e-6) for query in range(8)
        )

    with ThreadPoolExecutor(9) as pool:
        events = pool.submit(run, client, steps=24)
        list(pool.map(look, range(8)))
        assert events.result()[-1]["kind"] == "done"
    assert found == dict.fromkeys(range(8), True)


TILE = {"layer": 0, "batch": 0, "head": 1, "level": 0, "row": 0, "column": 0, "coarse": False}


def test_a_tile_is_computed_once_for_all_who_look_and_gone_with_its_trace(tmp_path, file, monkeypatch):
    asked, real = [], Answers.answer

    def counted(self, question):
        asked.append(question)
        return real(self, question)

    monkeypatch.setattr(Answers, "answer", counted)
    with opened(tmp_path / "kept", file) as (client, studio):
        name = next(iter(studio.traces.entries))

        def tile(**more):
            return client.post(f"/api/traces/{name}/ask/tile", json=TILE | more)

        with ThreadPoolExecutor(8) as pool:
            first, *others = pool.map(lambda _: tile().content, range(8))
        assert others == [first] * 7
        assert asked == [read_question("tile", TILE)]
        assert tile(coarse=True).content == first  # who wants a first look gets the exact one that is there
        assert len(asked) == 1
        assert tile(head=0).content == real(studio.traces.answers(name), read_question("tile", TILE | {"head": 0}))
        assert client.patch(f"/api/traces/{name}", json={"name": "other"}).status_code == 200
        assert tile().content == first
        assert tile(head=5).status_code == 400
        assert tile(row=True).status_code == 400
        assert client.delete(f"/api/traces/{name}").status_code == 200
        assert tile().status_code == 404


def test_who_has_a_tile_already_is_answered_while_every_thread_is_busy(tmp_path, file):
    with opened(tmp_path / "kept", file) as (client, studio):
        name = next(iter(studio.traces.entries))
        first = client.post(f"/api/traces/{name}/ask/tile", json=TILE).content
        may_end = threading.Event()
        waiting = [studio.asking.submit(may_end.wait, 20) for _ in range(ASKERS)]
        assert client.post(f"/api/traces/{name}/ask/tile", json=TILE).content == first
        assert not any(one.done() for one in waiting)
        may_end.set()


def test_something_that_nobody_thought_of_is_told_without_its_traceback(tmp_path, monkeypatch):
    with opened(tmp_path, raises=False) as (client, studio):
        monkeypatch.setattr(studio.models, "list_models", lambda: 1 / 0)
        answer = client.get("/api/models")
        assert answer.status_code == 500
        assert said(answer) == "the server failed (ZeroDivisionError); its terminal says where"


def test_a_list_is_json_in_plain_letters_whatever_a_token_holds(tmp_path):
    trace = from_weights(torch.eye(2)[None, None], ["\ud800", "\u2028"])
    trace.save(tmp_path / "odd.trace")
    assert load(tmp_path / "odd.trace")
    with opened(tmp_path / "kept", tmp_path / "odd.trace") as (client, _):
        (card,) = client.get("/api/traces").json()
        data = client.get(f"/api/traces/{card['id']}").content
        assert data.isascii()
        assert json.loads(data)["layers"]


def test_the_door_of_these_tests_is_the_one_they_speak_of():
    assert HOST in POLICY.hosts
    assert POLICY.fits(SENT["authorization"].removeprefix("Bearer "))
