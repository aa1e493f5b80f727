"""Direct logit attribution: what each embedding, head and MLP adds to a logit through the residual stream."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.attention.axes.heads import multiply_grouped
from regard.errors import TraceError
from regard.tokens import Reader, as_tokenizer
from regard.trace.change.effect import SmallNumbers
from regard.trace.measure.table import Record
from regard.trace.record.trace import Run, Trace, find
from regard.trace.residual.known import MadeTensor
from regard.trace.residual.stream import NOT_KEPT, ResidualStream, StreamOutput, in_order
from regard.trace.residual.terms import CastTerm, Coefficients, MixTerm, NormTerm, PartTerm, ScaleTerm, Term

BIASES = "biases"


@dataclass(repr=False)
class Attribution(SmallNumbers):
    """One line for each part of a logit, the largest first; together they are the logit, as far as rounding allows.

    `logit` is what the model gave, `total` what the parts add up to. Each row's scale in a norm is held as it was, so
    that a norm is linear: `held` names those norms. A part acts directly on the logit here; what it changes about
    later heads and MLPs is in theirs.

    >>> Attribution([{"part": "embed", "kind": "embedding", "head": None, "logit": 1.5}], logit=1.5, total=1.5)
    part   kind       head  logit
    embed  embedding  –     1.5
    """

    logit: float = 0.0
    total: float = 0.0
    held: tuple[str, ...] = field(default_factory=tuple)

    @property
    def error(self) -> float:
        """How far the parts are from the model's own logit."""
        return self.total - self.logit


@dataclass(eq=False)
class LogitParts:
    """The parts of one logit while they are added up."""

    sizes: dict[tuple[str, str, int | None], float] = field(default_factory=dict)
    magnitude: float = 0.0  # of all that was added, without signs: what rounding goes by
    held: dict[str, None] = field(default_factory=dict)
    steps: int = 0
    eps: float = 0.0  # of the coarsest type on the way
    heads: bool = False
    whole: dict[str, None] = field(default_factory=dict)  # attention whose heads are not told apart

    def add(self, name: str, kind: str, head: int | None, summands: Tensor) -> None:
        key = (name, kind, head)
        self.sizes[key] = self.sizes.get(key, 0.0) + float(summands.sum())
        self.magnitude += float(summands.abs().sum())


def attribute(
    trace: Trace, token: Any = None, *, position: int = -1, batch: int = 0, against: Any = None
) -> Attribution:
    """The parts of a logit of the last run: the embeddings, each head, each MLP, and all biases together.

    `token` is an id or a text that is one token, the strongest one unless given; `against` is another, whose logit is
    taken off. The trace must come of `watch(residual=True)` and of one call of the model. The norms' scales are held.

    >>> import regard
    >>> model, tokenizer = regard.open_model("induction")
    >>> ids = torch.tensor([tokenizer.encode("A B C D A B C")])
    >>> with torch.no_grad(), regard.watch(model, tokenizer, residual=True) as trace:
    ...     logits = model(ids)
    >>> found = attribute(trace, "D")
    >>> abs(found.total - float(logits[0, -1, 3])) < 1e-4, found.rows[0]["kind"]
    (True, 'head')
    """
    run = trace.runs[-1] if trace.runs else Run()
    stream, output = output_of(run)
    logits = output.kept.value()
    place = place_in(logits, position, batch, last=output.last)
    row = logits[place]
    first = int(row.argmax()) if token is None else token_id(token, stream, row.shape[-1])
    other = None if against is None else token_id(against, stream, row.shape[-1])
    root = output.root
    assert isinstance(root, Term)
    start = 0
    for n, at in zip(root.shape[:-1], place_in_shape(root.shape, position, batch)):
        start = start * n + at
    ids = [first] if other is None else [first, other]
    signs = [1.0, -1.0][: len(ids)]
    begin = Coefficients(
        torch.tensor([start * root.shape[-1] + one for one in ids], device=logits.device),
        torch.tensor(signs, dtype=torch.float64, device=logits.device),
    )
    parts = walk_back(root, begin, run)
    logit = sum(sign * float(row[one]) for sign, one in zip(signs, ids))
    must_add_up(parts, logit, row.dtype)
    rows: list[Record] = [
        {"part": name, "kind": kind, "head": head, "logit": size}
        for (name, kind, head), size in sorted(parts.sizes.items(), key=lambda item: -abs(item[1]))
    ]
    total = sum(parts.sizes.values())
    names = " − ".join(name_token(one, stream) for one in ids)
    title = (
        f"logit of {names} at position {position}: {logit:.4g}; the parts add up to it, off by {abs(total - logit):.1e}"
    )
    return Attribution(rows, title, notes_of(parts), logit, total, tuple(parts.held))


