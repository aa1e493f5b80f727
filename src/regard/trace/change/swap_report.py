"""What came of a swap: what the model gives, how long it takes, what it holds, layer by layer."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.trace.change.effect import Effect, SmallNumbers
from regard.trace.change.swap_listener import LayerSwap
from regard.trace.measure.table import HasTable, Record, Table

MB = 1 << 20


@dataclass(eq=False, repr=False)
class SwapReport(HasTable):
    """What a model gave with its own attention and with another, and what both took.

    `effect` compares the outputs position by position, `layers` says what became of each attention layer. Ratios are
    own / other: 2 is twice as fast, or half the memory. They are None where nothing was measured.
    """

    attention: str
    effect: Effect
    layers: dict[str, LayerSwap]
    seconds: float  # of the model as it is
    notes: list[str] = field(default_factory=list)

    @property
    def output(self) -> Any:
        """All that the model returned under the swap."""
        return self.effect.output

    @property
    def error(self) -> float:
        """‖other − own‖ / ‖own‖ of what the model gives, padding left out."""
        own, other = self.real(self.effect.before), self.real(self.effect.after)
        size = float(own.norm())
        away = float((other - own).norm())
        return away / size if size else float("inf") if away else 0.0

    @property
    def largest(self) -> float:
        """The largest change of any number that the model gives."""
        return self.effect.largest

    @property
    def agreement(self) -> float | None:
        """At how many positions, as a share, the strongest token stays the same; None where there are no logits."""
        if self.effect.kl is None:
            return None
        own, other = (self.real(x).argmax(-1) for x in (self.effect.before, self.effect.after))
        return float((own == other).double().mean()) if own.numel() else 1.0

    @property
    def kl(self) -> float | None:
        """The mean divergence of the other distribution from the own one, in nats; None where there are no logits."""
        kl = self.effect.kl
        return None if kl is None else self.effect.mean(kl)

    @property
    def swapped(self) -> list[str]:
        """The layers that were swapped."""
        return [name for name, layer in self.layers.items() if layer.swapped]

    @property
    def kept(self) -> dict[str, str]:
        """The layers that were left as they are, and why."""
        return {name: layer.why for name, layer in self.layers.items() if not layer.swapped}

    @property
    def attention_time(self) -> float | None:
        """How many times faster the swapped layers compute their attention."""
        own, new = self.attention_seconds()
        return own / new if own and new else None

    @property
    def time(self) -> float | None:
        """How many times faster the model is: its seconds, less its attention's, plus the other's."""
        own, new = self.attention_seconds()
        return self.seconds / max(self.seconds - own + new, new) if own and new else None

    @property
    def memory(self) -> float | None:
        """How many times less one call of attention holds at most; below 1 where the own kernel holds less."""
        own = max((layer.own.bytes or 0 for layer in self.layers.values() if layer.own), default=0)
        new = max((layer.new.bytes or 0 for layer in self.layers.values() if layer.new), default=0)
        return own / new if own and new else None

    def attention_seconds(self) -> tuple[float, float]:
        """Seconds of attention in all swapped layers, both ways; 0 where they were not measured."""
        both = [(layer.own.seconds, layer.new.seconds) for layer in self.layers.values() if layer.own and layer.new]
        return sum(own for own, _ in both), sum(new for _, new in both)

    def real(self, x: Tensor) -> Tensor:
        """Positions that are no padding."""
        x = x.detach().to(torch.float64)
        return x.reshape(-1, x.shape[-1]) if self.effect.real is None else x[self.effect.real]

    def table(self) -> Table:
        """One line for each attention layer, and what it comes to."""
        rows = [line(name, layer) for name, layer in self.layers.items()]
        for row in rows:
            if not self.kept:
                del row["left as it is, because"]
        return SmallNumbers(rows, self.title, [*self.sentences(), *self.notes])

    @property
    def title(self) -> str:
        return f"{self.attention} in {len(self.swapped)} of {len(self.layers)} layers"

    def sentences(self) -> list[str]:
        """What changed, how much faster, how much smaller, and how that was measured."""
        off = f"{self.effect.what}: off by {self.error:.2%} of its size, {self.largest:.3g} at most"
        if self.agreement is not None and self.kl is not None:
            off += f"; the strongest agrees at {self.agreement:.1%} of positions, KL {self.kl:.3g} nats on average"
        found = [off]
        if self.time is not None:
            found.append(
                f"time: attention {self.attention_time:.3g} × as fast, the model {self.time:.3g} × (its own time, less "
                "its attention, plus the other, both measured on the same tensors, the least of 3)"
            )
        held = [layer for layer in self.layers.values() if layer.new is not None and layer.new.bytes is not None]
        if held:
            own = max((layer.own.bytes or 0 for layer in held if layer.own), default=0)
            new = max(layer.new.bytes or 0 for layer in held if layer.new)
            matrix = max(layer.matrix for layer in held)
            found.append(
                f"memory: one call of attention holds {new / MB:.3g} MB at most beyond q, k, v, mask and mix; its own "
                f"{own / MB:.3g} MB, the matrix of weights would be {matrix / MB:.3g} MB"
            )
        return found


def line(name: str, layer: LayerSwap) -> Record:
    """One layer."""
    own, new = layer.own, layer.new
    faster = own.seconds / new.seconds if own and new and new.seconds else None
    return {
        "layer": name,
        "kind": layer.kind,
        "q": layer.q,
        "k": layer.k,
        "path": layer.path or None,
        "× as fast": faster,
        "MB": None if new is None or new.bytes is None else new.bytes / MB,
        "own MB": None if own is None or own.bytes is None else own.bytes / MB,
        "left as it is, because": layer.why or None,
    }
