"""Whether a watch misses anything: one forward pass in which torch itself counts the attention that runs."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from regard.trace.doors.call_site import tree_of
from regard.trace.proof.count import AttentionCounter
from regard.trace.record.missed import MissedAttention, incomplete_line
from regard.trace.watch import watch


@dataclass(frozen=True)
class Audit:
    """How many attentions torch ran, how many the watch saw, and how many it named as refused."""

    ran: int
    seen: int
    refused: int
    kernels: dict[str, int]
    uncounted: str = ""  # why torch could not count to the end
    missed: tuple[MissedAttention, ...] = ()  # what the watch itself knows that it did not hear
    by_hand: tuple[str, ...] = ()  # modules in which torch counted products by hand

    def __bool__(self) -> bool:
        return not self.uncounted and not self.missed and self.ran == self.seen + self.refused

    def __repr__(self) -> str:
        told = ", ".join(f"{count} × {name}" for name, count in sorted(self.kernels.items())) or "none"
        if self.uncounted:
            return f"torch could not count all attention of this model: {self.uncounted}"
        if self:
            return f"nothing missed: {self.ran} ran ({told}), {self.seen} seen, {self.refused} refused by name"
        unseen = self.ran - self.seen - self.refused
        what = [f"{unseen} not seen" if unseen > 0 else f"{-unseen} more seen than counted"] if unseen else []
        if self.by_hand and unseen > 0:
            what.append(f"written by hand in {', '.join(self.by_hand)}")
        if self.missed:
            what.append(incomplete_line(self.missed))
        return (
            f"{self.ran} attentions ran ({told}), {self.seen} were seen and {self.refused} refused: {'; '.join(what)}; "
            "a softmax that is no attention counts as one, and another thread, a compiled graph or a foreign kernel is "
            "not heard"
        )


def audit(model: nn.Module, *args: Any, **named: Any) -> Audit:
    """Run the model once and count: `audit(model, **inputs)` says whether a watch would miss anything.

    >>> import torch, regard
    >>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.ones(1, 3, 8)
    >>> regard.audit(model, x, x, x)
    nothing missed: 1 ran (1 × _softmax), 1 seen, 0 refused by name
    """
    counting = AttentionCounter(tree_of(model), (args, named))
    uncounted = ""
    with torch.random.fork_rng(devices=[]), watch(model, values=False) as trace, counting:
        try:
            model(*args, **named)
        except RuntimeError as error:
            if "dispatch mode" not in str(error):
                raise
            torch._dynamo.reset()  # what failed to compile under the count would fail ever after
            uncounted = "flex_attention does not run while torch counts"
    seen = sum(len(run.layers) for run in trace.runs)
    refused = sum(len(run.refused) for run in trace.runs)
    missed = tuple(one for run in trace.runs for one in run.missed)
    found = dict(counting.found)
    return Audit(sum(found.values()), seen, refused, found, uncounted, missed, tuple(counting.by_hand))