def output_of(run: Run) -> tuple[ResidualStream, StreamOutput]:
    """The only output of a run that can be taken apart, or why there is none."""
    stream = run.residual
    if stream is None or not stream.recorded:
        raise TraceError(f"the residual stream of this run was not kept; {NOT_KEPT}")
    if not stream.outputs:
        raise TraceError(
            "the model itself was not called, or returned no logits, so there is no logit to take apart; call the "
            "watched model"
        )
    if len(stream.outputs) > 1:
        raise TraceError(
            f"the run has {len(stream.outputs)} calls of the model, as generate makes them, and attribution is of one; "
            "run the model on the whole text at once"
        )
    output = stream.outputs[0]
    if isinstance(output.root, Term):
        return stream, output
    made = output.root
    what = "" if not isinstance(made, MadeTensor) else f": {made.operator} in {(made.chain or ('',))[0] or 'the model'}"
    raise TraceError(
        "between the residual stream and what the model returned stands something that is neither linear nor a norm"
        f"{what}, so its logits are no sum of what heads and MLPs gave"
    )


def walk_back(root: Term, begin: Coefficients, run: Run) -> LogitParts:
    """From some logits back to all that was added up."""
    found = LogitParts()
    known: dict[int, list[Coefficients]] = {id(root): [begin]}
    for term in in_order(root):
        mine = known.pop(id(term), [])
        found.steps += 1
        if not mine:
            continue
        out = Coefficients(torch.cat([one.at for one in mine]), torch.cat([one.c for one in mine]))
        if not len(out.at):
            continue
        if isinstance(term, PartTerm):
            value = term.kept.value()
            summands = out.c * value[torch.unravel_index(out.at, term.shape)].to(out.c)
            name, kind = (BIASES, "bias") if term.kind == "bias" else (term.name, term.kind)
            found.add(name, kind, None, summands)
            if kind == "attention":
                found.whole[name] = None
            continue
        if isinstance(term, MixTerm):
            found.heads = True
            add_heads(found, term, out, run)
            continue
        if isinstance(term, CastTerm):
            found.eps = max(found.eps, torch.finfo(term.dtype).eps)
        if isinstance(term, NormTerm | ScaleTerm) and term.place is not None:
            found.held[term.place or "the model"] = None
        inner, constant = term.back(out)
        found.add(BIASES, "bias", None, out.c.new_tensor([constant]))
        for one, coefficients in zip(term.inputs, inner):
            known.setdefault(id(one), []).append(coefficients)
    if not found.heads and not found.whole:
        raise TraceError(
            "nothing that attention gave reaches this logit by steps that are linear or norms, so it cannot be taken "
            "apart into heads"
        )
    return found


