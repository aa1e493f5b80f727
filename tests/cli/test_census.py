"""`regard census`: which head does what, over texts and files of texts."""

import json

import pytest

from regard.models.open.open_model import open_model
from regard.trace.census.census import census
from tests.cli.run import run

TEXTS = ["A B C D A B C D", "the cat sees A B . the cat sees A B"]


def test_heads_are_listed_by_what_they_do_with_the_evidence(monkeypatch, capsys):
    code, printed, _ = run(monkeypatch, capsys, "census", "-m", "induction", *TEXTS)
    lines = printed.splitlines()
    assert code == 0
    assert lines[0] == "2 texts, 19 tokens: 8 heads."
    previous = lines.index(next(line for line in lines if line.startswith("previous-token: ")))
    assert lines[previous + 1].startswith("  blocks.0.attention, head 3: previous-token 0.9")
    assert "induction: 4" in lines
    assert lines[-1].endswith("heads reach no threshold. All measures of all heads: --json")


def test_json_is_the_census_itself(monkeypatch, capsys):
    _, printed, _ = run(monkeypatch, capsys, "census", "-m", "induction", *TEXTS, "--json")
    found = json.loads(printed)
    model, tokenizer = open_model("induction")
    wanted = census(model, TEXTS, tokenizer, progress=False).records()
    assert (found["texts"], found["tokens"]) == (2, 19)
    assert len(found["heads"]) == 8
    for ours, theirs in zip(found["heads"], wanted, strict=True):
        assert (ours["label"], ours["layer"]) == (theirs["label"], theirs["layer"])
        assert ours["induction"] == pytest.approx(theirs["induction"])


def test_a_file_has_one_text_on_each_line(monkeypatch, capsys, tmp_path):
    (tmp_path / "texts.txt").write_text("\n\n".join(TEXTS) + "\n")
    _, of_file, _ = run(
        monkeypatch, capsys, "census", "-m", "induction", "--file", str(tmp_path / "texts.txt"), "--json"
    )
    _, of_texts, _ = run(monkeypatch, capsys, "census", "-m", "induction", *TEXTS, "--json")
    assert json.loads(of_file) == json.loads(of_texts)


def test_longer_texts_are_cut(monkeypatch, capsys):
    _, printed, said = run(monkeypatch, capsys, "census", "-m", "induction", *TEXTS, "--length", "5")
    assert printed.startswith("2 texts, 10 tokens")
    assert "the text: truncated to the first 5 of 8 tokens (--length 5)\n" in said
    assert "the text: truncated to the first 5 of 11 tokens (--length 5)\n" in said


def test_only_the_first_of_several_processes_prints(monkeypatch, capsys):
    monkeypatch.setattr("regard.trace.census.census.processes", __import__("contextlib").nullcontext, raising=True)
    monkeypatch.setattr("regard.cli.census.census", lambda *_, **__: None)
    monkeypatch.setenv("RANK", "1")
    _, printed, _ = run(monkeypatch, capsys, "census", "-m", "induction", *TEXTS)
    assert printed.strip() == ""


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["--file", "none.txt"], "there is no file none.txt; give one that exists"),
        (["  "], "there is no text in what came"),
        (["hello"], "'hello' is not among the"),
    ],
    ids=["no file", "nothing", "unknown word"],
)
def test_bad_texts_are_refused_in_one_sentence(monkeypatch, capsys, texts, said):
    code, _, beside = run(monkeypatch, capsys, "census", "-m", "induction", *texts)
    assert code == 2
    assert f"regard: {said}" in beside
