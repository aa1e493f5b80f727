"""`regard perplexity`: how surprised a model is by a file."""

import gzip
import io
import json
import sys

import pytest

from regard.models.open.open_model import open_model
from regard.tasks.perplexity import perplexity
from tests.cli.run import run, saved

TEXT = "A B C D A B C D\nthe cat sees A B . the cat sees A B\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return str(path)


def test_json_is_the_function_itself(monkeypatch, capsys, file):
    code, printed, _ = run(monkeypatch, capsys, "perplexity", "-m", "induction", file, "--window", "9", "--json")
    facts = json.loads(printed)
    assert code == 0
    assert (facts.pop("model"), facts.pop("file")) == ("induction", file)
    assert facts == perplexity(*open_model("induction"), TEXT, window=9).to_json()


def test_sentences_say_how_it_was_measured(monkeypatch, capsys, file):
    code, printed, _ = run(monkeypatch, capsys, "perplexity", "-m", "induction", file, "--stride", "1000")
    assert code == 0
    lines = printed.splitlines()
    assert lines[0] == f"induction on {file}"
    assert lines[1].startswith("perplexity ")
    assert "18 tokens, 19 words (white space between them), 2 line ends" in lines[2]
    assert lines[2].endswith("windows of 1,024 tokens, stride 1,000; the first token is given")


def test_gzip_and_standard_input_are_the_same_text(monkeypatch, capsys, tmp_path, file):
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    found = []
    for name in (file, str(tmp_path / "text.txt.gz"), "-"):
        _, printed, _ = run(monkeypatch, capsys, "perplexity", "-m", "induction", name, "--json")
        found.append({key: value for key, value in json.loads(printed).items() if key != "file"})
    assert found[0] == found[1] == found[2]


def test_the_beginning_of_a_file_is_measured_alone(monkeypatch, capsys, file):
    _, printed, said = run(monkeypatch, capsys, "perplexity", "-m", "induction", file, "--length", "6", "--json")
    assert f"{file}: truncated to the first 6 of 19 tokens (--length 6)" in said
    facts = json.loads(printed)
    assert (facts["tokens"], facts["words"], facts["bytes"]) == (5, 6, 11)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.txt"], "there is no file none.txt; give one that exists"),
        (["{folder}"], "is a folder, but a file of text was wanted; give the file"),
        (["{empty}"], "holds no text; give a file with some words"),
        (["{unknown}"], "'hello' is not among the"),
        (["{text}", "--window", "4", "--stride", "5"], "stride is 5 and window 4"),
        (["{text}", "--window", "99999"], "window is 99,999, but the model takes at most 4,096 tokens"),
        (["{one}"], "the text has 1 tokens, and nothing to predict; give at least two words"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(monkeypatch, capsys, tmp_path, words, said):
    for name, text in (("empty", " \n"), ("unknown", "hello A"), ("text", TEXT), ("one", "A")):
        (tmp_path / name).write_text(text)
    places = {name: str(tmp_path / name) for name in ("empty", "unknown", "text", "one")} | {"folder": str(tmp_path)}
    given = [word.format(**places) for word in words]
    code, _, beside = run(monkeypatch, capsys, "perplexity", "-m", "induction", *given)
    assert code == 2
    assert beside.startswith("regard: ")
    assert said in beside
    assert beside.count("\n") == 1


def test_a_masked_model_has_no_perplexity(monkeypatch, capsys, tmp_path, file):
    from transformers import BertConfig, BertForMaskedLM

    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 3, "intermediate_size": 8}
    folder = saved(tmp_path / "bert", BertForMaskedLM, BertConfig, **sizes)
    code, _, beside = run(monkeypatch, capsys, "perplexity", "-m", str(folder), file)
    assert code == 2
    assert "so a text has no perplexity under it; give a causal language model" in beside
