"""A model that answers, behind the server: a question and a passage in one text."""

import pytest

from regard.app.protocol.refusal import Refusal
from regard.app.runners.answerers import split_question
from regard.models import embedded
from tests.app.served import EDIT, opened, run
from tests.tasks.questions import run_of

TEXT = "Emil sat on the roof at dawn."


def list_answerers(client):
    """The models that answer, but for the embedded one."""
    models = client.get("/api/models").json()
    return [one for one in models if "mat?\n" in one["example"] and one["name"] not in embedded.names()]


def test_a_run_is_served_and_answers_and_is_watched_and_edited(tmp_path):
    with opened(tmp_path / "kept", run_of()) as (client, _):
        listed = list_answerers(client)
        [name] = [one["name"] for one in listed]
        assert (listed[0]["reads"], listed[0]["writes"], listed[0]["tasks"]) == ("text", None, ["read"])
        done = run(client, model=name, text=f"Who sat?\n{TEXT}")[-1]
        assert (done["kind"], done["text"]) == ("done", "Emil")
        about = client.get(f"/api/traces/{done['trace']}").json()
        assert about["output"]["text"] == "Emil"
        assert run(client, model=name, text=listed[0]["example"])[-1]["kind"] == "done"
        changed = client.post(f"/api/traces/{done['trace']}/edit", json={"edits": [EDIT]}).json()
        assert changed["kl"] > 0
        assert changed["beforeText"] == "Emil"
        one_place = EDIT | {"kind": "block", "query": 1, "key": 2}
        again = client.post(f"/api/traces/{done['trace']}/edit", json={"edits": [one_place]}).json()
        assert again["beforeText"] == "Emil"
        failed = run(client, model=name, text="Emil sat")[-1]
        assert (failed["kind"], failed["code"]) == ("failed", "text.question")


def test_the_window_that_holds_the_answer_is_watched(tmp_path):
    passage = f"{'At noon. ' * 30}Emil sat on the roof."
    with opened(tmp_path / "kept", run_of()) as (client, studio):
        [name] = [one["name"] for one in list_answerers(client)]
        done = run(client, model=name, text=f"Who sat?\n{passage}")[-1]
        trace = studio.traces.trace_of(studio.traces.find(done["trace"]))
        shown = trace.layers[0].queries[0].shown
        assert done["text"] in "".join(shown).replace("·", " ")
        assert len(shown) < 60


@pytest.mark.parametrize(
    ("text", "question", "passage"),
    [
        ("Who sat?\nThe cat. Why?\nYes.", "Who sat?", "The cat. Why?\nYes."),
        ("Who sat? The cat. Why? Yes.", "Who sat?", "The cat. Why? Yes."),
        ("谁坐着？猫坐着。", "谁坐着？", "猫坐着。"),
        ("\n name the cat \r\n\r\n Mia is a cat\n", "name the cat", "Mia is a cat"),
    ],
)
def test_the_first_line_or_what_ends_in_a_question_mark_is_the_question(text, question, passage):
    assert split_question(text) == (question, passage)


@pytest.mark.parametrize("text", ["The cat sat.", "Who sat?", "Who sat?\n", "?"])
def test_a_text_without_both_is_refused(text):
    with pytest.raises(Refusal, match="give the question in the first line, and the passage below it"):
        split_question(text)
