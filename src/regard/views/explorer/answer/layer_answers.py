"""What is asked of a whole layer, or of all of them: measures, the proof, and the flow through a run."""

import math

from regard.trace.measure.measure import NAMES, measure, to_number
from regard.trace.measure.rollout import flow as flow_of
from regard.trace.measure.sampled_flow import sample_flow
from regard.trace.measure.stacks import stacks_of
from regard.trace.measure.summary import take_batch_entry
from regard.trace.proof.verify import prove
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace
from regard.views.explorer.answer import questions
from regard.views.explorer.answer.info import TokenNumbers
from regard.views.explorer.answer.pack import Answer


def answer_measures(layer: Layer, batch: int) -> Answer:
    """Every measure of one batch entry: a number per head, None where it has no meaning; and why, a sentence each."""
    measured = measure(take_batch_entry(layer, batch))
    columns = {name: getattr(measured, name) for name in NAMES} | measured.special
    values = {name: [to_number(value) for value in of_heads[0]] for name, of_heads in columns.items()}
    return Answer({"values": values, "notes": list(dict.fromkeys(measured.notes.values()))}, {})


def answer_proof(layer: Layer) -> Answer:
    """Whether the map is what the model used, and by how many units of the last place each part of the proof misses."""
    proof = prove(layer)
    errors = {"output": proof.output, "kernel": proof.kernel, "normaliser": proof.normaliser}
    misses = {name: error if error is not None and math.isfinite(error) else None for name, error in errors.items()}
    return Answer({"status": proof.status, "why": proof.why, **misses, "ulp": proof.ulp}, {})


def answer_flow(trace: Trace, named: TokenNumbers, at: questions.FlowQuestion) -> Answer:
    """Where a token is fed from, line by line; of an encoder and a decoder also from the source.

    `error` is what any part of a line may be off by where only some rows were looked at (95 % sure), else 0.
    """
    stacks, error = stacks_of(trace, entry=at.batch), 0.0
    if at.coarse:
        sampled = sample_flow(trace, at.query, residual=float(at.residual), by=at.by, batch=at.batch)
        flow, error = sampled.flow, float(sampled.errors.max())
    else:
        flow = flow_of(trace, at.query, residual=float(at.residual), by=at.by, batch=at.batch)
    lines, n = flow.target.shape
    cross = next((layer for layer in stacks.target if layer.kind == "cross"), None)
    facts = {
        "lines": lines,
        "error": error,
        "layers": list(flow.layers),
        "n": n,
        "m": stacks.source_length if flow.source is not None else 0,
        "targetTokens": named.number(stacks.target[0].queries, at.batch),
        "sourceTokens": -1 if cross is None else named.number(cross.keys, at.batch),
    }
    return Answer(facts, {"target": flow.target, "source": flow.source})
