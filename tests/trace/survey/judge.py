"""One model, run by the oracle and watched: what is right, wrong, missed, refused."""

from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import WatchError
from regard.trace.record.findings import LayerState
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace
from regard.trace.watch import watch
from tests.trace.look import tensors
from tests.trace.survey.inputs import BATCH, Inputs, altered
from tests.trace.survey.recorder import AttentionRecord, Recorder

LIMIT = 2e-4


def run(model: nn.Module, inputs: Inputs) -> list[Tensor]:
    """What a model gives, from the same random state and the same inputs: some write into what they are given."""
    inputs = {name: x.clone() if isinstance(x, Tensor) else x for name, x in inputs.items()}
    torch.manual_seed(1)
    with torch.no_grad():
        return list(tensors(model(**inputs)))


def record(model: nn.Module, inputs: Inputs) -> Recorder:
    with Recorder(model) as recorder:
        recorder.outputs = run(model, inputs)
    return recorder


def judge(model: nn.Module, inputs: Inputs) -> dict[str, Any]:
    """The row of one model."""
    plain = run(model, inputs)
    row: dict[str, Any] = {"finite": all(bool(x.isfinite().all()) for x in plain if x.is_floating_point())}
    trace, row["raised"] = Trace(), ""
    try:
        with watch(model) as trace:
            watched = run(model, inputs)
    except WatchError as error:
        row["raised"] = str(error)
        watched = plain
    oracle = record(model, inputs)  # after the watch: what raises inside of a dispatch mode may be remembered
    if not all(map(alike, plain, oracle.outputs)):
        return {"crash": "under a dispatch mode it computes something else, so there is no judge"}
    right, other = oracle.records, record(model, altered(inputs)).records
    row["attention"] = len(right)
    row["same"] = len(plain) == len(watched) and all(map(equal, plain, watched))
    row["notes"] = list(trace.notes)[:4]
    row["runs"] = len(trace.runs)
    proofs = [(layer, proof) for one in trace.runs for layer, proof in zip(one.layers, verify(one))]
    row["complete"] = not any(one.missed for one in trace.runs) if trace.runs else None
    row["missed"] = sorted({str(one)[:200] for run_ in trace.runs for one in run_.missed})
    row["refused"] = {path: why[:300] for run_ in trace.runs for path, why in run_.refused.items()}
    steady = len(right) == len(other) and all(a.weights.shape == b.weights.shape for a, b in zip(right, other))
    free = list(range(len(right)))
    row["layers"] = []
    for layer, proof in proofs:
        row["layers"].append(judge_layer(layer, proof, right, other if steady else None, free, inputs, oracle))
    row["unmatched"] = [f"{right[i].path} {right[i].shape} {right[i].how}" for i in free]
    said = [one.name for run_ in trace.runs for one in run_.missed] + list(row["refused"])
    row["silent"] = (
        []
        if row["raised"]
        else [
            f"{right[i].path} {right[i].shape} {right[i].how}"
            for i in free
            if not any(near(right[i].path, path) for path in said)
        ]
    )
    row["sharp"] = (
        round(float(torch.tensor([float(one.weights.amax(-1).mean()) for one in right]).mean()), 3) if right else None
    )
    return row


def equal(ours: Tensor, theirs: Tensor) -> bool:
    """Bit for bit the same numbers, and the same that are none."""
    return torch.equal(ours, theirs) or torch.equal(ours.nan_to_num(7.0), theirs.nan_to_num(7.0))


def alike(ours: Tensor, theirs: Tensor) -> bool:
    """Whether these are the same numbers, but for the order in which they were added up."""
    if ours.shape != theirs.shape or not ours.is_floating_point():
        return ours.shape == theirs.shape
    size = float(theirs.nan_to_num(0.0).abs().amax()) if theirs.numel() else 0.0
    return torch.allclose(ours, theirs, rtol=0, atol=1e-2 * size + 1e-6, equal_nan=True)


def near(path: str, said: str) -> bool:
    return (
        path == said
        or path.startswith(said + ".")
        or said.startswith(path + ".")
        or said == ""
        or path.rpartition(".")[0] == said.rpartition(".")[0]
    )


def verify(run_: Any) -> Any:
    from regard.trace.proof.verify import verify as prove

    return prove(run_)


