"""Sentences that share a translation, in parts that share no sentence."""

from collections import Counter

import pytest

from regard.data.paraphrases import pair_paraphrases, split_paraphrases, write_paraphrases
from regard.data.split import fold_text
from regard.data.text_pairs import read_text_pairs
from tests.shared import MISSING_DATA, SHARED


def test_each_two_sentences_with_one_translation_are_a_pair_once(tmp_path):
    rows = [("I'm OK.", "我很好。"), ("I am fine.", "我很好!"), ("I'm ok", "我很好"), ("Hi.", "嗨。"),
            ("I am fine.", "我不错。"), ("I'm OK.", "我不错。"), ("Not bad.", "我不错。")]  # fmt: skip
    (tmp_path / "a.tsv").write_text("".join(f"{en}\t{zh}\tby somebody\n" for en, zh in rows))
    found = [pair[:2] for pair in pair_paraphrases(tmp_path / "a.tsv")]
    assert found == [("I'm OK.", "I am fine."), ("I am fine.", "Not bad."), ("I'm OK.", "Not bad.")]


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "data").exists(), reason=MISSING_DATA)
def test_the_real_parts_share_no_sentence_and_name_their_authors(tmp_path):
    parts = split_paraphrases(SHARED / "data", Counter())
    texts = [{fold_text(text) for pair in part for text in pair[:2]} for part in parts[:3]]
    assert not texts[0] & texts[1] | texts[0] & texts[2] | texts[1] & texts[2]
    assert not (texts[1] | texts[2]) & {fold_text(text) for text in parts.sentences}
    assert (len(parts.validation), len(parts.test)) == (400, 600)
    assert len(parts.train) > 3500
    card = write_paraphrases(SHARED / "data", tmp_path)
    assert [pair[:2] for pair in read_text_pairs([tmp_path / "test.tsv"])] == [pair[:2] for pair in parts.test]
    assert len(card["data"][1]["attribution"]) > 800
