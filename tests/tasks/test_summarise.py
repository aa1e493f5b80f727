"""Summaries as a task of the engine: it learns to copy, resumes to the bit, and is scored as it was exported."""

import json

import pytest
import torch
from torch.testing import assert_close

from regard.decode import DecodedText
from regard.errors import ConfigError, DataError, ModelError
from regard.models import store
from regard.models.read_tokenizer import TOKENIZER
from regard.tasks.evaluate import evaluate, task_of
from regard.tasks.rouge import score_rouge
from regard.tasks.summarise import PreparedSummaries, Summarise, SummariseSettings
from regard.tasks.text_summariser import open_summariser, quote
from regard.trace.file import load
from regard.training import checkpoint
from regard.training.fit import fit
from tests.tasks.tiny import run_of as translator_run
from tests.tasks.tiny_summaries import SIZES, copied, draw_mails, run_of, write_mails

LEARNER = SIZES | {
    "steps": 120, "width": 32, "hidden": 64, "lr": 5e-3, "batch_tokens": 1000, "dropout": 0.0, "label_smoothing": 0.0,
    "positions": "rotary", "eval_samples": 40, "validation_size": 40, "eval_every": 120, "save_every": 120,
    "warmup_steps": 0, "lr_schedule": "constant", "max_source": 40, "seed": 2,
}  # fmt: skip


def weights(folder, step):
    return checkpoint.read(folder / "checkpoints" / checkpoint.name_of(step)).tensors


def test_it_learns_in_seconds_to_copy_words_that_it_has_never_seen(tmp_path):
    mails = write_mails(tmp_path / "mails.jsonl", 800)
    scores = {}
    for copy in (True, False):
        settings = SummariseSettings(data=str(mails), copy=copy, **LEARNER)
        scores[copy] = fit(Summarise(), settings, tmp_path / f"{copy}").scores
    assert scores[True]["rouge1"] > 90, "most words are new, and go piece by piece"
    assert scores[True]["rouge1"] > 2 * scores[False]["rouge1"]
    assert scores[True]["loss"] < scores[False]["loss"] / 3
    known = mails.read_text()
    mail = next(one for one in draw_mails(99, seed=9) if not any(word in known for word in one["subject"].split()))
    words = open_summariser(tmp_path / "True").summarise([mail["body"]])[0].words()
    assert [word.text for word in words] == mail["subject"].split()
    assert all(word.copied > 0.9 and f"[{word.text}]" in word.context for word in words)


def test_a_run_that_was_resumed_ends_in_the_same_bits(tmp_path):
    mails = write_mails(tmp_path / "mails.jsonl", 80)
    settings = SummariseSettings(data=str(mails), **SIZES)
    fit(Summarise(), settings, tmp_path / "whole")
    fit(Summarise(), settings.model_copy(update={"steps": 4}), tmp_path / "run")
    fit(Summarise(), settings, tmp_path / "run", resume=True)
    ours, theirs = (weights(tmp_path / name, 8) for name in ("run", "whole"))
    assert_close(ours, theirs, rtol=0, atol=0)
    assert (tmp_path / "run" / "history.jsonl").read_text().splitlines()[-1] in (
        tmp_path / "whole" / "history.jsonl"
    ).read_text()


@pytest.mark.parametrize("copy", [True, False])
def test_parts_of_a_batch_add_up_with_their_gradients(tmp_path, copy):
    mails = write_mails(tmp_path / "mails.jsonl", 80)
    prepared = PreparedSummaries(SummariseSettings(data=str(mails), copy=copy, **SIZES | {"dropout": 0.0}), tmp_path)
    model, rows = prepared.model.double(), prepared.batches(0)[0]

    def gradients(parts):
        model.zero_grad()
        losses = [prepared.loss(model, prepared.collate(part)) for part in parts]
        sum(loss.sum for loss in losses).backward()
        return sum(loss.count for loss in losses), [parameter.grad.clone() for parameter in model.parameters()]

    whole, parts = gradients([rows]), gradients([*prepared.parts(rows, 3), rows[:0]])
    assert whole[0] == parts[0] == prepared.weight(rows)
    assert_close(whole[1], parts[1], rtol=1e-9, atol=1e-12)


