"""Rated sentences: read from the distribution that holds them, and none of those that a model is tested on."""

import io
import json
import tarfile

import pytest

from regard.data import opinions
from regard.data.lines import lines_of
from regard.errors import DataError
from tests.shared import MISSING_DATA, SHARED

FILMS = [
    (f"{mood} film number {'abcdefghij'[at]} with much more to say of {at} of them", rating)
    for at in range(9)
    for mood, rating in (("A splendid", 2.5), ("A dreadful", -3.0))
]
PRODUCTS = [("It came in a box &amp; that was it.", 0.1), ("broken \ufffd from the first day", -2.0), ("Good.", 1.9)]
CUT = "a dreadful film number b with much else"
LEXICON = "awful\t-2.0\t0.9\t[]\n:-)\t1.3\t0.4\t[]\n$:\t-1.5\t0.8\t[]\nfine\t0.8\t0.7\t[]\n"


def pack(files):
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return held.getvalue()


def rows(texts):
    return "".join(f"{number}\t{rating}\t{text}\n" for number, (text, rating) in enumerate(texts, 1)).encode()


@pytest.fixture
def sdist(tmp_path):
    inner = {f"x/{kind}_GroundTruth.txt": b"" for kind in opinions.KINDS}
    inner |= {"x/movieReviewSnippets_GroundTruth.txt": rows(FILMS)}
    inner |= {"x/amazonReviewSnippets_GroundTruth.txt": rows(PRODUCTS)}
    path = tmp_path / "v.tar.gz"
    path.write_bytes(pack({f"v/{opinions.INNER}": pack(inner), f"v/{opinions.LEXICON}": LEXICON.encode()}))
    return path


def write_parts(tmp_path, monkeypatch, sdist):
    (tmp_path / "sst2").mkdir()
    for name, (text, label) in zip(opinions.HELD, ((FILMS[0][0].lower(), 1), (CUT, 0))):
        (tmp_path / name.removesuffix(".gz")).write_text(f"label\tsentence\n{label}\t{text}\n")
    monkeypatch.setattr(opinions, "HELD", [name.removesuffix(".gz") for name in opinions.HELD])
    monkeypatch.setattr(opinions, "VALIDATION", 4)
    opinions.write_opinions(sdist, tmp_path, tmp_path / "out")
    return {part: list(lines_of(tmp_path / f"out/{part}.tsv"))[1:] for part in ("train", "validation", "test")}


def test_clear_ratings_become_labels_and_nothing_that_is_tested_on_is_learned_from(tmp_path, monkeypatch, sdist):
    parts = write_parts(tmp_path, monkeypatch, sdist)
    learned = [*parts["train"], *parts["validation"]]
    texts = {line.partition("\t")[2] for line in learned}
    wanted = {text for text, _ in FILMS} | {"Good.", "awful", "fine"}
    assert wanted - texts == {FILMS[at][0] for at in (0, 1, 3)}, "the same text, the same end, the same beginning"
    assert texts <= wanted
    assert all(line.startswith("positive" if "splendid" in line else "negative") for line in learned if "film" in line)
    assert len(parts["validation"]) == 4
    assert parts["test"] == [f"negative\t{CUT}"]


def test_the_card_counts_what_is_learned_from_and_names_its_licence(tmp_path, monkeypatch, sdist):
    parts = write_parts(tmp_path, monkeypatch, sdist)
    data, model = json.loads((tmp_path / "out/card.json").read_text())["data"]
    assert data["texts"] == len(parts["train"])
    assert data["licence"].startswith("MIT")
    assert model["texts"] == len(list(lines_of(tmp_path / "out/phrases.txt")))
    assert model["licence"] == "Apache-2.0"


def test_phrases_are_pieces_of_what_is_learned_from(tmp_path, monkeypatch, sdist):
    parts = write_parts(tmp_path, monkeypatch, sdist)
    phrases = list(lines_of(tmp_path / "out/phrases.txt"))
    assert len(phrases) == len(set(phrases)) > 30
    learned = [line.partition("\t")[2] for line in parts["train"]]
    assert all(any(f" {phrase} " in f" {text} " for text in learned) for phrase in phrases)
    assert {len(phrase.split()) for phrase in phrases} <= set(range(opinions.SHORTEST, opinions.LONGEST + 1))


def test_what_a_model_is_sure_of_is_kept(tmp_path):
    said = [("very good", "positive", 0.95), ("so so", "positive", 0.6), ("bad", "negative", 0.9)]
    rows = [{"text": text, "class": name, "probabilities": {name: share}} for text, name, share in said]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert opinions.keep_clear(tmp_path / "said.jsonl", tmp_path / "kept.tsv", 0.9) == 2
    assert list(lines_of(tmp_path / "kept.tsv")) == ["label\ttext", "positive\tvery good", "negative\tbad"]
    (tmp_path / "said.jsonl").write_text('{"text": "x"}\n')
    with pytest.raises(DataError, match="line 1: there is no text with a class"):
        opinions.keep_clear(tmp_path / "said.jsonl", tmp_path / "kept.tsv", 0.9)


@pytest.mark.parametrize("data", [b"", b"not a tar", pack({"v/else.txt": b"x"})], ids=["empty", "text", "other"])
def test_another_file_is_refused_in_a_sentence(tmp_path, data):
    (tmp_path / "v.tar.gz").write_bytes(data)
    with pytest.raises(DataError, match=r"v\.tar\.gz holds no ratings; give the source distribution of vaderSentiment"):
        list(opinions.read_ratings(tmp_path / "v.tar.gz"))


@pytest.mark.skipif(not (SHARED / "data").exists(), reason=MISSING_DATA)
def test_the_parts_of_sst2_have_their_published_sizes():
    held = [opinions.rows_of(SHARED / "data" / name) for name in opinions.HELD]
    assert [(len(part), sum(label == "positive" for label, _ in part)) for part in held] == [(872, 444), (1821, 909)]
