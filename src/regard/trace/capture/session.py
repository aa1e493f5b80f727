"""One run of a model while it is captured."""

from dataclasses import dataclass, field
from types import FrameType

import torch
from torch import Tensor

from regard.trace.capture.layer_capture import LayerCapture
from regard.trace.capture.match import drop_unmoved
from regard.trace.residual.stream import ResidualStream

Key = tuple[str, int]


@dataclass(eq=False)
class Session:
    """One top-level method of the model that is running, or ran: a forward pass, or a whole `generate()`."""

    frame: FrameType | None
    held: dict[Key, LayerCapture] = field(default_factory=dict)
    steps: int = 0
    pixels: tuple[int, ...] | None = None
    refused: dict[str, str] = field(default_factory=dict)
    missed: dict[tuple[str, str], int] = field(default_factory=dict)  # path and what it looked like → how often
    changes: dict[str, None] = field(default_factory=dict)  # what was edited, also in layers that are not kept
    origins: dict[int, Tensor] = field(default_factory=dict)  # step → b b: which entries each one may continue
    stayed: set[int] = field(default_factory=set)  # steps at which all keys of some layer say: each one itself
    sequences: Tensor | None = None  # what `generate` gave back, once it is known
    residual: ResidualStream | None = None  # beyond attention, where that was asked for

    def links(self) -> dict[int, Tensor]:
        """Which entries each one may continue, by all layers together; no item where each can only be itself.

        Where one layer tells entries apart that look alike in the window of another, it decides.
        """
        found = {}
        for step, origins in self.origins.items():
            itself = origins.diagonal() & (step in self.stayed)
            only = torch.where(itself[:, None], torch.eye(len(origins), dtype=torch.bool), origins)
            if drop_unmoved(only) is not None:
                found[step] = only
        return found


def result_of(frame: FrameType) -> Tensor | None:
    """The sequences that a finished `generate` gave back, read from what its frame still holds."""
    if frame.f_code.co_name != "generate":
        return None
    for name in ("result", "outputs", "output"):
        found = frame.f_locals.get(name)
        found = getattr(found, "sequences", found)
        if isinstance(found, Tensor) and found.ndim == 2 and not found.is_floating_point():
            return found.detach().cpu().clone()
    return None
