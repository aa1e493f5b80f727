"""`regard answer` as a user meets it: passages, several questions, pages, and bad input."""

import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from regard.cli.answer_lines import shorten_around
from regard.tasks.text_answerer import open_answerer
from regard.trace.file import load
from tests.cli.run import run
from tests.tasks.questions import run_of

TEXT = "Dora sat on the sofa at night."


def answer(monkeypatch, capsys, *words, where=None):
    return run(monkeypatch, capsys, "answer", "--model", str(where or run_of()), *map(str, words))


def test_the_answer_is_marked_in_the_passage(monkeypatch, capsys):
    code, printed, said = answer(monkeypatch, capsys, "Who sat?", "--text", TEXT)
    lines = printed.splitlines()
    assert (code, said, lines[0]) == (0, "", "Who sat?")
    assert re.fullmatch(r"Dora  \(probability 0\.\d{3}, score -?\d+\.\d\d\)", lines[1])
    assert lines[2:] == ["»Dora« sat on the sofa at night."]


def test_several_questions_and_n_best_are_listed_in_turn(monkeypatch, capsys, tmp_path):
    (tmp_path / "passage.txt").write_text(TEXT.replace(" on", "\n\non"), encoding="utf-8-sig")
    words = ("Where?", "Who sat?", "--passage", tmp_path / "passage.txt", "--n-best", 3)
    code, printed, _ = answer(monkeypatch, capsys, *words)
    first, second = printed.split("\n\n")
    assert code == 0
    where, who = open_answerer(run_of()).answer(TEXT.replace(" on", "\n\non"), ["Where?", "Who sat?"])
    assert (first.splitlines()[1].split("  (")[0], who.text) == (where.text, "Dora")
    assert first.splitlines()[2] == TEXT.replace(where.text, f"»{where.text}«")
    assert [line[:4] for line in first.splitlines()[3:]] == [" 2. ", " 3. "]
    assert second.splitlines()[2] == "»Dora« sat on the sofa at night."


def test_json_holds_places_in_the_passage(monkeypatch, capsys):
    code, printed, said = answer(monkeypatch, capsys, "Who sat?", "When?", "--text", TEXT, "--n-best", 2, "--json")
    rows = [json.loads(line) for line in printed.splitlines()]
    wanted = open_answerer(run_of()).answer(TEXT, ["Who sat?", "When?"], n_best=2)
    assert (code, said, [row["question"] for row in rows]) == (0, "", ["Who sat?", "When?"])
    for row, one in zip(rows, wanted, strict=True):
        assert row["answer"] == one.text == TEXT[row["start"] : row["stop"]]
        assert (row["score"], row["probability"]) == pytest.approx((one.best.score, one.best.probability))
        assert [each["text"] for each in row["n_best"]] == [one.cut(span) for span in one.spans]
        assert row["null_score"] == pytest.approx(one.null_score)


def test_no_answer_is_said_so(monkeypatch, capsys):
    folder = run_of(impossible=True)
    code, printed, _ = answer(monkeypatch, capsys, "When?", "--text", "Bob sat on a hill.", where=folder)
    [line] = printed.splitlines()[1:]  # nothing is marked
    scored, least = map(
        float, re.fullmatch(r"no answer  \('.*' scores (\S+), but an answer must score (\S+)\)", line).groups()
    )
    assert (code, scored < least) == (0, True)
    asked = ("When?", "--text", "Bob sat on a hill.", "--n-best", "2")
    listed = answer(monkeypatch, capsys, *asked, where=folder)[1].splitlines()[2:]
    assert [row[:3] for row in listed] == [" 1.", " 2."]
    row = json.loads(answer(monkeypatch, capsys, "When?", "--text", "Bob sat on a hill.", "--json", where=folder)[1])
    assert (row["answer"], row["start"], row["score"]) == ("", None, None)


def test_a_passage_may_come_through_a_pipe(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert "»Dora«" in answer(monkeypatch, capsys, "Who sat?", "--text", "-")[1]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_in_a_terminal_the_answer_stands_in_reverse():
    import pty

    ours, theirs = pty.openpty()
    told = os.environ | {"TERM": "xterm-256color", "OMP_NUM_THREADS": "1"}
    told.pop("NO_COLOR", None)
    words = [sys.executable, "-m", "regard", "answer", "-m", str(run_of()), "--text", TEXT, "Where?"]
    with subprocess.Popen(words, stdout=theirs, env=told) as process:
        assert process.wait(120) == 0
    os.close(theirs)
    printed = os.read(ours, 65536).decode()
    os.close(ours)
    assert "\x1b[7mthe sofa\x1b[0m" in printed
    assert "»" not in printed


@pytest.mark.parametrize("name", ["map.svg", "map.png", "map.pdf", "map.trace"])
def test_a_map_is_written_as_its_ending_says(monkeypatch, capsys, tmp_path, name):
    to = tmp_path / name
    code, _, said = answer(monkeypatch, capsys, "Who sat?", "--text", TEXT, "--to", to)
    assert (code, said) == (0, f"wrote {to}\n")
    start = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}
    if to.suffix == ".trace":
        [one] = open_answerer(run_of()).answer(TEXT, ["Who sat?"])
        for kept, true in zip(load(to).layers, one.trace().layers, strict=True):
            np.testing.assert_allclose(kept.weights.dense(), true.weights.dense().detach(), atol=1e-7)
    else:
        assert to.read_bytes().startswith(start[to.suffix])


