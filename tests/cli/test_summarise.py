"""`regard summarise` as a user meets it: files, pipes, pages, JSON, and bad input."""

import gzip
import io
import json
import re
import sys

import pytest
import torch

from regard.cli.demo_summarise import TEXT
from regard.tasks.text_summariser import open_summariser
from regard.trace.file import load
from tests.cli.run import run
from tests.tasks.tiny import run_of as translator_run
from tests.tasks.tiny_summaries import draw_mails, run_of, write_mails

MAIL = draw_mails(1, seed=3)[0]["body"]


def summarise(monkeypatch, capsys, *words, where=None, stdin=None):
    if stdin is not None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    return run(monkeypatch, capsys, "summarise", *map(str, words), "--model", str(where or run_of()))


def wanted(text=MAIL, *, beams=5, copy=True):
    return open_summariser(run_of(copy=copy)).summarise([text], beams=beams)[0]


def test_a_text_a_file_and_a_pipe_give_the_same_summary(monkeypatch, capsys, tmp_path):
    (tmp_path / "mail.txt").write_text(MAIL)
    (tmp_path / "mail.txt.gz").write_bytes(gzip.compress(MAIL.encode()))
    ways = [(MAIL,), (tmp_path / "mail.txt",), (tmp_path / "mail.txt.gz",), ("-",)]
    said = [summarise(monkeypatch, capsys, *words, stdin=MAIL.encode()) for words in ways]
    assert {code for code, _, _ in said} == {0}
    assert len({printed for _, printed, _ in said}) == 1
    assert said[0][1].split("\n")[0] == wanted().text


def test_each_word_says_its_gate_and_where_it_was_copied_from(monkeypatch, capsys):
    one = wanted()
    code, printed, said = summarise(monkeypatch, capsys, MAIL)
    first, blank, head, *rows = printed.rstrip("\n").split("\n")
    assert (code, first, blank, head.split()) == (0, one.text, "", ["word", "g", "came", "from"])
    for word, row in zip(one.words(), rows, strict=True):
        where = "the vocabulary" if word.position is None else f"copied, token {word.position}: {word.context}"
        assert row == f"{word.text:<{head.index('g')}}{word.g:.2f}  {where}"
    read = len(one.shown.source) - 1
    cut = f"the model reads the first {read} of the {one.tokens} tokens of this text\n"
    assert said == (cut if one.tokens > read else "")


def test_a_text_that_is_cut_is_said_to_be(monkeypatch, capsys):
    _, _, said = summarise(monkeypatch, capsys, "please find the agreement " * 40)
    assert re.fullmatch(r"the model reads the first 18 of the \d+ tokens of this text\n", said)


def test_json_holds_what_is_printed(monkeypatch, capsys):
    code, printed, _ = summarise(monkeypatch, capsys, MAIL, "--json", "--beams", 2)
    found, one = json.loads(printed), wanted(beams=2)
    assert (code, found["text"], found["tokens"]) == (0, one.text, one.tokens)
    assert found["read"] == len(one.shown.source) - 1
    for word, mine in zip(one.words(), found["words"], strict=True):
        assert mine["text"] == word.text
        assert mine["g"] == pytest.approx(word.g, abs=1e-6)
        assert mine["copied"] == pytest.approx(word.copied, abs=1e-6)
        assert (mine["position"], mine["context"]) == (word.position, word.context)


def test_a_model_that_copies_nothing_says_its_summary_and_no_places(monkeypatch, capsys):
    where = run_of(copy=False)
    assert summarise(monkeypatch, capsys, MAIL, where=where)[1] == wanted(copy=False).text + "\n"
    assert json.loads(summarise(monkeypatch, capsys, MAIL, "--json", where=where)[1])["words"] is None


@pytest.mark.parametrize("ending", ["html", "svg", "png", "trace"])
def test_its_map_is_written_as_the_name_says(monkeypatch, capsys, tmp_path, ending):
    to, one = tmp_path / f"map.{ending}", wanted()
    code, _, said = summarise(monkeypatch, capsys, MAIL, "--to", to)
    assert (code, said.splitlines()[-1]) == (0, f"wrote {to}")
    if ending == "trace":
        pointer = load(to)["pointer"]
        assert torch.equal(pointer.weights.dense(), one.trace()["pointer"].weights.dense())
    elif ending == "html":
        page = to.read_text()
        assert "<title>What each word was copied from</title>" in page
        last = len(one.trace().layers) - 1
        assert f"#/layer={last}\\u0026head=0" in page, "the pointer is shown first"
    else:
        assert to.read_bytes()[:5] in (b"<?xml", b"\x89PNG\r")


def test_see_in_a_pipe_draws_the_pointer_and_says_why(monkeypatch, capsys):
    code, printed, said = summarise(monkeypatch, capsys, MAIL, "--see")
    assert code == 0
    assert "the map is drawn here, because what is printed here goes to no terminal" in said
    assert "<eos> ← " in printed