def test_what_counts_in_training_is_cross_entropy_smoothing_and_coverage(tmp_path):
    mails = write_mails(tmp_path / "mails.jsonl", 80)
    prepared = PreparedSummaries(
        SummariseSettings(data=str(mails), **SIZES | {"dropout": 0.0, "coverage_loss": 0.7}), tmp_path
    )
    batch, model = prepared.collate(prepared.batches(0)[0]), prepared.model.double()
    log_probs, mixture = model(batch.source, batch.target_in), model.mix(batch.source, batch.target_in)
    there = batch.target_out != 0
    nll = -log_probs.gather(2, batch.target_out[..., None]).squeeze(-1)
    twice = torch.minimum(mixture.copy, mixture.coverage).sum(-1)
    found = prepared.loss(model, batch)
    assert_close(found.sum, (0.9 * nll - 0.1 * log_probs.mean(-1) + 0.7 * twice)[there].sum())
    assert_close(found.nll, nll[there].sum())


def test_long_texts_are_cut_and_said_to_be_and_long_summaries_are_left_out(tmp_path):
    mails = tmp_path / "mails.tsv"
    mails.write_text("a b c d e\ta\n" * 3 + "".join(f"a b c {i}\tb c\n" for i in range(9)) + "a b\ta b c d\n\ta\n")
    sizes = SIZES | {"kind": "words", "max_source": 4, "max_target": 2, "validation_size": 2}
    said = []
    fit(Summarise(), SummariseSettings(data=str(mails), **sizes), tmp_path / "run", tell=said.append)
    begin = next(event for event in said if event.kind == "begin")
    assert begin.facts["left_out"] == 2
    assert [event.facts["text"] for event in said if event.kind == "notice"] == [
        "3 of 10 texts were cut to their first 4 tokens"
    ]
    summariser = open_summariser(tmp_path / "run")
    assert summariser.read("a b c a b c") == [*summariser.source.encode("a b c a"), 2]
    one = summariser.summarise(["a b c a b c"], beams=1)[0]
    assert (one.tokens, len(one.shown.source)) == (6, 5)
    assert len(one.shown.written) <= 2


def test_examples_are_shown_with_the_pointer_and_its_map(tmp_path):
    folder = run_of() / "shown" / checkpoint.name_of(8)
    rows = json.loads((folder / "examples.json").read_text())
    assert len(rows) == 3
    for number, row in enumerate(rows):
        pointer = load(folder / f"{number}.trace")["pointer"]
        assert pointer.weights.shape == (1, 1, len(row["written"]) + 1, len(row["source"]))
        assert list(pointer.keys[0].shown) == row["source"]
        assert list(pointer.queries[0].shown) == [*row["written"], "<eos>"]


def test_what_was_exported_is_scored_with_everything_that_is_known(tmp_path):
    test = write_mails(tmp_path / "test.jsonl", 30, seed=4)
    found = evaluate(str(run_of()), data=str(test), beams=2, samples=1)
    summariser, mails = open_summariser(run_of()), draw_mails(30, seed=4)
    written = [one.text for one in summariser.summarise([mail["body"] for mail in mails], beams=2)]
    assert found["scores"] == score_rouge(written, [[mail["subject"]] for mail in mails])._asdict()
    best = score_rouge(written, [mail["annotations"] for mail in mails])
    single = [(text, [other]) for text, mail in zip(written, mails) for other in mail["annotations"]]
    assert found["annotations"] == {
        "texts": 30, "best": best._asdict(), "mean": score_rouge(*zip(*single))._asdict(),
    }  # fmt: skip
    assert found["novel"]["wanted"] == [0, 0, 0, 0]
    assert found["cut"] == sum(len(summariser.source.encode(mail["body"])) > 18 for mail in mails) > 0
    assert (found["texts"], found["beams"], len(found["samples"])) == (30, 2, 1)
    said = task_of(str(run_of())).report(found)
    assert "(best of the annotations)" in said
    assert "rouge-score 0.1.2, F-measure, Porter stemmer on" in said
    assert evaluate(str(run_of()), beams=1, count=5)["texts"] == 5, "by default the validation data"


def test_of_what_the_beams_find_the_best_without_a_word_said_twice_in_a_row_is_taken():
    summariser = open_summariser(run_of())
    texts = ["agreement Agreement attached", "agreement attached agreement", "agreement"]
    found = [DecodedText(summariser.target.encode(text), -score) for score, text in enumerate(texts)]
    assert summariser.choose(found) is found[1]
    assert summariser.choose(found[:1]) is found[0]


