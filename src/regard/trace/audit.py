"""Whether a watch misses anything: one forward pass in which torch itself counts the attention that runs."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from regard.trace.watch import watch

FUSED = ("_scaled_dot_product", "_native_multi_head_attention", "_transformer_encoder_layer_fwd")


SOFTMAX = ("_softmax", "_safe_softmax")


def over_rows(scores: Any, dim: int) -> bool:
    """Whether a softmax runs over rows that could be a map's."""
    return scores.ndim >= 3 and dim in (-1, scores.ndim - 1)


@dataclass(frozen=True)
class Audit:
    """How many attentions torch ran, how many the watch saw, and how many it named as refused."""

    ran: int
    seen: int
    refused: int
    kernels: dict[str, int]
    uncounted: str = ""  # why torch could not count to the end

    def __bool__(self) -> bool:
        return not self.uncounted and self.ran == self.seen + self.refused

    def __repr__(self) -> str:
        told = ", ".join(f"{count} × {name}" for name, count in sorted(self.kernels.items())) or "none"
        if self.uncounted:
            return f"torch could not count all attention of this model: {self.uncounted}"
        if self:
            return f"nothing missed: {self.ran} ran ({told}), {self.seen} seen, {self.refused} refused by name"
        missed = self.ran - self.seen - self.refused
        what = f"{missed} not seen" if missed > 0 else f"{-missed} more seen than counted"
        return (
            f"{self.ran} attentions ran ({told}), {self.seen} were seen and {self.refused} refused: {what}; a softmax "
            "that is no attention counts as one, and another thread, a compiled graph or a foreign kernel is not heard"
        )


class KernelCounter(TorchDispatchMode):
    """Counts what computes attention below autograd: fused kernels, and softmaxes over rows of a map."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), named: Any = None) -> Any:
        name = str(getattr(function, "__name__", function)).partition(".")[0]
        fused = name.startswith(FUSED) or name == "flex_attention"
        if "backward" not in name and (fused or (name in SOFTMAX and over_rows(*args[:2]))):
            self.found[name] += 1
        return function(*args, **(named or {}))


def audit(model: nn.Module, *args: Any, **named: Any) -> Audit:
    """Run the model once and count: `audit(model, **inputs)` says whether a watch would miss anything.

    >>> import torch, regard
    >>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.ones(1, 3, 8)
    >>> regard.audit(model, x, x, x)
    nothing missed: 1 ran (1 × _softmax), 1 seen, 0 refused by name
    """
    counting = KernelCounter()
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
    return Audit(sum(counting.found.values()), seen, refused, dict(counting.found), uncounted)