def test_without_a_model_the_one_that_comes_with_the_package_copies_a_name_that_it_has_never_seen(monkeypatch, capsys):
    code, printed, said = run(monkeypatch, capsys, "summarise", TEXT)
    assert (code, said) == (0, "")
    title, _, _, *words = printed.splitlines()
    assert title == "Hurricane Isidora"
    assert [line.split()[0] for line in words] == ["Hurricane", "Isidora"]
    assert all("copied, token" in line for line in words)


def test_bad_input_is_told_in_one_sentence(monkeypatch, capsys, tmp_path):
    (tmp_path / "empty.txt").write_text(" \n\n")
    (tmp_path / "latin.txt").write_bytes("un café\nbrûlé\n".encode("latin-1"))
    (tmp_path / "nul.txt").write_bytes(b"a line\nb\0d\n")
    cases = {
        ("nowhere.txt",): "there is no file 'nowhere.txt'; give one that exists, or the text itself",
        (tmp_path / "none" / "mail",): "there is no file",
        (" ",): "the text is empty",
        (tmp_path / "empty.txt",): "empty.txt holds no text",
        (tmp_path / "latin.txt",): "latin.txt, line 1: byte 6 (0xe9) is no UTF-8",
        (tmp_path / "nul.txt",): "nul.txt, line 2: byte 8 is NUL",
        (MAIL, "--to", tmp_path / "map.doc"): "ends in none of",
        (MAIL, "--beams", 0): "",
    }
    for words, sentence in cases.items():
        code, printed, said = summarise(monkeypatch, capsys, *words)
        assert (code, printed) == (2, ""), words
        assert sentence in said
        assert "Traceback" not in said
    for data, sentence in ((b"", "standard input is empty"), (b"a\0b", "standard input, line 1: byte 1 is NUL")):
        assert sentence in summarise(monkeypatch, capsys, "-", stdin=data)[2]


def test_other_models_are_refused_and_summarisers_by_other_commands(monkeypatch, capsys):
    assert (
        "holds a translator, which summarises nothing"
        in summarise(monkeypatch, capsys, MAIL, where=translator_run())[2]
    )
    _, _, said = run(monkeypatch, capsys, "see", "a text", "--model", str(run_of()))
    assert said.endswith(f'see both with: regard summarise "…" --model {run_of()} --see\n')
    _, _, said = run(monkeypatch, capsys, "generate", "a text", "--model", str(run_of()))
    assert "does not go on with a text; summarise with: regard summarise" in said


def test_evaluate_prints_the_scores_or_json(monkeypatch, capsys, tmp_path):
    test = write_mails(tmp_path / "test.jsonl.gz", 12, seed=5)
    words = ("evaluate", str(run_of()), "--data", str(test), "--beams", "1", "--samples", "2")
    code, printed, _ = run(monkeypatch, capsys, *words)
    assert code == 0
    assert re.search(
        r"ROUGE-1 [\d.]+  ROUGE-2 [\d.]+  ROUGE-L [\d.]+  \(12 texts, \d+ of them cut to 18 tokens, greedy\)", printed
    )
    assert "new n-grams, not in the text, written:  1: " in printed
    code, printed, _ = run(monkeypatch, capsys, *words, "--json")
    assert json.loads(printed)["scores"].keys() == {"rouge1", "rouge2", "rougeL"}
    for data, sentence in (("none.jsonl", "there is no file 'none.jsonl'"), (str(tmp_path), "there is no file")):
        assert sentence in run(monkeypatch, capsys, "evaluate", str(run_of()), "--data", data)[2]


def test_evaluate_says_which_lines_of_a_file_it_left_out(monkeypatch, capsys, tmp_path):
    lines = ['{"body": "We meet on Monday.", "subject": "Meeting"}', "", '{"body": "All is said.", "subject": ""}']
    (tmp_path / "mails.jsonl").write_text("\n".join(lines))
    words = ("evaluate", str(run_of()), "--data", str(tmp_path / "mails.jsonl"), "--beams", "1")
    code, printed, _ = run(monkeypatch, capsys, *words)
    assert (code, "(1 texts, greedy)" in printed) == (0, True)
    assert "  left out: 2 lines (2, 3) without a text or a summary\n" in printed


def test_training_says_what_was_cut_and_the_next_command(monkeypatch, capsys, tmp_path):
    mails = write_mails(tmp_path / "mails.jsonl", 40)
    sizes = "--steps 1 --width 8 --heads 2 --layers 1 --hidden 8 --vocab-size 400 --validation-size 4 --max-source 9"
    words = ("--data", str(mails), "--out", str(tmp_path / "run"), *sizes.split(), "--no-copy", "--eval-samples", "2")
    code, printed, said = run(monkeypatch, capsys, "train", "summarise", *words)
    assert code == 0, said
    assert re.search(r"regard: \d+ of 36 texts were cut to their first 9 tokens\n", said)
    assert f"Next: regard summarise letter.txt --model {tmp_path / 'run'}" in printed


def test_a_folder_is_not_summarised_as_the_word_that_it_is_named(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "papers").mkdir()
    code, printed, said = run(monkeypatch, capsys, "summarise", "papers")
    assert (code, printed) == (2, "")
    assert said == "regard: 'papers' is a folder, but one text was wanted; give a file, or the text itself\n"
