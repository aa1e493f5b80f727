"""Runs of training: their steps, their scores, and what they showed."""

import json
import os

import pytest
import torch

from regard.app.studio.trainings import Training, Trainings
from regard.trace.file import load
from regard.training.lock import hold_lock
from tests.app.served import opened, row, run, said
from tests.tasks.tiny import copied, run_of


@pytest.fixture(scope="module")
def folder():
    return run_of()


@pytest.fixture(scope="module")
def client(tmp_path_factory, folder):
    with opened(tmp_path_factory.mktemp("kept"), folder) as (client, _):
        yield client


def test_a_run_is_listed_with_its_steps_and_scores(client, folder):
    (card,) = client.get("/api/trainings").json()
    assert (card["name"], card["steps"], card["examples"]) == (folder.name, [0, 1, 2, 5, 10, 16], 3)
    true = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    validated = [(line["step"], line["validation"]) for line in true if "validation" in line]
    for name in ("loss", "bleu", "chrf"):
        assert card["scores"][name] == [[step, scores[name]] for step, scores in validated]
    assert card["losses"] == [[line["step"], line["loss"]] for line in true if "loss" in line]
    assert [step for step, _ in card["losses"]][:4] == [1, 2, 5, 10]


def test_a_run_says_how_far_it_is_how_fast_and_by_which_settings(client, folder):
    (card,) = client.get("/api/trainings").json()
    assert [card[key] for key in ("task", "state", "step", "total", "ends")] == ["translate", "finished", 16, 16, None]
    assert card["best"] == {"score": "bleu", "value": card["scores"]["bleu"][-1][1], "step": 16}
    timing = [json.loads(line) for line in (folder / "timing.jsonl").read_text().splitlines()]
    told = {line["step"]: line["tokens_per_second"] for line in timing if "tokens_per_second" in line}
    assert dict(card["speeds"]) == told
    assert card["seconds"] == timing[-1]["seconds"]
    settings = json.loads((folder / "run.json").read_text())["settings"]
    assert card["settings"].keys() == settings.keys()
    assert [card["settings"][key] for key in ("width", "betas", "compile")] == ["24", "0.9,0.98", "no"]


def test_a_run_in_progress_says_when_it_ends_and_one_that_is_damaged_is_left_out(tmp_path):
    written = copied(tmp_path)
    with (written / "timing.jsonl").open("a") as file:
        file.write(json.dumps({"step": 16, "seconds": 9.0, "seconds_left": 100.0}) + "\n")
    with hold_lock(written):
        cards = [Trainings([written]).list_trainings()[0] for _ in range(2)]
    assert cards[0] == cards[1]  # a page that asks again has nothing to draw again
    assert (cards[0].state, cards[0].ends) == ("running", round((written / "timing.jsonl").stat().st_mtime + 100))
    trainings = Trainings([written])
    (one,) = trainings.all()
    (written / "history.jsonl").unlink()
    (written / "history.jsonl").mkdir()
    assert trainings.list_trainings() == []
    assert one.id


def test_a_long_history_is_drawn_by_some_of_its_points_and_its_last(tmp_path):
    written = copied(tmp_path)
    lines = [{"step": step, "loss": 1 / step} for step in range(1, 3002)] + [{"step": 3002, "loss": float("nan")}]
    (written / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    losses = Training(written).describe().losses
    assert 300 < len(losses) <= 401
    assert (losses[0], losses[-1]) == ((1, 1.0), (3001, 1 / 3001))
    assert [step for step, _ in losses] == sorted({step for step, _ in losses})
    (written / "history.jsonl").unlink()
    assert Training(written).describe().losses == []


def test_the_run_that_began_last_stands_in_front(tmp_path):
    for number, name in enumerate(("b", "c", "a")):
        folder = copied(tmp_path / "other").rename(tmp_path / name)
        os.utime(folder / "run.json", (number, number))
    assert [one.folder.name for one in Trainings(among=tmp_path).all()] == ["a", "c", "b"]


def test_an_example_opens_as_a_trace(client, folder):
    (card,) = client.get("/api/trainings").json()
    name = client.get(f"/api/trainings/{card['id']}/16/2").json()["trace"]
    info = client.get(f"/api/traces/{name}").json()
    assert info["name"] == f"{folder.name}, step 16"
    true = load(folder / "shown" / "step-000000016" / "2.trace").layers[0].weights[0, 1, 0]
    torch.testing.assert_close(row(client, name, 0, 1, 0), true)
    assert name not in [one["id"] for one in client.get("/api/traces").json()]
    assert client.get(f"/api/trainings/{card['id']}/16/2").json()["trace"] == name


def test_the_model_of_a_run_that_is_over_can_run(client, folder):
    assert folder.name in [model["name"] for model in client.get("/api/models").json()]
    assert run(client, model=folder.name, text="The cat sat on the mat.")[-1]["kind"] == "done"


@pytest.mark.parametrize("path", ["17/0", "16/3", "16/-1", "x/0", "16/0.5", "1e3/0", "16/../0", "..%2f16/0"])
def test_what_was_not_shown_is_refused(client, path):
    (card,) = client.get("/api/trainings").json()
    answer = client.get(f"/api/trainings/{card['id']}/{path}")
    assert answer.status_code == 404
    said(answer)


def test_an_unknown_run_is_refused(client):
    assert client.get("/api/trainings/0123456789abcdef/16/0").status_code == 404


def test_runs_in_a_folder_are_found_also_those_that_begin_later(tmp_path):
    with opened(tmp_path / "kept", runs=tmp_path) as (client, _):
        assert client.get("/api/trainings").json() == []
        copied(tmp_path)
        assert [one["name"] for one in client.get("/api/trainings").json()] == ["run"]


def test_a_trace_outside_of_the_run_is_not_opened(tmp_path):
    run_folder = copied(tmp_path)
    listed = run_folder / "shown" / "step-000000016" / "examples.json"
    rows = json.loads(listed.read_text())
    rows[0]["trace"] = "../../../secret.trace"
    listed.write_text(json.dumps(rows))
    (tmp_path / "secret.trace").write_bytes((listed.parent / "1.trace").read_bytes())
    (listed.parent / "1.trace").unlink()
    (listed.parent / "1.trace").symlink_to(tmp_path / "secret.trace")
    with opened(tmp_path / "kept", run_folder) as (client, _):
        (card,) = client.get("/api/trainings").json()
        for example in (0, 1):
            assert client.get(f"/api/trainings/{card['id']}/16/{example}").status_code == 404
        assert client.get(f"/api/trainings/{card['id']}/16/2").status_code == 200


def test_a_run_of_symbols_runs_on_symbols(tmp_path):
    from regard.tasks import task_named
    from regard.training.fit import fit

    task = task_named("reverse")
    sizes = {
        "steps": 1,
        "examples": 60,
        "validation_size": 6,
        "most": 5,
        "width": 8,
        "heads": 2,
        "layers": 1,
        "hidden": 9,
    }
    assert fit(task, task.settings(**sizes, warmup_steps=1), tmp_path / "reverse-1").code == 0
    with opened(tmp_path / "kept", tmp_path / "reverse-1") as (client, _):
        model = client.get("/api/models").json()[-1]
        assert (model["name"], model["tasks"][0]) == ("reverse-1", "translate")
        last = run(client, model="reverse-1", text=model["example"])[-1]
        assert last["kind"] == "done", last
        assert "the text is empty" in run(client, model="reverse-1", text="")[-1]["text"]