def add_heads(found: LogitParts, term: MixTerm, out: Coefficients, run: Run) -> None:
    """What the heads of a layer add: the rows of their maps that matter, times the values."""
    layer = find(run.layers, term.layer)
    numbers = term.to_bhqe(torch.arange(len_of(term.shape), device=out.at.device).reshape(term.shape))
    place = torch.empty_like(numbers.reshape(-1))
    place[numbers.reshape(-1)] = torch.arange(numbers.numel(), device=place.device)
    b, h, q, e = torch.unravel_index(place[out.at], tuple(numbers.shape))
    if layer.v is None or layer.weights.shape[-2] != numbers.shape[2]:
        raise TraceError(f"{layer.name} keeps no values of this call; watch it with values=True, in one call")
    found.eps = max(found.eps, torch.finfo(layer.weights.dtype).eps)
    summands = torch.empty_like(out.c)
    for entry, row in torch.stack([b, q], 1).unique(dim=0).tolist():
        here = (b == entry) & (q == row)
        mix = mix_row(layer, entry, row)
        summands[here] = out.c[here] * mix[h[here], e[here]]
    for head in range(layer.heads):
        found.add(term.layer, "head", head, summands[h == head])


def mix_row(layer: Any, entry: int, row: int) -> Tensor:
    """(h, e), float64: what the heads give at one row."""
    weights = layer.weights[entry][..., [row], :]  # h 1 k
    v = layer.v[min(entry, layer.v.shape[0] - 1), :, : weights.shape[-1]]  # g k e
    mix: Tensor = multiply_grouped(weights.double(), v.double())[:, 0]
    return mix


def must_add_up(parts: LogitParts, logit: float, dtype: torch.dtype) -> None:
    """Raise where the parts are not the logit, by more than rounding explains."""
    total = sum(parts.sizes.values())
    slack = max(parts.eps, torch.finfo(dtype).eps) * parts.magnitude * (8 + parts.steps)
    if not abs(total - logit) <= slack:
        raise TraceError(
            f"the parts add up to {total:.6g}, but the logit is {logit:.6g}, and rounding explains {slack:.1g} of "
            "that; something changed the residual stream that was not seen"
        )


def place_in(x: Tensor, position: int, batch: int, *, last: bool = False) -> tuple[int, ...]:
    """Where a row of logits stands: (b, n, v), or (b, v) or (n, v)."""
    if last and position not in (-1,):
        raise TraceError("only the logits of the last position were kept, because they are many; ask for position=-1")
    return place_in_shape(tuple(x.shape), position, batch)


def place_in_shape(shape: tuple[int, ...], position: int, batch: int) -> tuple[int, ...]:
    lead = shape[:-1]
    asked = (batch, position)[-len(lead) :] if len(lead) == 2 else (batch,) if len(lead) == 1 else None
    if asked is None:
        raise TraceError(f"what the model returned has shape {shape}; attribution wants logits (b, n, v) or (b, v)")
    for n, at in zip(lead, asked):
        if not -n <= at < n:
            raise TraceError(f"position {position} of entry {batch} was asked for, but the logits have shape {shape}")
    return tuple(at % n for n, at in zip(lead, asked))


def len_of(shape: tuple[int, ...]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count


def token_id(token: Any, stream: ResidualStream, size: int) -> int:
    """A token as its id."""
    if isinstance(token, str):
        if stream.tokenizer is None:
            raise TraceError(f"token {token!r} came, but the watch was given no tokenizer; give its id")
        ids = as_tokenizer(stream.tokenizer).encode(token)
        if len(ids) != 1:
            raise TraceError(f"{token!r} is {len(ids)} tokens, {list(ids)}; give a text that is one token, or an id")
        token = ids[0]
    if not isinstance(token, int) or not 0 <= token < size:
        raise TraceError(f"token {token!r} was asked for, but there are {size} logits; give an id from 0 to {size - 1}")
    return token


def name_token(token: int, stream: ResidualStream) -> str:
    """A token as text, or its number."""
    return str(token) if stream.tokenizer is None else repr(Reader(stream.tokenizer)([token]).shown[0])


def notes_of(parts: LogitParts) -> list[str]:
    """How norms were handled, and which heads are not told apart."""
    notes = []
    if parts.held:
        notes.append(f"– the scale by which a norm multiplies each row is held as it was: {list_few(parts.held)}")
    if parts.whole:
        notes.append(f"– heads are not told apart, as edited, dropped or not heard, in {list_few(parts.whole)}")
    return notes


def list_few(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:3]) + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")