def judge_layer(
    layer: Layer,
    proof: Any,
    right: list[AttentionRecord],
    other: list[AttentionRecord] | None,
    free: list[int],
    inputs: Inputs,
    oracle: Recorder,
) -> dict[str, Any]:
    """One layer against all that the oracle saw."""
    b, h, q, k = layer.weights.shape
    row: dict[str, Any] = {
        "name": layer.name,
        "kind": layer.kind,
        "map": layer.weights.kind,
        "shape": [b, h, q, k],
        "status": str(proof.status),
        "why": proof.why[:200],
        "states": [str(s) for s in layer.states],
        "door": layer.door,
    }
    weights = layer.weights.dense().detach().double().flatten(0, 1)
    best, order, error, read = None, None, torch.inf, 0
    for i in [*free]:
        for reading, theirs in enumerate(right[i].readings()):
            if theirs.shape[-1] > k and not bool(theirs[..., k:].any()):
                theirs = theirs[..., :k]  # places at the end that nobody may look at, as those of a cache
            if tuple(theirs.shape) != tuple(weights.shape):
                continue
            found, off = match(weights, theirs, right[i].dead.reshape(theirs.shape[:-1]))
            if off < error:
                best, order, error, read = i, found, off, reading
        if error < LIMIT:
            break
    if (
        best is None and k == 1 and bool((weights - 1).abs().amax() < LIMIT)
    ):  # one key takes all: torch may just multiply
        row |= {"exact": True, "error": 0.0, "axes": "same", "names": names(layer, inputs, oracle)}
        return row
    row["error"] = None if error == torch.inf else float(error)
    row["exact"] = bool(error < LIMIT)
    if not row["exact"] or best is None or order is None:
        row["near"] = [f"{right[i].path} {tuple(right[i].weights.shape)}" for i in free][:3]
        return row
    free.remove(best)
    row["axes"] = axes(layer, order, *(one[best].readings()[read] if one else None for one in (right, other)))
    row["names"] = names(layer, inputs, oracle)
    return row


def match(weights: Tensor, theirs: Tensor, dead: Tensor) -> tuple[Tensor | None, float]:
    """Which map of the oracle each of ours is, and how far the worst weight is off."""
    theirs, live = theirs.double(), ~dead
    same = torch.arange(len(weights))
    off = ((weights - theirs).abs().amax(-1) * live).amax() if weights.numel() else torch.tensor(0.0)
    if off < LIMIT:
        return same, float(off)
    if len(weights) > 4096:
        return None, float(off)
    far = (
        torch.cdist(weights.flatten(1), (theirs * live[..., None]).flatten(1), p=torch.inf)
        if not dead.any()
        else torch.stack([((one - theirs).abs().amax(-1) * live).amax(-1) for one in weights])
    )
    worst, order = far.min(1)
    if len(set(order.tolist())) < len(order) and float(worst.amax()) < LIMIT:
        return None, float(worst.amax())  # equal maps: which is which cannot be told
    return order, float(worst.amax())


def axes(layer: Layer, order: Tensor, right: Tensor | None, other: Tensor | None) -> str:
    """Whether the batch axis is the batch: only maps of the entry that was changed may have changed."""
    if layer.states and LayerState.AXES_UNKNOWN in layer.states:
        return "unknown"
    if right is None or other is None:
        return "unsteady"
    changed = ((right - other).abs().amax((-1, -2)) > 1e-6)[order]
    b, h = layer.weights.shape[:2]
    if not changed.any() or bool(changed.all()):
        return "same" if not changed.any() else "all"
    if b % BATCH:
        return f"wrong: {b} entries"
    entry = torch.arange(b) // (b // BATCH)
    wanted = (entry == 1)[:, None].expand(b, h).flatten()
    if bool((changed & ~wanted).any()):
        mixed = bool(changed[wanted].all())  # where it is said to be, and elsewhere: entries look at each other
        return "mixed" if mixed else "wrong: another entry changed"
    return "right"


def names(layer: Layer, inputs: Inputs, oracle: Recorder) -> str:
    """Whether tokens that were named are those that were given."""
    verdicts = []
    for tokens in (layer.queries, layer.keys):
        if tokens is None:
            verdicts.append("unknown")
            continue
        verdicts.append(name_of(tokens, inputs, oracle))
    return verdicts[0] if verdicts[0] == verdicts[1] else " / ".join(verdicts)


def name_of(tokens: Any, inputs: Inputs, oracle: Recorder) -> str:
    """What the tokens of one side are: ids that were given or embedded, or patches that lie as some picture did."""
    first = tokens[0]
    if first.grid is not None:
        return "patches" if first.grid in oracle.fields else f"other: a grid of {first.grid}, which nothing had"
    if first.ids is None:
        return f"labels: {' '.join(first.shown[:3])}"
    given = {
        name: x for name, x in inputs.items() if isinstance(x, Tensor) and x.ndim == 2 and not x.is_floating_point()
    }
    for name, ids in [*given.items(), *(("embedded", x) for x in oracle.embedded if x.ndim == 2)]:
        share = len(tokens) // len(ids)
        if share and all(list(map(int, one.ids)) == ids[i // share].tolist() for i, one in enumerate(tokens)):
            return name
    return f"other: {' '.join(first.shown[:3])}"
