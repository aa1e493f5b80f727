"""`regard classify` as a user meets it: texts, files, pipes, which words mattered, and bad input."""

import io
import json
import random
import re
import shutil
import sys
from itertools import chain

import numpy as np
import pytest
import torch

from regard.models import store
from regard.models.open.load_model import load_model
from regard.tasks.classify import Classify, ClassifySettings
from regard.training.fit import fit
from tests.cli.run import run

MOODS = {"good": ("great", "fine", "lovely"), "bad": ("awful", "poor"), "so-so": ("plain", "long", "slow", "odd")}
SIZES = {
    "steps": 18, "width": 24, "heads": 3, "layers": 2, "hidden": 20, "vocab_size": 300, "max_length": 19, "lr": 0.01,
    "batch_tokens": 500, "warmup_steps": 3, "dropout": 0.0, "validation_size": 11, "eval_every": 18, "save_every": 18,
}  # fmt: skip
TEXT, OTHER = "the film was really great fun", "an awful story"
CUT = "longer than 19 tokens, so its beginning and its end are read"
CLASSES = ["bad", "good", "so-so"]  # sorted, as a model numbers them


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a run that came to its end, in "run"."""
    folder, draw = tmp_path_factory.mktemp("films"), random.Random(5)
    rows = []
    for _ in range(90):
        label = draw.choice(CLASSES)
        words = ["the", draw.choice(["film", "story", "end"]), "was", *["really"] * draw.randrange(3)]
        rows.append(f"{label}\t{' '.join([*words, draw.choice(MOODS[label])])}\n")
    (folder / "films.tsv").write_text("label\tsentence\n" + "".join(rows))
    torch.set_num_threads(1)
    settings = ClassifySettings(data=str(folder / "films.tsv"), **SIZES)
    assert fit(Classify(), settings, folder / "run").code == 0
    return folder


@pytest.fixture(scope="module")
def ask(home):
    return PlainClassifier(home / "run")


class PlainClassifier:
    """The same weights, asked one text at a time, in loops."""

    def __init__(self, folder):
        self.model, self.tokenizer = load_model(folder)[:2]
        self.model.eval()

    def pieces(self, text):
        """The ids of each word of a text; a space stands before the first one, too."""
        return [self.tokenizer.encode(word, add_special_tokens=False).ids for word in text.split()]

    @torch.no_grad()
    def logits(self, ids):
        first, *_, last = self.tokenizer.encode("x").ids
        return self.model(torch.tensor([[first, *ids, last]]))[0].double()

    def shares(self, text):
        return self.logits(chain.from_iterable(self.pieces(text))).softmax(-1).tolist()

    def leave_one_out(self, text):
        pieces = self.pieces(text)
        whole = self.logits(chain.from_iterable(pieces)).softmax(-1)
        chosen = int(whole.argmax())
        odds = [np.log(p / (1 - p)) for p in [whole[chosen].item()]]
        for at in range(len(pieces)):
            p = self.logits(chain.from_iterable(pieces[:at] + pieces[at + 1 :])).softmax(-1)[chosen].item()
            odds.append(np.log(p / (1 - p)))
        return [odds[0] - other for other in odds[1:]]

    def ranked(self, text):
        return sorted(zip(CLASSES, self.shares(text)), key=lambda pair: -pair[1])

    def line(self, text):
        """A text as a line of a file is answered."""
        name, share = self.ranked(text)[0]
        return f"{name}\t{share:.4f}\t{text}"


def classify(monkeypatch, capsys, home, *words, stdin=None):
    if stdin is not None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    named = [] if "--model" in words else ["--model", str(home / "run")]
    return run(monkeypatch, capsys, "classify", *map(str, words), *named)


def test_classes_are_ranked_and_each_word_has_three_numbers(monkeypatch, capsys, home, ask):
    code, printed, said = classify(monkeypatch, capsys, home, TEXT)
    first, blank, head, *rows = printed.splitlines()
    assert (code, said, blank) == (0, "", "")
    assert first == "   ".join(f"{name} {share:.3f}" for name, share in ask.ranked(TEXT))
    assert re.split(r"\s{2,}", head.strip()) == ["attention", "gradient × attention", "leave-one-out"]
    words = [row.split() for row in rows[: rows.index("")]]
    assert [row[0] for row in words] == TEXT.split()
    numbers = np.array([[float(cell) for cell in row if re.fullmatch(r"[+-]?\d+\.\d\d", cell)] for row in words])
    np.testing.assert_allclose(numbers[:, 2], ask.leave_one_out(TEXT), atol=0.006)
    notes = rows[rows.index("") + 1 :]
    special = int(re.search(r"; (\d+)% of it falls on special tokens", notes[0])[1])
    assert numbers[:, 0].sum() + special / 100 == pytest.approx(1, abs=0.03)
    assert notes[1].startswith("gradient × attention: ")
    assert notes[2].startswith("leave-one-out: log-odds of the class with the word, less those without it")
    assert notes[3:] == [f"How well attention says what matters here: regard evaluate {home / 'run'} --explain"]


def test_json_holds_what_plain_loops_over_the_same_weights_find(monkeypatch, capsys, home, ask):
    code, printed, said = classify(monkeypatch, capsys, home, TEXT, OTHER, "--json")
    assert (code, said) == (0, "")
    for text, row in zip((TEXT, OTHER), map(json.loads, printed.splitlines()), strict=True):
        assert (row["text"], row["class"], row["cut"]) == (text, ask.ranked(text)[0][0], False)
        assert list(row["probabilities"]) == CLASSES
        np.testing.assert_allclose(list(row["probabilities"].values()), ask.shares(text), atol=2e-6)
        assert [word["word"] for word in row["words"]] == text.split()
        found = [word["leave_one_out"] for word in row["words"]]
        np.testing.assert_allclose(found, ask.leave_one_out(text), atol=5e-5)
        assert 0 < sum(word["attention"] for word in row["words"]) < 1
        assert row["attention_of"].startswith("the pooling layer")


def test_without_words_only_classes_are_printed(monkeypatch, capsys, home, ask):
    code, printed, said = classify(monkeypatch, capsys, home, TEXT, OTHER, "--no-words")
    wanted = ["   ".join(f"{name} {share:.3f}" for name, share in ask.ranked(text)) for text in (TEXT, OTHER)]
    assert (code, said, printed.split("\n\n")) == (0, "", [*wanted, ""])
    rows = classify(monkeypatch, capsys, home, TEXT, "--no-words", "--json")[1]
    assert json.loads(rows).keys() == {"text", "class", "cut", "unknown", "probabilities"}


@pytest.mark.parametrize("way", ["file", "dash"])
def test_lines_keep_their_places_and_blank_ones_stay_blank(monkeypatch, capsys, home, ask, tmp_path, way):
    lines = b"\xef\xbb\xbf" + f"{TEXT}\r\n\n  \n{OTHER}".encode()
    (tmp_path / "lines.txt").write_bytes(lines)
    words = ["--file", tmp_path / "lines.txt"] if way == "file" else ["-"]
    code, printed, said = classify(monkeypatch, capsys, home, *words, stdin=lines)
    assert (code, said, printed) == (0, "", f"{ask.line(TEXT)}\n\n\n{ask.line(OTHER)}\n")
    rows = [
        json.loads(row) for row in classify(monkeypatch, capsys, home, *words, "--json", stdin=lines)[1].splitlines()
    ]
    assert [row["class"] for row in rows] == [ask.ranked(TEXT)[0][0], None, None, ask.ranked(OTHER)[0][0]]
    assert (rows[1], "words" in rows[0]) == (
        {"text": "", "class": None, "cut": False, "unknown": 0, "probabilities": {}},
        False,
    )


def test_words_of_lines_end_with_what_the_columns_are_also_after_a_blank_line(monkeypatch, capsys, home, tmp_path):
    (tmp_path / "lines.txt").write_text(f"{TEXT}\n{OTHER}\n\n")
    code, printed, _ = classify(monkeypatch, capsys, home, "--file", tmp_path / "lines.txt", "--words")
    assert (code, printed.count("leave-one-out\n")) == (0, 2)
    assert [line.split(":")[0] for line in printed.splitlines()[-4:-1]] == [
        "attention", "gradient × attention", "leave-one-out"
    ]  # fmt: skip


def test_of_a_text_that_is_too_long_the_beginning_and_the_end_are_read(monkeypatch, capsys, home, ask, tmp_path):
    long = " ".join(["great"] + ["film"] * 30 + ["awful", "story"])
    ids = list(chain.from_iterable(ask.pieces(long)))
    room = SIZES["max_length"] - 2
    head = room // 4
    wanted = ask.logits([*ids[:head], *ids[len(ids) - room + head :]]).softmax(-1).tolist()
    code, printed, said = classify(monkeypatch, capsys, home, long, "--json")
    row = json.loads(printed)
    assert (code, said, row["cut"], row["text"]) == (0, f"the text: {CUT}\n", True, long)
    np.testing.assert_allclose(list(row["probabilities"].values()), wanted, atol=2e-6)
    (tmp_path / "lines.txt").write_text(f"{TEXT}\n{long}\n")
    _, printed, said = classify(monkeypatch, capsys, home, "--file", tmp_path / "lines.txt")
    assert (said, printed.count("\n")) == (f"{tmp_path / 'lines.txt'}, line 2: {CUT}\n", 2)
    assert "…" in printed.splitlines()[1]


@pytest.mark.parametrize(
    ("stdin", "sentence"),
    [
        (b"caf\xe9\n", r"regard: standard input, line 2: byte 3 \(0xe9\) is no UTF-8; convert it first"),
        (b"a\0b\n", "regard: standard input, line 2: byte 1 is NUL, which no text has"),
    ],
)
def test_what_came_before_a_line_that_is_no_text_is_answered(monkeypatch, capsys, home, ask, stdin, sentence):
    code, printed, said = classify(monkeypatch, capsys, home, "-", stdin=TEXT.encode() + b"\n" + stdin)
    assert (code, printed, said.count("\n")) == (2, ask.line(TEXT) + "\n", 1)
    assert re.match(sentence, said)


@pytest.mark.parametrize("name", ["x.svg", "x.png", "x.PDF", "x.html"])
def test_shaded_words_are_written_as_the_name_says(monkeypatch, capsys, home, ask, tmp_path, name):
    to = tmp_path / name
    texts = [TEXT, "<i>x awful"] if name == "x.html" else [TEXT]
    code, printed, said = classify(monkeypatch, capsys, home, *texts, "--to", to)
    assert (code, said) == (0, f"wrote {to}\n")
    assert printed.startswith(ask.ranked(TEXT)[0][0])
    start = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF", ".html": b"<!doctype html>"}
    assert to.read_bytes().startswith(start[to.suffix.lower()])
    if name == "x.html":
        page = to.read_text()
        assert ("<i>" in page, "&lt;" in page) == (False, True)
        assert page.count(">awful<") == 3
        numbers = re.findall(r'title="([+-][\d.]+)"', page)[: 3 * len(TEXT.split())]
        np.testing.assert_allclose([*map(float, numbers[-len(TEXT.split()) :])], ask.leave_one_out(TEXT), atol=6e-4)


def test_see_in_a_pipe_is_refused_in_one_sentence(monkeypatch, capsys, home):
    code, printed, said = classify(monkeypatch, capsys, home, TEXT, "--see")
    assert (code, printed) == (2, "")
    assert said == (
        "regard: the explorer cannot be opened here, because what is printed here goes to no terminal; "
        "leave --see out, or write --to a file\n"
    )


def test_see_in_a_terminal_opens_the_explorer_and_the_run_can_be_edited(monkeypatch, capsys, home, ask, tmp_path):
    from regard.app.protocol.messages import EditSpec
    from regard.app.runners.monitor import RunMonitor

    served = []
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("BROWSER", "true")
    monkeypatch.setattr("regard.cli.explore.in_terminal", lambda: True)
    monkeypatch.setattr("regard.cli.explore.read_bundle", lambda: "export {}")
    monkeypatch.setattr("regard.app.serving.serve", lambda studio, at, **how: served.append(studio))
    assert classify(monkeypatch, capsys, home, TEXT, OTHER, "--see", "--no-words")[0] == 0
    [studio] = served
    first, second = studio.traces.list_traces()
    assert [first.text, second.text] == [TEXT, OTHER]
    classes = studio.traces.find(first.id).card.output["classes"]
    assert [one["name"] for one in classes] == [name for name, _ in ask.ranked(TEXT)]
    assert [one["share"] for one in classes] == pytest.approx([share for _, share in ask.ranked(TEXT)], abs=2e-6)
    assert studio.edit(first.id, [EditSpec(kind="mute", layer=0)], RunMonitor()).kl > 0
    studio.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no text was given; give TEXT, - to read standard input, or --file PATH"),
        (("",), "there is nothing to classify: a text is empty; give some words"),
        ((TEXT, " \n"), "there is nothing to classify: a text is empty"),
        ((TEXT, "-"), "2 texts were given, and one of them is -; give texts, or - alone"),
        ((TEXT, "--file", "good.txt"), "both a text and the file good.txt were given; give one of them"),
        (("caf\udce9",), r"'caf\udce9' holds bytes that are no UTF-8; give a text of whole characters"),
        (("--file", "nowhere.txt"), "there is no file nowhere.txt; give one that exists"),
        (("--file", "."), ". cannot be read (Is a directory)"),
        (("--file", "empty.txt"), "empty.txt holds no text, so there is nothing to classify; give some words"),
        (("--file", "latin.txt"), "latin.txt, line 2: byte 7 (0xe9) is no UTF-8; save the file as UTF-8"),
        (("--file", "nul.txt"), "nul.txt, line 2: byte 3 is NUL"),
        (("-",), "standard input holds no text, so there is nothing to classify"),
        ((TEXT, "--to", "x.gif"), "'x.gif' ends in none of .html, .svg, .png, .pdf"),
        ((TEXT, "--to", "nowhere/x.svg"), "the folder 'nowhere' for 'x.svg' does not exist"),
        ((TEXT, OTHER, "--to", "x.svg"), "'x.svg' holds one text, but 2 came; write .html, or give one text"),
        (("--file", "good.txt", "--to", "x.svg"), "'x.svg' holds one text, but 2 came"),
        ((TEXT, "--model", "nowhere"), "or train one: regard train classify"),
        ((TEXT, "--model", "writer"), "'writer' is a GPT that says nothing of classes; name a classifier, or train"),
        ((TEXT, "--model", "filler"), "'filler' is a Bert that says nothing of classes"),
        ((TEXT, "--model", "good.txt"), "good.txt"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(monkeypatch, capsys, home, tmp_path, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.txt").write_text(f"{TEXT}\n{OTHER}\n")
    (tmp_path / "empty.txt").write_text(" \n\n")
    (tmp_path / "latin.txt").write_bytes("fine\nidée\n".encode("latin-1"))
    (tmp_path / "nul.txt").write_bytes(b"ab\n\0c\n")
    code, printed, told = classify(monkeypatch, capsys, home, *words, stdin=b"\n \n")
    assert (code, printed.strip()) == (2, "")
    assert (told[:8], told.count("\n"), said in told) == ("regard: ", 1, True), told
    assert not list(tmp_path.glob("x*"))


def test_a_translator_is_no_classifier_and_a_copy_without_names_is_not_whole(monkeypatch, capsys, home, tmp_path):
    said = classify(monkeypatch, capsys, home, TEXT, "--model", "en-zh-grammar")[2]
    assert "is a Translator that says nothing of classes" in said
    where = rename(home, tmp_path, ["bad", "good"])
    said = classify(monkeypatch, capsys, home, TEXT, "--model", where)[2]
    assert "has 3 classes, but names of 2; give a whole copy of it" in said


def rename(home, to, classes):
    """A copy of the model whose classes have other names."""
    folder = shutil.copytree(home / "run" / "model", to / "model")
    about = json.loads((folder / store.MANIFEST).read_text())
    (folder / store.MANIFEST).write_text(json.dumps(about | {"classes": classes}))
    return folder


@pytest.mark.parametrize(
    "way", [(), ("--no-words",), ("--json",), ("--file",)], ids=["words", "classes", "json", "lines"]
)
def test_no_control_character_of_a_text_or_a_class_reaches_the_terminal(monkeypatch, capsys, home, tmp_path, way):
    evil = "a \x1b[31m\x9b\u202e film"
    where = rename(home, tmp_path, ["b\x1b[32mad", "g\u202eood", "s\x9bo"])
    (tmp_path / "lines.txt").write_text(evil)
    words = ["--file", tmp_path / "lines.txt"] if way == ("--file",) else [evil, *way]
    code, printed, said = classify(monkeypatch, capsys, home, *words, "--model", where)
    assert (code, said) == (0, "")
    assert not {"\x1b", "\x9b", "\u202e"} & set(printed)
    if way == ("--json",):
        row = json.loads(printed)
        assert row["text"] == evil
        assert set(row["probabilities"]) == {"b\x1b[32mad", "g\u202eood", "s\x9bo"}


def test_evaluate_draws_names_of_classes_as_harmless_as_texts(monkeypatch, capsys, home, tmp_path):
    where = rename(home, tmp_path, ["b\x1b[32mad", "g\u202eood", "s\x9bo"])
    (tmp_path / "few.jsonl").write_text('{"text": "fine", "label": "g\\u202eood"}\n')
    code, printed, _ = run(monkeypatch, capsys, "evaluate", str(where), "--data", str(tmp_path / "few.jsonl"))
    assert (code, "b␛[32mad" in printed, "g⟨U+202E⟩ood" in printed) == (0, True, True)
    assert not {"\x1b", "\x9b", "\u202e"} & set(printed)


def test_what_the_model_does_not_know_is_counted_and_is_a_word_like_others(monkeypatch, capsys, tmp_path):
    text = "a gripping 这 film 🎬"  # neither sign is in the vocabulary of the model that comes with the package
    code, printed, said = run(monkeypatch, capsys, "classify", text, "--json", "--words")
    found = json.loads(printed)
    words = [one["word"] for one in found["words"]]
    assert (code, found["unknown"], words) == (0, 2, ["a", "gripping", "[UNK]", "film", "[UNK]"])
    assert said.strip() == "the text: 2 of 5 tokens are unknown to the model"
    whole = load_model("sentiment")
    ids = whole.tokenizer.encode(text).ids
    with torch.no_grad():
        odds = [whole.model(torch.tensor([[*ids[:at], *ids[at + 1 :]]]))[0].double() for at in (3, 5)]
        all_of_it = whole.model(torch.tensor([ids]))[0].double()
    for one, without in zip((found["words"][2], found["words"][4]), odds):
        chosen = int(all_of_it.argmax())
        drop = (all_of_it[chosen] - all_of_it[1 - chosen]) - (without[chosen] - without[1 - chosen])
        assert one["leave_one_out"] == pytest.approx(float(drop), abs=2e-4)

    (tmp_path / "lines.txt").write_text("a film\n这\n")
    code, printed, said = run(monkeypatch, capsys, "classify", "--file", str(tmp_path / "lines.txt"))
    assert (code, len(printed.splitlines())) == (0, 2)
    assert said.strip() == f"{tmp_path / 'lines.txt'}, line 2: 1 of 1 tokens is unknown to the model"