def test_words_say_where_they_come_from_as_the_mixture_does():
    summariser = open_summariser(run_of())
    text = draw_mails(1, seed=3)[0]["body"]
    one = summariser.summarise([text], beams=1)[0]
    ids, written = list(one.shown.source), list(one.shown.written)
    with torch.no_grad():
        fed = torch.tensor([[1, *written]])
        mixture = summariser.model.mix(torch.tensor([ids]), fed)
        p = summariser.model(torch.tensor([ids]), fed)[0].exp()
    g = mixture.gate[0].sigmoid()
    copied = [
        (1 - float(g[t])) * sum(float(mixture.copy[0, t, i]) for i in range(len(ids)) if ids[i] == token)
        / float(p[t, token]) for t, token in enumerate(written)
    ]  # fmt: skip
    assert written, "something was written"
    tokens = one.words()
    assert "".join(word.text for word in tokens) == one.text.replace(" ", "")
    first = tokens[0].g
    assert min(g.tolist()) <= first <= max(g.tolist())
    assert sum(copied) / len(copied) == pytest.approx(
        sum(w.copied * n for w, n in zip(tokens, pieces_of(summariser, one))) / len(written), abs=1e-4
    )


def pieces_of(summariser, one):
    """How many tokens each word has."""
    from regard.tokens import read
    from regard.tokens.merge import groups

    return [part.stop - part.start for part in groups(read(summariser.target.tokenizer, list(one.shown.written)))]


def test_a_model_that_copies_nothing_summarises_too():
    summariser = open_summariser(run_of(copy=False))
    one = summariser.summarise(["please find the agreement"], beams=1)[0]
    assert not summariser.copies
    with pytest.raises(ModelError, match="copies nothing"):
        one.words()
    assert [layer.name for layer in one.trace().layers][-1] == "decoder.blocks.0.cross_attention"


def test_the_pointer_is_the_map_that_is_shown_first():
    from regard.cli.pages import alignment_address

    one = open_summariser(run_of()).summarise(["please find the agreement about barak"], beams=1)[0]
    trace = one.trace()
    assert trace.layers[-1].name == "pointer"
    assert alignment_address(one, trace) == f"#/layer={len(trace.layers) - 1}&head=0"


def test_quotes_are_one_line_with_the_word_in_brackets():
    text = "first line\nthe second\tone with  a very long end of many words"
    assert quote(text, 14, 21, around=12) == "…line the [second] one with…"
    assert quote(text, 0, 5) == "[first] line the second one…"


def test_what_cannot_be_is_refused_before_anything_is_learnt(tmp_path):
    with pytest.raises(ConfigError, match=r"no texts were named; give a \.jsonl or .tsv file with --data"):
        PreparedSummaries(SummariseSettings(), tmp_path)
    with pytest.raises(DataError, match=r"there is no file 'none\.jsonl' to read summaries from"):
        PreparedSummaries(SummariseSettings(data="none.jsonl"), tmp_path)
    mails = write_mails(tmp_path / "mails.jsonl", 20)
    with pytest.raises(DataError, match=r"all \d+ summaries are longer than 1 tokens; raise --max-target"):
        PreparedSummaries(SummariseSettings(data=str(mails), **SIZES | {"max_target": 1}), tmp_path)


def test_rouge_score_is_wanted_before_the_first_step(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rouge_score", None)
    with pytest.raises(ConfigError, match=r"to score summaries, install regard\[train\]"):
        fit(Summarise(), SummariseSettings(data="x.jsonl"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_only_a_summariser_is_opened_as_one(tmp_path):
    with pytest.raises(ModelError, match=r"there is no summariser 'nowhere'.*train one with: regard train summarise"):
        open_summariser("nowhere")
    with pytest.raises(ModelError, match="holds a translator, which summarises nothing"):
        open_summariser(translator_run())
    folder = copied(tmp_path)
    (folder / "model" / TOKENIZER).unlink()
    with pytest.raises(ModelError, match=TOKENIZER):
        open_summariser(folder)


def test_a_model_from_another_version_says_so(tmp_path):
    folder = copied(tmp_path) / "model"
    facts = store.describe(folder)
    facts["settings"]["unknown"] = 3
    (folder / store.MANIFEST).write_text(json.dumps(facts))
    with pytest.raises(ModelError, match="was trained by another version of regard"):
        open_summariser(folder)


@pytest.mark.parametrize(("text", "code"), [(" \n", "text.empty"), ("a\0b", "text.nul")])
def test_texts_that_are_none_are_refused(text, code):
    with pytest.raises(DataError) as error:
        open_summariser(run_of()).summarise([text])
    assert error.value.code == code
