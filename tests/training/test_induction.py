"""Training the induction model: the same every time, towards what its scores say."""

import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.models import GPTConfig, embedded, store
from regard.training import induction
from regard.training.scores import head_scores, said_twice

SIZES = GPTConfig(vocabulary=23, width=12, heads=3, layers=2, context=20, positions="rotary", hidden=0, tied=False)
PLAN = induction.Plan(steps=6, tokens=90, warm=2)


def test_training_is_a_function_of_its_plan():
    torch.manual_seed(5)
    state, heard = torch.get_rng_state(), []
    one = induction.train(PLAN, SIZES, tell=lambda step, loss: heard.append((step, loss)))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(6)
    same = induction.train(PLAN, SIZES)
    assert_close(one.state_dict(), same.state_dict(), rtol=0, atol=0)
    assert not one.training
    assert [step for step, _ in heard] == [0, 1, 2, 3, 4, 5]
    other = induction.train(induction.Plan(steps=6, tokens=90, warm=2, seed=1), SIZES)
    assert not torch.equal(one.embed.weight, other.embed.weight)


def test_the_loss_falls():
    sizes, losses = GPTConfig(8, 16, 2, 2, 20, positions="rotary", hidden=0, tied=False), []
    plan = induction.Plan(steps=60, tokens=400, warm=5, rate=1e-2)
    induction.train(plan, sizes, tell=lambda _, loss: losses.append(loss))
    assert sum(losses[-5:]) < 0.95 * sum(losses[:5])


def test_the_rate_warms_up_stays_and_falls_and_sequences_grow():
    plan = induction.Plan(steps=90, warm=10, rate=2.0)
    rates = [plan.rate_at(step) for step in range(90)]
    assert rates[:10] == pytest.approx([0.2 * (i + 1) for i in range(10)])
    assert rates[10:61] == [2.0] * 51
    assert rates[-1] == pytest.approx(2 / 30)
    assert [plan.length_at(step, 64) for step in (0, 29, 30, 59, 60, 89)] == [16, 16, 32, 32, 64, 64]


def test_the_share_of_a_head_equals_that_of_the_whole_map():
    model = induction.train(PLAN, SIZES)
    found = head_scores(model, period=9, vocabulary=23, rows=5)
    with torch.no_grad(), regard.listen() as heard:
        model(said_twice(9, 23, 5))
    for layer, (_, attended) in enumerate(heard):
        weights = attended.weights.dense().double()
        for head in range(3):
            before = [weights[b, head, i, i - 1].item() for b in range(5) for i in range(1, 18)]
            after = [weights[b, head, i, i - 8].item() for b in range(5) for i in range(9, 18)]
            assert found["previous"][layer][head] == pytest.approx(sum(before) / len(before), abs=1e-6)
            assert found["induction"][layer][head] == pytest.approx(sum(after) / len(after), abs=1e-6)


def test_a_run_writes_the_same_bytes_again(tmp_path):
    for name in ("one/run", "two/run"):
        told = induction.make(tmp_path / name, PLAN, SIZES)
    for file in (store.MANIFEST, store.WEIGHTS):
        assert (tmp_path / "one/run" / file).read_bytes() == (tmp_path / "two/run" / file).read_bytes()
    assert told["command"] == "python -m regard.training.induction --out run --steps 6 --seed 0"
    assert told["training"]["tokens"] == 90
    assert set(told["scores"]) == {"accuracy", "accuracy_clean", "previous", "induction"}


def test_the_command_writes_a_model_that_opens(tmp_path):
    words = [sys.executable, "-m", "regard.training.induction", "--out", str(tmp_path / "run"), "--steps", "2"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "of what can be known" in done.stdout
    assert "2/2" in done.stdout
    assert not done.stderr
    made = store.read(tmp_path / "run")
    assert made.state_dict().keys() == embedded.load("induction").state_dict().keys()


@pytest.mark.slow
def test_the_command_of_the_manifest_makes_a_model_with_both_kinds_of_heads():
    scores = induction.evaluate(induction.train())
    assert scores["accuracy"] > 0.99
    assert max(scores["previous"][0]) > 0.5
    assert max(scores["induction"][1]) > 0.5
