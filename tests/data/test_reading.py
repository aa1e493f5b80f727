"""SQuAD in other parts: no article in two of them, and every passage and question to learn from as a line."""

import gzip
import json

import pytest

from regard.data import reading
from regard.data.lines import lines_of
from regard.data.squad import read_squad
from regard.errors import DataError
from tests.shared import MISSING_DATA, SHARED


def article(name, questions):
    asked = [
        {"id": f"{name}-{at}", "question": f"Who is {name}\n{at}?", "answers": [{"text": name, "answer_start": 4}]}
        for at in range(questions)
    ]
    return {"title": name, "paragraphs": [{"context": f"The {name}  sat\nthere.", "qas": asked}]}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "squad").mkdir()
    parts = {
        reading.TRAIN: [article("cat", 2), article("dog", 1)],
        reading.DEV: [article(f"bird{n}", 3) for n in range(15)],
    }
    for path, articles in parts.items():
        (tmp_path / path).write_bytes(gzip.compress(json.dumps({"data": articles}).encode()))
    return tmp_path


def test_articles_are_learned_from_validate_or_test(folder, tmp_path):
    out = tmp_path / "out"
    assert reading.write_reading(folder, out) == {"train": 3 + 3 * 3, "validation": 2 * 3, "test": 10 * 3}
    names = [
        [one["title"] for one in json.loads((out / f"{part}.json").read_text())["data"]]
        for part in ("train", "validation", "test")
    ]
    assert names[0] == ["cat", "dog", "bird0", "bird1", "bird2"]
    assert names[1] == ["bird3", "bird4"]
    assert names[2] == [f"bird{n}" for n in range(5, 15)]
    assert len(read_squad(out / "train.json").questions) == 12
    lines = lines_of(out / "text.txt")
    assert lines[:3] == ["The cat sat there.", "Who is cat 0?", "Who is cat 1?"]
    assert len(lines) == 5 + 12
    card = json.loads((out / "card.json").read_text())["data"][0]
    assert card["texts"] == 12
    assert "CC BY-SA 4.0" in card["licence"]


def test_another_file_is_refused_in_a_sentence(folder, tmp_path):
    for content in (b"[]", b"no json", b'{"version": "1.1"}'):
        (folder / reading.TRAIN).write_bytes(gzip.compress(content))
        with pytest.raises(DataError, match=r"first44\.json\.gz is no SQuAD file; give one as it is published"):
            reading.write_reading(folder, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "data").exists(), reason=MISSING_DATA)
def test_the_parts_of_the_real_files_share_no_passage(tmp_path):
    assert reading.write_reading(SHARED / "data", tmp_path) == {"train": 20_000, "validation": 459, "test": 1988}
    parts = [set(read_squad(tmp_path / f"{name}.json").passages) for name in ("train", "validation", "test")]
    assert not parts[0] & parts[1]
    assert not parts[0] & parts[2]
    assert not parts[1] & parts[2]
