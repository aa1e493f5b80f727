"""Scores against sacrebleu's own functions."""

import sacrebleu

from regard.tasks.score import score_texts, tokenizer_for

WRITTEN = ["the cat sat on the mat .", "He has two books.", "a dog"]
RIGHT = [["The cat sat on the mat."], ["He has two books.", "He owns two books."], ["the dog", "a big dog", "a dog"]]


def test_scores_are_those_of_sacrebleu_with_several_references():
    columns = [["The cat sat on the mat.", "He has two books.", "the dog"]]
    columns += [[None, "He owns two books.", "a big dog"], [None, None, "a dog"]]
    for lower in (False, True):
        found = score_texts(WRITTEN, RIGHT, lower=lower)
        theirs = sacrebleu.metrics.BLEU(lowercase=lower).corpus_score(WRITTEN, columns)
        assert abs(found.bleu - theirs.score) < 1e-3
        assert f"case:{'lc' if lower else 'mixed'}" in found.bleu_signature
        assert "version:" in found.chrf_signature


def test_chinese_is_scored_by_characters():
    found = score_texts(["猫坐在桌子上。"], [["猫坐在垫子上。"]], tokenizer="zh")
    assert abs(found.bleu - sacrebleu.corpus_bleu(["猫坐在桌子上。"], [["猫坐在垫子上。"]], tokenize="zh").score) < 1e-3
    assert "tok:zh" in found.bleu_signature
    assert tokenizer_for(["猫坐在垫子上。"]) == "zh"
    assert tokenizer_for(["Die Katze sitzt."]) == "13a"
