"""Measures, proof and flow: what the trace itself says, packed; and what they are by plain arithmetic."""

import numpy as np
import pytest
import torch

import regard
from regard.errors import TraceError
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace
from regard.views.explorer.answer import Answers
from tests.views.explorer.answer.cases import CASES, ask, close
from tests.views.traces import decoder, translator


@pytest.mark.parametrize("name", ["causal", "padded", "grouped", "sinks and softcap", "window", "generated"])
def test_measures_of_one_batch_entry_are_those_of_its_weights(name):
    case = CASES[name]()
    b = case.weights.shape[0]
    facts, arrays = ask(Answers(case.trace), "measures", layer=0, batch=b - 1)
    assert not arrays
    weights, allowed = case.weights[-1], case.allowed[-1]
    _, q, k = weights.shape
    counted = allowed.any(-1) & allowed.any(0).any(0)[-q:] if q <= k else allowed.any(-1)
    place = torch.arange(q) + k - q
    away = (place[:, None] - torch.arange(k)).abs()
    rows = counted.sum(-1)
    entropy = (torch.special.entr(weights).sum(-1) * counted).sum(-1) / rows
    close(np.array(facts["values"]["entropy"]), entropy)
    distance = (weights * away).sum(-1) / weights.sum(-1).clamp_min(1e-30)
    close(np.array(facts["values"]["distance"]), (distance * counted).sum(-1) / rows)
    first = int(allowed.any(0).any(0).int().argmax())
    close(np.array(facts["values"]["sink"]), (weights[:, :, first] * counted).sum(-1) / rows)


def test_a_measure_without_meaning_is_none_and_a_note_says_why():
    facts, _ = ask(Answers(CASES["translated"]().trace), "measures", layer=0, batch=0)
    assert facts["values"]["distance"] == [None] * len(facts["values"]["entropy"])
    assert any("not known to be one sequence" in note for note in facts["notes"])


def test_shares_to_special_tokens_are_measured():
    facts, _ = ask(Answers(CASES["translated"]().trace), "measures", layer=0, batch=0)
    assert any(name.startswith("to ") for name in facts["values"])


def test_the_proof_is_that_of_the_trace():
    case = CASES["generated"]()
    facts, _ = ask(Answers(case.trace), "proof", layer=0)
    wanted = case.trace.verify()[0]
    assert facts == {name: getattr(wanted, name) for name in ("status", "output", "kernel", "normaliser", "ulp", "why")}
    assert facts["status"] == "verified"
    facts, _ = ask(Answers(CASES["stored"]().trace), "proof", layer=0)
    assert facts["status"] == "unverified"
    assert facts["output"] is None
    assert facts["why"]


def test_a_wrong_map_is_unverified_and_says_by_how_much():
    case = CASES["causal"]()
    case.layer.seen.mix = case.layer.seen.mix + 0.1
    facts, _ = ask(Answers(case.trace), "proof", layer=0)
    assert facts["status"] == "unverified"
    assert facts["output"] > 1000


def test_flow_through_one_stack_is_the_product_of_the_mean_maps():
    trace = decoder(tokens=7, heads=3, layers=4, mask=regard.causal())
    facts, arrays = ask(Answers(trace), "flow", query=5, batch=0, residual=0.25, by="weights")
    assert (facts["lines"], facts["n"], facts["m"]) == (5, 7, 0)
    assert (facts["targetTokens"], facts["sourceTokens"]) == (0, -1)
    assert facts["layers"] == [f"blocks.{i}" for i in range(4)]
    assert "source" not in arrays
    now = torch.nn.functional.one_hot(torch.tensor(5), 7).double()
    lines = [now]
    for layer in reversed(trace.layers):
        now = 0.25 * now + 0.75 * now @ layer.weights.dense()[0].double().mean(0)
        lines.insert(0, now)
    close(arrays["target"], torch.stack(lines))


def test_a_long_flow_is_sampled_first_and_says_how_sure_it_is():
    n, draw = 4500, torch.Generator().manual_seed(3)
    maps = [regard.attend(*torch.randn(3, 1, 1, n, 3, generator=draw), mask=regard.causal()).weights for _ in range(2)]
    answers = Answers(Trace([Run([Layer(f"blocks.{at}", "self", one) for at, one in enumerate(maps)])]))
    about = {"query": n - 1, "batch": 0, "residual": 0.5, "by": "weights"}
    sampled, some = ask(answers, "flow", **about, coarse=True)
    exact, every = ask(answers, "flow", **about)
    assert exact["error"] == 0
    assert 0.01 < sampled["error"] < 0.05  # of 4096 draws
    close(some["target"].sum(-1), torch.ones(3), 1e-5)
    missed = some["target"].astype(float) - every["target"].astype(float)
    assert abs(missed[0]).max() > 0
    for part in (slice(0, 500), slice(500, 2000), slice(2000, n)):
        assert abs(missed[0, part].sum()) <= sampled["error"]


def test_flow_of_a_decoder_reaches_source_and_target():
    answers = Answers(translator())
    facts, arrays = ask(answers, "flow", query=2, batch=0, residual=0.5, by="weights")
    assert (facts["lines"], facts["n"], facts["m"]) == (7, 4, 5)
    tokens = answers.info()["tokens"]
    assert tokens[facts["targetTokens"]]["shown"] == ["<s>", "猫", "坐", "。"]
    assert tokens[facts["sourceTokens"]]["shown"][0] == "The"
    close(arrays["target"].sum(-1) + arrays["source"].sum(-1), torch.ones(7))
    assert arrays["target"][-1].tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        ({"query": 9}, "token 9 was asked for, but there are 7"),
        ({"batch": 1}, "a batch of 1, but entry 1 was asked for"),
        ({"by": "values"}, "kept no values to weigh by"),
        ({"by": "names"}, "'flow' was asked with by = 'names'"),
        ({"residual": float("nan")}, "residual = nan"),
        ({"residual": 1.5}, "residual = 1.5"),
    ],
)
def test_a_flow_that_cannot_be_is_refused(about, sentence):
    plain = {"query": 1, "batch": 0, "residual": 0.5, "by": "weights"}
    with pytest.raises(TraceError, match=sentence):
        Answers(decoder(tokens=7)).ask("flow", {**plain, **about})


def test_layers_that_do_not_chain_say_so():
    layers = [*decoder(tokens=5).layers, *decoder(tokens=6).layers]
    with pytest.raises(TraceError, match="does not continue the others"):
        Answers(Trace([Run(layers)])).ask("flow", {"query": 1, "batch": 0, "residual": 1, "by": "weights"})
