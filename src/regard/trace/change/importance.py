"""Which heads matter: each is muted in turn, and what changes is measured."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.errors import WatchError
from regard.trace.change.aim import LayerName, parts_of
from regard.trace.change.edit_listener import EditListener
from regard.trace.change.edits import HOW, Mute, describe_edit
from regard.trace.change.effect import SmallNumbers, compare_outputs
from regard.trace.change.listener import CallName
from regard.trace.change.references import make_feeder
from regard.trace.doors.handwritten import settle
from regard.trace.doors.install import listening, must_be_watchable
from regard.trace.measure.bar import bar
from regard.trace.measure.table import Record

Metric = Callable[[Any], Any]


@dataclass(repr=False)
class Importance(SmallNumbers):
    """One line per head, the most important first: the metric without it and how far that moved.

    Without a metric the columns are `kl`, the mean divergence of the output's distribution over positions in nats,
    and `largest`, the largest change of a number; for a model that gives hidden states, `relative`, the size of the
    change as a share of the size of the output.

    >>> Importance([{"layer": "layers.0", "head": 3, "kl": 0.000125}])
    layer     head        kl
    layers.0     3  0.000125
    """

    baseline: float | None = None  # the metric of the model as it is


def importance(
    model: Any,
    inputs: Any,
    metric: Any = None,
    *,
    how: str = "zero",
    layers: Any = None,
    progress: bool = True,
) -> Importance:
    """Mute every head in turn, and rank the heads by what that changes (Michel et al. 2019, arXiv 1905.10650).

    `inputs` are what the model is called with: a mapping, a tuple, or one tensor; padding is left out by
    `attention_mask`. `metric` is a function of what the model returns, "loss" for the loss of a model that was given
    labels, or None for how far the output moves: then it is the KL divergence between the distributions of the logits.
    `how` is how heads are muted, as in `edit`; `layers` limits it to parts of paths, each of which may fit several.

    One run per head, without gradients, in the mode that the model is in; every run draws the same random numbers.

    >>> import torch
    >>> layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with torch.no_grad():
    ...     _ = layer.self_attn.out_proj.weight[:, 4:].zero_()  # nobody listens to head 1
    >>> found = importance(layer, torch.randn(1, 3, 8), progress=False)
    >>> [(row["head"], row["kl"] > 1e-6) for row in found.rows]
    [(0, True), (1, False)]
    """
    must_be_watchable(model)
    if how not in HOW:
        raise WatchError(f"heads are muted by {', '.join(HOW)}, but how={how!r} came")
    if metric is not None and metric != "loss" and not callable(metric):
        raise WatchError(f"metric is {metric!r}; give a function of the model's output, 'loss', or None")
    measure: Metric | None = loss_of if isinstance(metric, str) else metric
    listener = EditListener(model)
    chosen = parts_of(layers, listener.tree)
    call = make_feeder(model, inputs)
    with torch.no_grad(), listening(listener) as scope:

        def run() -> Any:
            with torch.random.fork_rng():
                found = call()
            settle(scope)
            listener.finish()
            return found

        before = run()
        heads = [(name, head) for name, count in pick_layers(listener, chosen).items() for head in range(count)]
        base = None if measure is None else as_number(measure(before))
        rows: list[Record] = []
        with bar("importance", len(heads), rate="heads", shown=progress) as advance:
            for name, head in heads:
                at = LayerName(name.layer, name.path, 0, name.number)
                muting = Mute(describe_edit("mute", name.layer, (head,)), (at,), (head,), how)
                listener.edits, listener.reach = [muting], {}
                after = run()
                row: Record = {"layer": name.layer, "head": head}
                if measure is None or base is None:
                    rows.append(row | measure_change(before, after, inputs, model))
                else:
                    value = as_number(measure(after))
                    rows.append(row | {"metric": value, "change": value - base})
                advance(1)
    by = next(name for name in ("change", "kl", "relative") if name in rows[0])
    rows.sort(key=lambda row: -abs(float(str(row[by]))))
    muted = {"zero": "muted", "mean": "muted to its mean", "resample": "muted by another input's"}[how]
    said_base = "" if base is None else f"; the metric is {base:.4g} as the model is"
    title = f"{type(model).__name__}: what changes when a head is {muted}{said_base}"
    return Importance(rows, title, notes_of(listener), base)


def pick_layers(listener: EditListener, chosen: tuple[LayerName, ...] | None) -> dict[CallName, int]:
    """The layers that the model ran, with their number of heads, as far as they were asked for."""
    if not listener.heads:
        why = "; ".join(notes_of(listener))
        raise WatchError(f"no attention was seen in the model, so there is no head to mute{f': {why}' if why else ''}")
    if chosen is None:
        return listener.heads
    found = {name: count for name, count in listener.heads.items() if name.fits(chosen)}
    if not found:
        raise WatchError(
            f"no attention of the model fits {', '.join(repr(part.said) for part in chosen)}; "
            f"it has it at: {', '.join(name.layer for name in list(listener.heads)[:8])}"
        )
    return found


def notes_of(listener: EditListener) -> list[str]:
    """What has no line, one sentence each."""
    return [*listener.notes(), *(f"{layer} was left out: {why}" for layer, why in listener.headless.items())]


def measure_change(before: Any, after: Any, inputs: Any, model: Any = None) -> Record:
    """How far the output moved."""
    effect = compare_outputs(before, after, dict(inputs) if hasattr(inputs, "keys") else {}, model=model)
    if effect.kl is not None:
        return {"kl": effect.mean(effect.kl), "largest": effect.largest}
    real = torch.ones(effect.before.shape[:-1], dtype=torch.bool) if effect.real is None else effect.real
    size = float(effect.before[real].norm())
    return {
        "relative": float((effect.after - effect.before)[real].norm()) / max(size, 1e-30),
        "largest": effect.largest,
    }


def loss_of(output: Any) -> Any:
    """The loss among what a model returned."""
    found = output.get("loss") if hasattr(output, "get") else getattr(output, "loss", None)
    if found is None:
        raise WatchError("the model returned no loss; give it labels among the inputs, or a function as the metric")
    return found


def as_number(given: Any) -> float:
    """One number, whatever holds it."""
    try:
        if isinstance(given, Tensor) and given.numel() != 1:
            raise TypeError
        return float(given)
    except (TypeError, ValueError):
        what = f"a tensor of shape {tuple(given.shape)}" if isinstance(given, Tensor) else type(given).__name__
        raise WatchError(f"a metric gives one number, but {what} came; add it up, or take its mean") from None
