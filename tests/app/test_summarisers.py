"""A model that summarises, behind the server: listed, run, and edited."""

from regard.tasks.text_summariser import open_summariser
from tests.app.served import EDIT, opened, row, run
from tests.tasks.tiny_summaries import draw_mails, run_of

MAIL = draw_mails(1, seed=3)[0]["body"]


def test_a_server_lists_runs_and_edits_it(tmp_path):
    summary = open_summariser(run_of()).summarise([MAIL])[0]
    with opened(tmp_path / "kept", run_of()) as (client, _):
        listed = client.get("/api/models").json()[-1]
        assert (listed["reads"], listed["writes"], listed["tasks"]) == ("pair", "text", ["summarise"])
        assert "Hurricane Isidora" in listed["example"]
        events = run(client, model=listed["name"], text=MAIL)
        assert {"kind": "progress", "text": "summarising", "share": None, "step": "summarising", "name": ""} in events
        assert events[-1]["kind"] == "done", events[-1]
        trace = events[-1]["trace"]
        info = client.get(f"/api/traces/{trace}").json()
        assert info["output"]["text"] == summary.text
        pointer = len(info["layers"]) - 1
        assert info["layers"][pointer]["name"] == "pointer"
        shown = summary.trace()["pointer"].weights[0, 0].dense()
        assert row(client, trace, layer=pointer, query=0).flatten().allclose(shown[0], atol=1e-6)
        blocked = EDIT | {"kind": "block", "layer": pointer, "query": 0, "key": int(shown[0].argmax())}
        changed = client.post(f"/api/traces/{trace}/edit", json={"edits": [blocked]}).json()
        assert changed["kl"] > 0, changed
        assert isinstance(changed["afterText"], str)
        assert run(client, model=listed["name"], text=" ")[-1]["code"] == "text.empty"


def test_a_model_without_a_pointer_runs_too(tmp_path):
    with opened(tmp_path / "kept", run_of(copy=False)) as (client, _):
        name = client.get("/api/models").json()[-1]["name"]
        assert run(client, model=name, text=MAIL)[-1]["kind"] == "done"
