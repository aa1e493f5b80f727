"""The two translators that come with the package: their scores, their alignments, and the sentence that all quote."""

import pytest
import torch

from regard.models import embedded
from regard.tasks.ship import COUNT, score_parts
from regard.tasks.text_translator import open_translator

NAMES = ("en-zh", "en-zh-recurrent")
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
