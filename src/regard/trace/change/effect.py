"""What an edit changed in what the model gives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.errors import WatchError
from regard.tokens import Reader
from regard.trace.measure.table import DIGITS, HasTable, Record, Table, format_cell

FIELDS = ("logits", "last_hidden_state")
TOP = 5


class SmallNumbers(Table):
    """A table whose numbers may be small: they are shown to so many digits, not to so many places."""

    def cells(self) -> list[list[str]]:
        values = [[row.get(name) for name in self.columns] for row in self.rows]
        return [
            [f"{value:.{DIGITS}g}" if isinstance(value, float) else format_cell(value) for value in row]
            for row in values
        ]


@dataclass(eq=False, repr=False)
class Effect(HasTable):
    """What a model gave without and with edits, and how far apart the two are.

    `before` and `after` are (…, n): logits, or what else the model returned. `kl` is the divergence of the edited
    distribution from the plain one, $\\sum_i p_i \\log(p_i / p'_i)$ in nats, for every position; None where the output
    is no logits. `records()` has one line for each position, `top()` the strongest tokens of one of them.

    >>> change = Effect(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([[0.0, 2.0, 0.0]]), "logits")
    >>> change
    logits: largest change 2, KL 1.36 nats on average, 1.36 at most
    position    kl  change  before  p before  after  p after
           0  1.36       2  0          0.787  1        0.787
    >>> change.top(1)
    the strongest tokens, by probability
    token  before  after  change
    1       0.107  0.787    0.68
    0       0.787  0.107   -0.68
    """

    before: Tensor
    after: Tensor
    what: str  # what was compared: "logits", "last_hidden_state" or "output"
    real: Tensor | None = None  # …: which positions are no padding
    ids: Tensor | None = None  # the tokens that went in, one per position, where they are known
    reader: Reader | None = None
    notes: list[str] = field(default_factory=list)
    output: Any = None  # all that the edited model returned

    @property
    def change(self) -> Tensor:
        """(…): the largest change of a number, at each position; 0 at padding."""
        found = (self.after - self.before).abs().amax(-1)
        return found if self.real is None else found.masked_fill(~self.real, 0.0)

    @property
    def largest(self) -> float:
        """The largest change of any number."""
        return float(self.change.max()) if self.change.numel() else 0.0

    @property
    def kl(self) -> Tensor | None:
        """(…): how far the distribution of each position moved, in nats; 0 at padding."""
        if self.what == "last_hidden_state":
            return None
        p, other = (x.double().log_softmax(-1) for x in (self.before, self.after))
        found = torch.where(p == -torch.inf, 0.0, p.exp() * (p - other)).sum(-1).clamp_min(0.0)
        return found if self.real is None else found.masked_fill(~self.real, 0.0)

    def mean(self, values: Tensor) -> float:
        """The mean over positions that are no padding."""
        count = values.numel() if self.real is None else int(self.real.sum())
        return float(values.sum()) / max(1, count)

    def top(self, count: int = TOP, *, position: int = -1, batch: int = 0) -> Table:
        """The strongest tokens of one position, before or after, with their share of the probability in both."""
        if self.kl is None:
            raise WatchError(f"the model gave {self.what}, which has no tokens to rank; edit a model that gives logits")
        if count < 1:
            raise WatchError(f"{count} tokens were asked for; give how many, from 1, and name the place with position=")
        at = self.flat(position, batch)
        p, other = (x.flatten(0, -2)[at].softmax(-1) for x in (self.before, self.after))
        count = min(count, p.shape[-1])
        chosen = list(dict.fromkeys([*p.topk(count).indices.tolist(), *other.topk(count).indices.tolist()]))
        rows: list[Record] = [
            {"token": self.name(i), "before": float(p[i]), "after": float(other[i]), "change": float(other[i] - p[i])}
            for i in sorted(chosen, key=lambda i: -float(other[i]))
        ]
        return SmallNumbers(rows, "the strongest tokens, by probability")

    def flat(self, position: int, batch: int) -> int:
        """The number of one position when all are counted in a row."""
        lead = self.before.shape[:-1]
        entries, length = (1, lead[0]) if len(lead) == 1 else (lead[0], lead[1:].numel()) if lead else (1, 1)
        if not -length <= position < length or not -entries <= batch < entries:
            raise WatchError(
                f"position {position} of entry {batch} was asked for, but there are {length} positions in {entries} "
                "entries; count from 0"
            )
        return (batch % entries) * length + position % length

    def name(self, token: int) -> str:
        """A token as text, or its number."""
        return str(token) if self.reader is None else self.reader([token]).shown[0]

    def table(self) -> Table:
        """One line for each position that is no padding."""
        lead, kl, change = self.before.shape[:-1], self.kl, self.change.reshape(-1)
        places = torch.cartesian_prod(*(torch.arange(n) for n in lead)).reshape(-1, max(1, len(lead))).tolist()
        names = ("position",) if len(lead) == 1 else ("batch", "position", *(f"axis {i}" for i in range(2, len(lead))))
        real = None if self.real is None else self.real.reshape(-1).tolist()
        tokens = None if self.ids is None else self.ids.reshape(-1).tolist()
        p, other = (
            x.flatten(0, -2).softmax(-1).max(-1) if lead else x.softmax(-1)[None].max(-1)
            for x in (self.before, self.after)
        )
        rows: list[Record] = []
        for i, place in enumerate(places):
            if real is not None and not real[i]:
                continue
            row: Record = dict(zip(names, place)) if lead else {}
            if tokens is not None:
                row["token"] = self.name(int(tokens[i]))
            if kl is not None:
                row["kl"] = float(kl.reshape(-1)[i])
            row["change"] = float(change[i])
            if kl is not None:
                row |= {"before": self.name(int(p.indices[i])), "p before": float(p.values[i])}
                row |= {"after": self.name(int(other.indices[i])), "p after": float(other.values[i])}
            rows.append(row)
        return SmallNumbers(rows, self.title, list(self.notes))

    @property
    def title(self) -> str:
        kl = self.kl
        moved = (
            ""
            if kl is None
            else f", KL {self.mean(kl):.3g} nats on average, {float(kl.max()) if kl.numel() else 0:.3g} at most"
        )
        return f"{self.what}: largest change {self.largest:.3g}{moved}"


def compare_outputs(
    before: Any,
    after: Any,
    inputs: Mapping[str, Any],
    tokenizer: Any = None,
    read: Callable[[Any], Tensor] | None = None,
    notes: list[str] | None = None,
    *,
    model: Any = None,
) -> Effect:
    """The effect, from what the model returned without and with edits.

    A `model` whose `gives_states` is True returns hidden states, which are no logits even where nothing names them.
    """
    first, what = numbers_of(before, read)
    if what == "output" and read is None and getattr(model, "gives_states", False):
        what = "last_hidden_state"
    second, _ = numbers_of(after, read)
    if first.shape != second.shape:
        raise WatchError(
            f"the model gave {tuple(first.shape)} and, edited, {tuple(second.shape)}, which do not compare"
        )
    lead = first.shape[:-1]
    mask, ids = inputs.get("attention_mask"), inputs.get("input_ids")
    real = mask.bool() if isinstance(mask, Tensor) and mask.shape == lead else None
    fed = ids if isinstance(ids, Tensor) and ids.shape == lead else None
    reader = None if tokenizer is None else Reader(tokenizer)
    return Effect(first.detach(), second.detach(), what, real, fed, reader, notes or [], after)


def numbers_of(output: Any, read: Callable[[Any], Tensor] | None = None) -> tuple[Tensor, str]:
    """The tensor to compare among what a model returned, (…, n) in float32 or better, and what it is."""
    found, what = output, "output"
    if read is not None:
        found = read(output)
    else:
        for name in FIELDS:
            inner = output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)
            if isinstance(inner, Tensor):
                found, what = inner, name
                break
        else:
            if isinstance(output, list | tuple):
                found = next((x for x in output if isinstance(x, Tensor) and x.is_floating_point()), output)
    if not isinstance(found, Tensor) or not found.is_floating_point() or not found.ndim:
        raise WatchError(
            f"the model returned {type(output).__name__} without logits; give edit(model, read=…) a function that "
            "picks the tensor to compare"
        )
    return found if found.dtype == torch.float64 else found.float(), what
