"""Everyday sentences: text and attribution from two data sets."""

import gzip
import json

import pytest

from regard.data.everyday import CAPTIONS, TATOEBA, write_everyday
from regard.errors import DataError

ROWS = [
    "Hi.\t嗨。\tCC-BY 2.0 (France) Attribution: tatoeba.org #538123 (CM) & #891077 (Martha)",
    "Hi.\t你好。\tCC-BY 2.0 (France) Attribution: tatoeba.org #538123 (CM) & #4857568 (musclegirlxyp)",
    "Run.\t你用跑的。\tCC-BY 2.0 (France) Attribution: tatoeba.org #4008918 (JSakuragi) & #3748344 (egg0073)",
    "Stop!\t停！\tCC-BY 2.0 (France) Attribution: tatoeba.org #448320 (JSakuragi) & #448322 (GlossaMatik)",
]


def put_packed(path, lines):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(lines).encode()))


def test_sentences_are_whole_distinct_and_attributed(tmp_path):
    put_packed(tmp_path / CAPTIONS, [json.dumps({"en": "a man;  a tree "}), json.dumps({"en": "Two dogs."})])
    put_packed(tmp_path / TATOEBA, ROWS)
    card = write_everyday(tmp_path, tmp_path / "out/all.txt")
    assert (tmp_path / "out/all.txt").read_text() == "A man; a tree.\nTwo dogs.\nHi.\nRun.\nStop!\n"
    assert json.loads((tmp_path / "out/all.json").read_text()) == card
    assert [one["texts"] for one in card["data"]] == [2, 3]
    assert card["data"][1]["attribution"] == ["JSakuragi", "CM"]  # who wrote most stands first


def test_a_sentence_without_its_author_is_refused(tmp_path):
    put_packed(tmp_path / CAPTIONS, [json.dumps({"en": "a man"})])
    put_packed(tmp_path / TATOEBA, [ROWS[0], "Hi.\t嗨。"])
    with pytest.raises(DataError, match="line 2: the third column names no author"):
        write_everyday(tmp_path, tmp_path / "all.txt")