def test_a_page_opens_on_the_question_and_the_passage(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("regard.views.explorer.page.read_bundle", lambda: "export {}")
    monkeypatch.setattr("regard.views.explorer.bundle.read_bundle", lambda: "export {}")
    evil = "Who </script><img src=x> sat?"
    words = ("Who sat?", evil, "--text", TEXT, "--to", tmp_path / "page.html")
    assert answer(monkeypatch, capsys, *words)[0] == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    about = json.loads(page.split('id="about">')[1].split("</script>")[0])
    assert "<img" not in page
    assert [one["info"]["name"] for one in about["traces"]] == ["Who sat?", evil]
    assert about["traces"][0]["info"]["output"]["text"] == "Dora"
    [one] = open_answerer(run_of()).answer(TEXT, ["Who sat?"])
    layer, head, left, top, right, bottom = map(int, re.findall(r"\d+", about["first"]))
    (asked_from, asked_to), (from_, to) = one.row.asked, one.row.inside
    assert (left, top, right, bottom) == (from_, asked_from, to, asked_to)
    answer_at = slice(one.places[0], one.places[1] + 1)
    shares = [each.weights.dense()[0, :, top:bottom, answer_at].sum(-1).mean(-1) for each in one.trace().layers]
    assert float(shares[layer][head]) == pytest.approx(max(float(share.max()) for share in shares))


def test_see_in_a_pipe_draws_the_map_of_question_and_passage(monkeypatch, capsys):
    code, printed, said = answer(monkeypatch, capsys, "Who sat?", "--text", TEXT, "--see")
    assert (code, said.count("\n")) == (0, 1)
    assert "goes to no terminal; open it with: regard serve --model" in said
    lines = printed.splitlines()
    assert re.fullmatch(r"blocks\.\d\.attention, head \d: question → passage", lines[4])
    assert lines[5].split()[0] == "Dora"
    assert [line.split()[0].strip("·") for line in lines[6:9]] == ["Who", "sat", "?"]


def test_see_in_a_terminal_opens_the_explorer_and_the_run_can_be_edited(monkeypatch, capsys, tmp_path):
    from regard.app.protocol.messages import EditSpec
    from regard.app.runners.monitor import RunMonitor

    served = []
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("BROWSER", "true")
    monkeypatch.setattr("regard.cli.explore.in_terminal", lambda: True)
    monkeypatch.setattr("regard.cli.explore.read_bundle", lambda: "export {}")
    monkeypatch.setattr("regard.app.serving.serve", lambda studio, at, **how: served.append(studio))
    assert answer(monkeypatch, capsys, "Who sat?", "Where?", "--text", TEXT, "--see")[0] == 0
    [studio] = served
    first, second = studio.traces.list_traces()
    assert [first.text, second.text] == [f"Who sat?\n{TEXT}", f"Where?\n{TEXT}"]
    found = studio.edit(first.id, [EditSpec(kind="mute", layer=0)], RunMonitor())
    assert found.kl > 0
    assert found.before_text == "Dora"
    studio.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no question was given"),
        (("Who?",), "no passage was given; name its file with --passage, or give it with --text"),
        (("Who?", "--passage", "nowhere.txt"), "there is no file nowhere.txt"),
        (("Who?", "--passage", "nowhere.txt", "--text", "a"), "both a text and the file nowhere.txt were given"),
        (("", "--text", "a"), "the question is empty; give some words"),
        (("Who?", "--text", " "), "the text is empty"),
        (("caf\udce9?", "--text", "a"), "holds bytes that are no UTF-8; give a text of whole characters"),
        (("Who?", "Why?", "--text", "a", "--to", "x.svg"), "'x.svg' holds one map, but 2 questions came"),
        (("Who?", "--text", "a", "--to", "x.doc"), "'x.doc' ends in none of .html"),
    ],
)
def test_bad_input_is_one_sentence(monkeypatch, capsys, words, said):
    code, printed, told = answer(monkeypatch, capsys, *words)
    assert (code, printed) == (2, "")
    assert said in told
    assert told.startswith("regard: ")
    assert told.count("\n") == 1


def test_models_that_answer_nothing_are_refused(monkeypatch, capsys):
    for where, said in (("filler", "was not trained to answer"), ("nowhere", "train one with: regard train answer")):
        code, _, told = answer(monkeypatch, capsys, "Who?", "--text", "a", where=where)
        assert (code, said in told) == (2, True)


@pytest.mark.parametrize("length", [3, 9, 40, 400])
def test_long_passages_are_shortened_between_words(length):
    passage = "one two  three\nfour " * 9 + "ANSWER" + " five six-seven" * 9
    start = passage.index("ANSWER")
    before, after = shorten_around(passage, start, start + 6, room=length)
    whole = re.sub(r"\s+", " ", passage)
    assert (before.strip("…") + "ANSWER" + after.strip("…")) in whole
    assert max(len(before), len(after)) <= length + 1
    assert before.startswith("…") == after.endswith("…") == (length < 150)


def test_what_the_model_did_not_read_is_said(monkeypatch, capsys):
    words = ("answer", "--text", "这 Mia sings in Rome. 🎬", "Who " + "really " * 80 + "sings?", "谁?")
    code, printed, said = run(monkeypatch, capsys, *words, "--json")
    assert (code, len(printed.splitlines())) == (0, 2)
    first, long, foreign = said.splitlines()
    assert re.fullmatch(r"the passage: 2 of \d+ tokens are unknown to the model", first)
    assert re.fullmatch(r"the question has \d+ tokens: only the first 64 were read", long)
    assert foreign == "the question: 1 of 2 tokens is unknown to the model"
