"""Pairs of sequences: batches, losses and free decoding, against plain torch and against single sentences."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.errors import ConfigError
from regard.tasks import names, task_named
from regard.tasks.sequences import Copy, Reverse, SequenceSettings, Sort
from regard.tasks.writing import write
from regard.trace.file import load
from regard.training.fit import fit
from regard.training.run import RunFolder


def small(**more):
    given = {
        "width": 24,
        "heads": 2,
        "layers": 1,
        "hidden": 40,
        "examples": 90,
        "validation_size": 17,
        "batch_tokens": 130,
    }
    return SequenceSettings(**(given | more))


def test_what_is_wanted_of_each_task():
    symbols = np.array([7, 5, 9])
    made = {task.name: task.prepare(small(), Path()).target_of(symbols) for task in (Copy(), Reverse(), Sort())}
    assert made == {"copy": [7, 5, 9], "reverse": [9, 5, 7], "sort": [5, 7, 9]}


@pytest.mark.parametrize("model", ["transformer", "recurrent"])
def test_the_loss_is_that_of_plain_torch_over_the_tokens_that_count(model):
    work = Copy().prepare(small(model=model, dropout=0.0), Path())
    indices = np.array([3, 8, 21, 40])
    batch = work.collate(indices)
    found = work.loss(work.model, batch)
    logits = work.model(batch.source, batch.target_in)
    want = F.cross_entropy(
        logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=0, label_smoothing=0.1, reduction="sum"
    )
    torch.testing.assert_close(found.sum, want, rtol=1e-4, atol=1e-3)
    assert found.count == work.weight(indices) == int((batch.target_out != 0).sum())


def test_every_example_is_learnt_from_once_in_an_epoch_whatever_the_parts():
    work = Copy().prepare(small(), Path())
    epoch = work.batches(2)
    assert sorted(np.concatenate(epoch).tolist()) == list(range(len(work.train)))
    for count in (2, 3):
        for batch in epoch:
            assert sorted(np.concatenate(work.parts(batch, count)).tolist()) == sorted(batch.tolist())


def test_a_part_without_examples_counts_nothing_and_still_gives_gradients():
    work = Copy().prepare(small(), Path())
    found = work.loss(work.model, work.collate(np.array([], dtype=np.int64)))
    found.sum.backward()
    assert float(found.sum.detach()) == 0.0
    assert all(p.grad is None or float(p.grad.abs().sum()) == 0.0 for p in work.model.parameters())


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("model", ["transformer", "recurrent"])
def test_many_texts_are_written_as_each_alone(model, beams):
    work = Copy().prepare(small(model=model), Path())
    model_, held = work.model.eval(), [work.validation[i].source for i in range(9)]
    together = write(model_, held, beams=beams, tokens=40)
    alone = [write(model_, [one], beams=beams)[0] for one in held]
    assert [one.ids for one in together] == [one.ids for one in alone]


def test_a_small_copy_is_learnt_and_shows_what_it_looked_at(tmp_path):
    """The engine's fast test: a diagonal appears where there was none."""
    settings = SequenceSettings(
        steps=220, examples=4000, symbols=10, most=8, validation_size=60, batch_tokens=900, width=48, heads=2, layers=1,
        hidden=96, warmup_steps=40, lr=5e-3, dropout=0.0, eval_every=110, save_every=110, seed=1,
    )  # fmt: skip
    result = fit(Copy(), settings, tmp_path / "run")
    assert result.scores["exact"] > 0.9
    run = RunFolder.open(tmp_path / "run")
    assert [line["step"] for line in run.history() if "validation" in line] == [110, 220]
    trace = load(run.shown / "step-000000220" / "0.trace")
    kinds = [layer.kind for layer in trace.layers]
    assert kinds == ["self", "self", "cross"]
    cross = trace.layers[-1]
    assert cross.queries[0].shown[-1] == cross.keys[0].shown[-1] == "<eos>"
    looked = cross.weights[0].dense().mean(0).argmax(-1)
    assert (looked[:-1] == torch.arange(len(looked) - 1)).float().mean() > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("task", [Copy(), Reverse(), Sort()], ids=lambda task: task.name)
def test_copy_reverse_and_sort_are_learnt(task, tmp_path):
    """Under five minutes each on one core."""
    assert fit(task, SequenceSettings(), tmp_path / "run").scores["exact"] >= 0.99


def test_tasks_have_names_and_a_wrong_one_gets_the_nearest():
    assert "translate" in names()
    assert task_named("sort").name == "sort"
    with pytest.raises(ConfigError, match="did you mean 'reverse'"):
        task_named("revers")
