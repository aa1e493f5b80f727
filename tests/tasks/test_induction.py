"""The induction task: trained by the engine as any other, the same every time, towards what its scores say."""

import json
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.data import repeats
from regard.layers import listen
from regard.models import embedded, store
from regard.tasks import task_named
from regard.tasks.evaluate import evaluate
from regard.tasks.head_scores import head_scores, said_twice
from regard.tasks.induction import Induction, InductionSettings, PreparedInduction, score
from regard.trace.file import load
from regard.training import checkpoint
from regard.training.fit import fit

SMALL = {
    "width": 12,
    "heads": 3,
    "context": 20,
    "stage_steps": 2,
    "batch_tokens": 90,
    "warmup_steps": 2,
    "vocab_size": 23,
}
SETTINGS = InductionSettings(**SMALL, steps=6, lr_schedule="constant", eval_every=3, save_every=3, log_every=1)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("induction") / "run"
    assert fit(Induction(), SETTINGS, folder).code == 0
    return folder


def weights(folder, step):
    return checkpoint.read(folder / "checkpoints" / checkpoint.name_of(step)).tensors


def test_a_run_that_was_resumed_ends_in_the_same_bits(run, tmp_path):
    fit(Induction(), SETTINGS.model_copy(update={"steps": 3}), tmp_path / "run")
    fit(Induction(), SETTINGS, tmp_path / "run", resume=True)
    assert_close(weights(tmp_path / "run", 6), weights(run, 6), rtol=0, atol=0)


def test_parts_of_a_batch_add_up(run, tmp_path):
    fit(Induction(), SETTINGS.model_copy(update={"gradient_accumulation": 2}), tmp_path / "parts")
    assert_close(weights(tmp_path / "parts", 3), weights(run, 3), rtol=1e-3, atol=1e-5)


def test_a_step_is_that_of_a_plain_loop(tmp_path):
    """Weights after two steps, beside AdamW on the cross-entropy of what can be known."""
    settings = InductionSettings(**SMALL, steps=2, lr_schedule="constant", eval_every=9, save_every=2)
    fit(Induction(), settings, tmp_path / "run")
    torch.manual_seed(settings.seed)
    model = settings.config().build()
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    for step, numbers in enumerate((range(18), range(18, 36))):  # 90 tokens of 5 each
        optimizer.param_groups[0]["lr"] = settings.lr * step / 2
        ids, known = repeats.batch(numbers, length=5, vocabulary=23)
        loss = F.cross_entropy(model(ids[:, :-1])[known[:, 1:]], ids[:, 1:][known[:, 1:]])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    trained = {name: value for name, value in weights(tmp_path / "run", 2).items() if name.startswith("model.")}
    assert_close(trained, {f"model.{name}": value for name, value in model.state_dict().items()})


def test_sequences_grow_and_none_comes_twice():
    prepared = PreparedInduction(InductionSettings(**SMALL | {"context": 64, "batch_tokens": 200}))
    read: list[int] = []
    for epoch, length in enumerate((16, 32, 64, 64)):
        updates = prepared.batches(epoch)
        assert len(updates) == 2
        for rows in updates:
            assert prepared.collate(rows).ids.shape == (200 // length, length)
            read += rows.tolist()
    assert read == list(range(len(read)))
    assert prepared.weight(np.array([0, 5])) == int(prepared.collate(np.array([0, 5])).known.sum())
    nothing = prepared.collate(np.array([], dtype=np.int64))
    assert prepared.loss(prepared.model, nothing).sum == 0
    copied = pickle.loads(pickle.dumps(prepared))
    assert torch.equal(copied.collate(np.array([3])).ids, prepared.collate(np.array([3])).ids)


def test_the_loss_falls(tmp_path):
    settings = InductionSettings(
        vocab_size=8, width=16, heads=2, context=20, stage_steps=20, steps=60, batch_tokens=400, warmup_steps=5,
        lr=1e-2, log_every=1, eval_every=60, save_every=60,
    )  # fmt: skip
    fit(Induction(), settings, tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert sum(losses[-5:]) < 0.95 * sum(losses[:5])


def test_the_share_of_a_head_equals_that_of_the_whole_map(run):
    model = store.read(run / "model")
    found = head_scores(model, period=9, vocabulary=23, rows=5)
    with torch.no_grad(), listen() as heard:
        model(said_twice(9, 23, 5))
    for layer, (_, attended) in enumerate(heard):
        shares = attended.weights.dense().double()
        for head in range(3):
            before = [shares[b, head, i, i - 1].item() for b in range(5) for i in range(1, 18)]
            after = [shares[b, head, i, i - 8].item() for b in range(5) for i in range(9, 18)]
            assert found["previous"][layer][head] == pytest.approx(sum(before) / len(before), abs=1e-6)
            assert found["induction"][layer][head] == pytest.approx(sum(after) / len(after), abs=1e-6)


def test_the_result_opens_and_is_evaluated_as_its_validation_was(run):
    told = store.describe(run / "model")
    assert set(told["scores"]) == {"accuracy", "accuracy_clean", "previous", "induction"}
    assert (told["task"], told["vocabulary"]) == ("induction", [*repeats.LETTERS[:19], *repeats.SEPARATORS])
    assert store.read(run / "model").state_dict().keys() == embedded.load("induction").state_dict().keys()
    found = evaluate(str(run))
    assert found["task"] == "induction"
    assert found["scores"]["accuracy"] == told["scores"]["accuracy"]
    assert found["scores"]["previous"] == max(map(max, told["scores"]["previous"]))
    assert task_named("induction").report(found).startswith("induction: accuracy 0")


def test_what_the_model_attends_to_is_shown_at_each_validation(run):
    folder = run / "shown" / checkpoint.name_of(3)
    rows = json.loads((folder / "examples.json").read_text())
    assert len(rows) == 3
    layers = load(folder / rows[1]["trace"]).layers
    assert len(layers) == 2
    assert layers[1].keys[0].shown == tuple(rows[1]["source"])
    assert len(rows[1]["written"]) == 20


@pytest.mark.slow
def test_training_makes_a_model_with_both_kinds_of_heads(tmp_path):
    settings = InductionSettings()
    fit(Induction(), settings, tmp_path / "run")
    scores = score(store.read(tmp_path / "run" / "model"), settings.config())
    assert scores["accuracy"] > 0.99
    assert max(scores["previous"][0]) > 0.5
    assert max(scores["induction"][1]) > 0.5
