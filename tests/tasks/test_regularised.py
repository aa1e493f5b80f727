"""R-Drop and BPE-dropout in a run: what they compute, that it resumes to the bit, and that off is off."""

import signal
from functools import partial
from os import getpid, kill

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.data.special import PAD
from regard.errors import ConfigError
from regard.tasks.sequences import PreparedSequences, SequenceSettings
from regard.tasks.translate import PreparedTranslation, Translate, TranslateSettings
from regard.training.fit import fit
from tests.tasks.tiny import SIZES
from tests.training.crew import assert_same_bits
from tests.training.runs import at

SMALL = SIZES | {"dropout": 0.2, "target_kind": "bpe", "examples": 120, "eval_samples": 2, "validation_size": 5}


def settings(**more) -> TranslateSettings:
    return TranslateSettings(**SMALL | {"steps": 13, "save_every": 5, "eval_every": 6, "log_every": 2} | more)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def quiet(monkeypatch):
    """Runs that show nothing and translate nothing in between: what is learnt is asked here, and nothing else."""
    monkeypatch.setattr(PreparedTranslation, "show", lambda *_: None)
    monkeypatch.setattr(PreparedTranslation, "validate", lambda self, model: {"bleu": self.validation_loss(model)})


@pytest.mark.parametrize(
    "given", [{"r_drop": 3.0}, {"bpe_dropout": 0.2}, {"bpe_dropout": 0.3, "r_drop": 1.0, "num_workers": 1}], ids=str
)
def test_a_run_that_was_stopped_comes_out_the_same_to_the_bit(tmp_path, quiet, given):
    epochs: set[int] = set()

    def watch(event) -> None:
        epochs.add(event.facts.get("epoch", 0))

    assert fit(Translate(), settings(**given), tmp_path / "whole", tell=watch).code == 0
    stop = at("step", 7, partial(kill, getpid(), signal.SIGINT))
    assert fit(Translate(), settings(**given), tmp_path / "two", tell=stop).code == 130
    assert fit(Translate(), settings(**given), tmp_path / "two", resume=True).code == 0
    assert_same_bits(tmp_path / "whole", tmp_path / "two")
    assert max(epochs) > 0


def test_dropping_hardly_any_merge_is_dropping_none(tmp_path, quiet):
    for name, p in (("none", 0.0), ("few", 1e-200), ("some", 0.1)):
        fit(Translate(), settings(bpe_dropout=p), tmp_path / name)
    assert_same_bits(tmp_path / "none", tmp_path / "few")
    assert (tmp_path / "none" / "history.jsonl").read_text() != (tmp_path / "some" / "history.jsonl").read_text()


def test_each_epoch_reads_the_same_sentences_in_other_pieces(tmp_path):
    prepared = PreparedTranslation(settings(bpe_dropout=0.3, batch_tokens=200), tmp_path)
    texts: list[list[str]] = []
    for epoch in (0, 1, 2, 1):
        batches = prepared.batches(epoch)
        indices = np.concatenate(batches)
        assert sorted(indices - epoch * len(prepared.train)) == list(range(len(prepared.train)))
        for some in batches:
            batch = prepared.collate(some)
            assert max(batch.source.numel(), batch.target_out.numel()) <= 200
            assert prepared.weight(some) == int((batch.target_out != PAD).sum())
            parts = prepared.parts(some, 3)
            assert sorted(np.concatenate(parts)) == sorted(some)
        whole = prepared.collate(np.arange(len(prepared.train)) + epoch * len(prepared.train))
        texts.append([str(row.tolist()) for row in whole.source])
        for row, target, said in zip(whole.source, whole.target_out, prepared.train.kept, strict=True):
            usual = prepared.train[int(said)]
            assert prepared.source.decode(row) == prepared.source.decode(usual.source)
            assert prepared.target.decode(target) == prepared.target.decode(usual.target)
    assert texts[1] == texts[3]
    assert texts[0] != texts[1] != texts[2]


@pytest.mark.parametrize("side", ["source", "target"])
def test_one_side_may_stay_as_it_is(tmp_path, side):
    prepared = PreparedTranslation(settings(bpe_dropout=0.5, bpe_dropout_sides=side), tmp_path)
    other = {"source": "target", "target": "source"}[side]
    examples = prepared.read_in(4)
    assert examples.lengths[other].tolist() == prepared.train.lengths[other].tolist()
    assert examples.lengths[side].sum() > prepared.train.lengths[side].sum()


def test_no_cut_is_longer_than_examples_may_be(tmp_path):
    prepared = PreparedTranslation(settings(bpe_dropout=1.0, max_length=18, batch_tokens=30), tmp_path)
    assert max(lengths.max() for lengths in prepared.read_in(0).lengths.values()) <= 19
    assert prepared.batches(0)


def test_what_cannot_be_dropped_is_refused(tmp_path):
    for given, words in (
        ({"bpe_dropout": 0.1, "source_kind": "words", "target_kind": "characters"}, "neither side is cut by BPE"),
        ({"bpe_dropout": 0.1, "bpe_dropout_sides": "target", "target_kind": "words"}, "the target is not cut by BPE"),
        ({"r_drop": 1.0, "dropout": 0.0}, "both passes would be the same"),
    ):
        folder = tmp_path / words
        folder.mkdir()
        with pytest.raises(ConfigError, match=words):
            PreparedTranslation(settings(**given), folder)


@pytest.mark.parametrize("model", ["transformer", "recurrent"])
def test_r_drop_is_two_passes_and_how_far_they_differ(model):
    given = SequenceSettings(
        model=model, width=12, heads=3, layers=1, hidden=14, dropout=0.3, r_drop=2.5, label_smoothing=0.2, examples=30
    )
    prepared = PreparedSequences(given, "copy")
    made = prepared.model.double().train()
    batch = prepared.collate(prepared.batches(0)[0])
    torch.manual_seed(5)
    loss = prepared.loss(made, batch)
    found = torch.autograd.grad(loss.sum, list(made.parameters()))

    torch.manual_seed(5)
    twice = [torch.cat([part, part]) for part in batch]
    logits = made(twice[0], twice[1])
    first, second = logits.chunk(2)
    assert not torch.equal(first, second)
    cost = F.cross_entropy(
        logits.flatten(0, 1), twice[2].flatten(), label_smoothing=0.2, ignore_index=PAD, reduction="sum"
    )
    p, q = (half[batch.target_out != PAD].log_softmax(-1) for half in (first, second))
    apart = F.kl_div(p, q, log_target=True, reduction="sum") + F.kl_div(q, p, log_target=True, reduction="sum")
    want = (cost + 2.5 * apart / 2) / 2
    assert_close(loss.sum, want)
    for one, other in zip(found, torch.autograd.grad(want, list(made.parameters())), strict=True):
        assert_close(one, other)
    assert loss.count == prepared.weight(prepared.batches(0)[0])
