"""Paragraphs and the titles of their articles: which are taken, as plain text, and in one part only."""

import gzip
import json

import pytest

from regard.data import reading, titles
from tests.shared import MISSING_DATA, SHARED

FILLER = " ".join(f"word{at}" for at in range(titles.LEAST))


def article(title, *paragraphs):
    return f" \n = {title} = \n \n" + "".join(f" {one} \n" for one in paragraphs) + " \n = = Notes = = \n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "wikitext2").mkdir()
    (tmp_path / "squad").mkdir()
    parts = {
        "train": article("Go ( game )", f"Go is a game . {FILLER}", "Go , the game .", f"It is old . {FILLER}")
        + article("The <unk>", f"The <unk> . {FILLER}")
        + article("Held out", f"This is held out . {FILLER}"),
        "validation": article("Held out", f"What is held , stays out . {FILLER}"),
        "test": article("Role @-@ play", f"Of role @-@ play <unk> . {FILLER}"),
    }
    for name, text in parts.items():
        (tmp_path / "wikitext2" / titles.PARTS[name]).write_bytes(gzip.compress(text.encode()))
    asked = [{"title": "Red_fox", "paragraphs": [{"context": f"A red fox. {FILLER}", "qas": []}]}]
    for path, data in ((reading.TRAIN, asked), (reading.DEV, [])):
        (tmp_path / path).write_bytes(gzip.compress(json.dumps({"data": data}).encode()))
    return tmp_path


def test_a_paragraph_is_taken_if_it_is_long_and_holds_the_title(folder, tmp_path):
    out = tmp_path / "out"
    assert titles.write_titles(folder, out) == {"train": 2, "validation": 1, "test": 1}
    rows = {name: [json.loads(line) for line in (out / f"{name}.jsonl").open()] for name in titles.PARTS}
    assert rows["train"] == [
        {"text": f"Go is a game. {FILLER}", "summary": "Go (game)"},
        {"text": f"A red fox. {FILLER}", "summary": "Red fox"},
    ]
    assert rows["test"] == [{"text": f"Of role-play. {FILLER}", "summary": "Role-play"}]
    card = json.loads((out / "card.json").read_text())["data"]
    assert [one["texts"] for one in card] == [2, 1]
    assert all("CC BY-SA" in one["licence"] for one in card)


def test_other_names_stand_in_text_and_title_alike():
    row = {"text": "In 1981 the Red fox of Rome met a fox near Lake Como. Foxes are red.", "summary": "Red fox of 1981"}
    first, *others = titles.rename_titles([row], 3, seed=2)
    assert first == row
    assert others == list(titles.rename_titles([row], 3, seed=2))[1:]
    for one in others:
        red, fox, of, year = one["summary"].split()
        assert of == "of"
        assert year.isdigit()
        assert year != "1981"
        assert {red.lower(), fox.lower()} <= {"rome", "lake", "como", "red"}
        wanted = f"In {year} the {red} {fox} of Rome met a {fox} near Lake Como. Foxes are {red.lower()}."
        assert one["text"] == wanted


def test_a_title_that_stands_too_late_is_not_asked_for():
    late = " ".join(["word"] * titles.READ) + " Go"
    assert list(titles.pair_titles(iter([("Go", late), ("Go", f"Go {late}")]))) == [
        {"text": f"Go {late}", "summary": "Go"}
    ]


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "data").exists(), reason=MISSING_DATA)
def test_no_article_of_the_real_files_is_in_two_parts(tmp_path):
    assert titles.write_titles(SHARED / "data", tmp_path) == {"train": 30640, "validation": 152, "test": 211}
    parts = [
        {json.loads(line)["summary"] for line in list((tmp_path / f"{name}.jsonl").open())[::every]}
        for name, every in {"train": 1 + titles.RENAMED, "validation": 1, "test": 1}.items()  # each as it was first
    ]
    assert not parts[0] & parts[1]
    assert not (parts[0] | parts[1]) & parts[2]
