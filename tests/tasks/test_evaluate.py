"""Scores of a translator: what sacrebleu says itself, whatever file the sentences come from, and bad files."""

import gzip
import json
from types import SimpleNamespace

import pytest
import sacrebleu

from regard.data.grammar import sentences
from regard.errors import ConfigError, DataError, ModelError
from regard.tasks.evaluate import evaluate
from regard.tasks.sequences import Copy, SequenceSettings
from regard.tasks.text_translator import TextTranslator, open_translator
from regard.tasks.translate import Translate, TranslateSettings
from regard.tasks.translation_scores import PARTS
from regard.training.fit import fit
from tests.tasks.tiny import SIZES, copied, run_of

PAIRS = [("The cat sat.", "猫坐着。"), ("Two dogs ran.", "两只狗跑了。"), ("Hi.", "嗨。"), ("Hi.", "你好。")]


def tsv(path, pairs=PAIRS):
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path


def test_the_scores_are_those_of_sacrebleu():
    found = evaluate("en-zh-grammar", part="test", count=7, beams=2, samples=3)
    made = sentences(7, seed=open_translator("en-zh-grammar").facts["settings"]["seed"], part="test")
    texts = [one.text for one in open_translator("en-zh-grammar").translate([pair.source for pair in made], beams=2)]
    right = [[pair.target for pair in made]]
    assert found["bleu"] == pytest.approx(sacrebleu.corpus_bleu(texts, right, tokenize="zh").score, abs=1e-3)
    assert found["chrf"] == pytest.approx(sacrebleu.corpus_chrf(texts, right).score, abs=1e-3)
    assert found["exact"] == sum(text == pair.target for text, pair in zip(texts, made)) / 7
    assert found["samples"][2] == {"source": made[2].source, "written": texts[2], "right": made[2].target}
    assert "tok:zh" in found["signatures"][0]
    assert (found["sentences"], found["beams"], len(found["samples"])) == (7, 2, 3)
    assert found["alignment"]["error_rate"] == min(found["alignment"]["by_layer"])
    assert found["alignment"]["error_rate"] < 0.5 * found["alignment"]["straight_line"]


@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_the_grammar_can_be_asked_for(part):
    found = evaluate(str(run_of()), part=part, count=3, beams=1)
    assert found["samples"][0]["source"] == sentences(1, seed=0, part=part)[0].source
    assert 0 <= found["alignment"]["error_rate"] <= 1


def test_a_model_without_attention_has_no_alignment():
    assert evaluate(str(run_of("none")), count=2, beams=1)["alignment"] is None


def test_files_of_all_kinds_give_the_same_scores_and_no_alignment(tmp_path):
    one = tsv(tmp_path / "pairs.tsv")
    (tmp_path / "pairs.jsonl").write_text("\n".join(json.dumps({"source": a, "target": b}) for a, b in PAIRS))
    (tmp_path / "pairs.tsv.gz").write_bytes(gzip.compress(one.read_bytes()))
    for side, name in enumerate(("en", "zh")):
        (tmp_path / f"two.{name}").write_text("".join(pair[side] + "\n" for pair in PAIRS))
    files = (one, tmp_path / "pairs.jsonl", tmp_path / "pairs.tsv.gz", f"{tmp_path}/two.en, {tmp_path}/two.zh")
    found = [evaluate(str(run_of()), data=str(file), beams=1) for file in files]
    assert found.count(found[0]) == 4
    assert found[0]["sentences"] == 3  # of which one has two right answers
    assert "alignment" not in found[0]


def test_one_of_several_right_answers_is_enough(tmp_path):
    text = open_translator("en-zh-grammar").translate(["The cat sat on the mat."], beams=1)[0].text
    pairs = [("The cat sat on the mat.", "别的话。"), ("The cat sat on the mat.", text)]
    found = evaluate("en-zh-grammar", data=str(tsv(tmp_path / "two.tsv", pairs)), beams=1)
    assert (found["bleu"], found["exact"]) == (pytest.approx(100), 1.0)


def test_the_language_is_seen_from_all_answers_not_from_the_first(tmp_path):
    found = evaluate(str(run_of()), data=str(tsv(tmp_path / "ok.tsv", [("OK!", "OK!"), *PAIRS])), beams=1)
    assert "tok:zh" in found["signatures"][0]


@pytest.mark.parametrize("lower", [True, False])
def test_lower_compares_small_letters_and_the_cased_score_stands_beside(tmp_path, monkeypatch, lower):
    monkeypatch.setattr(
        TextTranslator, "translate", lambda self, texts, beams: [SimpleNamespace(text="Die Katze saß dort.")]
    )
    data = tsv(tmp_path / "a.tsv", [("The cat sat there.", "die katze saß dort.")])
    found = evaluate(str(run_of()), data=str(data), lowercase=lower)
    assert (found["bleu"] == pytest.approx(100), found["exact"]) == (lower, float(lower))
    assert f"case:{'lc' if lower else 'mixed'}" in found["signatures"][0]
    assert ("bleu_cased" in found) == lower
    if lower:
        cased = sacrebleu.corpus_bleu(["Die Katze saß dort."], [["die katze saß dort."]]).score
        assert found["bleu_cased"] == pytest.approx(cased, abs=1e-3)


