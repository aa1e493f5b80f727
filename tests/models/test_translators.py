"""The translators that come with the package: their scores, their alignments, and the sentence that all quote."""

import pytest
import torch

from regard.data.everyday_pairs import write_everyday_pairs
from regard.models import embedded
from regard.tasks.evaluate import evaluate
from regard.tasks.ship import COUNT, score_file, score_parts
from regard.tasks.text_translator import open_translator
from tests.shared import MISSING_DATA, SHARED

NAMES = ("en-zh-grammar", "en-zh-grammar-recurrent")
CAT = "The cat sat on the mat."


@pytest.mark.parametrize("name", NAMES)
def test_the_cat_sits_on_the_mat_and_each_word_looks_at_its_own(name):
    found = open_translator(name).translate([CAT])[0]
    assert found.text.removesuffix("。") == "猫坐在垫子上"
    rows, columns, weights = found.alignment()
    mat = weights[[rows.index("垫"), rows.index("子")]].mean(0)  # one word of two characters
    looked = [columns[int(line.argmax())] for line in (weights[rows.index("猫")], weights[rows.index("坐")], mat)]
    assert looked == ["cat", "sat", "mat"]
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(rows)))


@pytest.mark.parametrize("name", NAMES)
def test_the_scores_in_the_manifest_are_those_of_the_model(name):
    manifest = embedded.describe(name)
    again = score_parts(name)
    for part, told in manifest["scores"].items():
        assert again[part] == pytest.approx(told, abs=0.3), (part, COUNT)
    assert manifest["scores"]["test"]["bleu"] > 90
    assert manifest["alignment"]["error_rate"] < 0.5 * manifest["alignment"]["straight_line"]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_small_and_says_how_it_was_made(name):
    size = sum(path.stat().st_size for path in embedded.folder(name).iterdir())
    assert size <= 3_000_000
    assert embedded.describe(name)["command"].startswith("regard train translate")


@pytest.mark.parametrize("name", NAMES)
def test_batches_of_sentences_come_out_as_single_ones(name):
    texts = [CAT, "Do you like tea?", "My sister bought three red apples at the market yesterday."]
    opened = open_translator(name)
    for beams in (1, 4):
        together = [one.text for one in opened.translate(texts, beams=beams)]
        assert together == [opened.translate([text], beams=beams)[0].text for text in texts]


# The one that is used unless another is named: it learned everyday sentences.

EVERYDAY = "en-zh"
TATOEBA = SHARED / "data" / "tatoeba-cmn-eng" / "cmn.tsv.gz"


def test_the_everyday_translator_is_small_and_says_what_it_learned_from():
    manifest = embedded.describe(EVERYDAY)
    assert sum(path.stat().st_size for path in embedded.folder(EVERYDAY).iterdir()) <= 8_000_000
    assert manifest["weights"]["dtype"] == "int8"
    assert manifest["scores"]["test"]["bleu"] >= 34
    assert "tok:zh" in manifest["scores"]["test"]["signatures"][0]
    assert manifest["data"][0]["licence"].startswith("CC BY 2.0 FR")
    assert len(manifest["data"][0]["attribution"]) > 1000


def test_the_everyday_translator_asks_for_the_station():
    texts = ["Where is the train station?", "I don't understand.", "Thank you for your help."]
    station, lost, thanks = (one.text for one in open_translator(EVERYDAY).translate(texts))
    assert "火车站" in station
    assert "哪" in station
    assert "不" in lost
    assert "谢谢" in thanks


@pytest.fixture(scope="module")
def held_out(tmp_path_factory):
    """The test part of Tatoeba, as the command in the Makefile makes it."""
    if not TATOEBA.exists():
        pytest.skip(MISSING_DATA)
    folder = tmp_path_factory.mktemp("pairs")
    write_everyday_pairs(SHARED / "data", folder)
    return folder / "test.tsv"


def test_sentences_that_it_never_saw_are_translated_as_well_as_promised(held_out, tmp_path):
    few = tmp_path / "few.tsv"
    few.write_text("".join(held_out.read_text("utf-8").splitlines(keepends=True)[::7]), "utf-8")
    score = evaluate(EVERYDAY, data=str(few), beams=1, samples=0, alignment=False)
    assert score["sentences"] > 140
    assert score["bleu"] > 28  # of a seventh, greedy; all of them with five beams stand in the manifest


@pytest.mark.slow
def test_the_score_of_the_everyday_translator_is_the_one_in_its_manifest(held_out):
    told = embedded.describe(EVERYDAY)["scores"]["test"]
    again = score_file(EVERYDAY, held_out)["test"]
    assert again["sentences"] == told["sentences"]
    assert again["bleu"] == pytest.approx(told["bleu"], abs=0.3)