def test_a_run_of_another_task_is_judged_as_its_own_validation_does(tmp_path):
    settings = SequenceSettings(
        width=12, heads=3, layers=1, hidden=14, examples=90, validation_size=7, batch_tokens=70, most=5, symbols=6,
        warmup_steps=2, steps=4, eval_every=4, save_every=4,
    )  # fmt: skip
    result = fit(Copy(), settings, tmp_path / "run")
    found = evaluate(str(tmp_path / "run"))
    assert found["task"] == "copy"
    assert found["scores"] == pytest.approx(result.scores)


# Bad input


def test_an_unknown_part_is_refused_with_those_there_are(tmp_path):
    with pytest.raises(
        ConfigError, match="no part 'tset' of the grammar; choose one of validation, test, unseen, long"
    ):
        evaluate(str(run_of()), part="tset")
    run = copied(tmp_path)
    manifest = run / "model" / "manifest.json"
    facts = json.loads(manifest.read_text())
    pairs = tsv(tmp_path / "some.tsv", [(f"Sentence {i}.", f"第{i}句。") for i in range(9)])
    facts["settings"] |= {"data": str(pairs), "validation_size": 2}
    manifest.write_text(json.dumps(facts))
    assert evaluate(str(run), beams=1)["sentences"] == 2
    with pytest.raises(ConfigError, match="this run keeps no part 'test'; name a file with --data"):
        evaluate(str(run), part="test")
    pairs.unlink()
    with pytest.raises(DataError, match=r"there is no file '.*some.tsv'"):
        evaluate(str(run))


def test_settings_of_a_newer_version_are_told_as_such(tmp_path):
    run = copied(tmp_path)
    manifest = run / "model" / "manifest.json"
    facts = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(facts | {"settings": facts["settings"] | {"quantum": 3}}))
    with pytest.raises(ModelError, match="trained by another version of regard: there is no setting 'quantum'"):
        evaluate(str(run))


BAD = {
    "unequal": ({"a.en": b"one\ntwo\n", "a.zh": b"\xe4\xb8\x80\n"}, r"a\.en has 2 lines, but .*a\.zh has 1"),
    "UTF-16": ({"a.tsv": "Hi.\t嗨。\n".encode("utf-16")}, "is a UTF-16 file, but UTF-8 text was wanted"),
    "Latin-1": ({"a.tsv": b"Hi.\tfine\ncaf\xe9\tno\n"}, r"line 2: byte 12 \(0xe9\) is no UTF-8"),
    "NUL": ({"a.tsv": b"Hi.\tfine\na\0b\tno\n"}, "line 2: byte 10 is NUL"),
    "no tab": ({"a.tsv": b"Hi. fine\n"}, "line 1: there is 1 column"),
    "nothing": ({"a.tsv": b""}, "holds no pairs"),
    "blank": ({"a.tsv": b"\n \n\t\n"}, "holds no pairs"),
    "unknown ending": ({"a.doc": b"Hi.\tfine\n"}, r"a\.doc does not say what it holds"),
    "three": ({"a": b"", "b": b"", "c": b""}, "data names 3 files; give one, or two as source,target"),
}


@pytest.mark.parametrize(("files", "said"), BAD.values(), ids=BAD)
def test_bad_files_are_refused_in_training_and_in_evaluation(tmp_path, files, said):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    named = ",".join(str(tmp_path / name) for name in files)
    for attempt in (
        lambda: evaluate(str(run_of()), data=named),
        lambda: Translate().prepare(TranslateSettings(data=named, validation_size=1), tmp_path),
    ):
        with pytest.raises((DataError, ConfigError), match=said):
            attempt()


@pytest.mark.parametrize("named", ["en-fr", "nowhere.tsv", "", "a.en,"])
def test_data_that_is_not_there_is_refused_with_what_may_be_given(named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"there is no file '.*' to read sentences from; give 'grammar', a \.tsv"):
        Translate().prepare(TranslateSettings(data=named), tmp_path)


def test_training_leaves_out_empty_lines_and_sentences_of_10_000_words(tmp_path):
    some = [(f"Sentence number {i}.", f"第{i}句。") for i in range(12)]
    odd = [("", "空"), ("empty", " "), ("word " * 10_000, "长"), ("long", "字" * 10_000), ("piece " * 300, "长")]
    data = tsv(tmp_path / "some.tsv", [*some[:5], *odd, *some[5:]])
    settings = TranslateSettings(**SIZES | {"validation_size": 3, "data": str(data), "max_length": 200})
    work = Translate().prepare(settings, tmp_path)
    assert (len(work.train) + work.train.dropped) + (len(work.validation) + work.validation.dropped) == 13
    assert work.train.dropped + work.validation.dropped == 1
    assert max(part.lengths["source"].max() for part in (work.train, work.validation)) <= 200
