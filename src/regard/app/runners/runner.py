"""The skeleton of a run: read what was asked, watch the model, collect what it gave, and do so again under edits.

An adapter for a kind of model says how it reads a request, what one forward pass over all that was fed gives, and,
where it writes, how it writes.
"""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch

from regard.app.protocol.messages import EditSpec, ModelOutput, Probability, RunRequest, ShownPicture
from regard.app.runners.edits import apply_edits, is_positional
from regard.app.runners.monitor import RunMonitor
from regard.app.runners.probabilities import Prediction, describe_output, divergence, top_of_both
from regard.trace.record.trace import Trace
from regard.trace.watch import watch

Inputs = dict[str, Any]  # plain values from which a run can be made again; "written" are the ids that the model wrote


@dataclass
class RunResult:
    """A run: what was attended to, what came out, and what is needed to run it again."""

    trace: Trace
    output: ModelOutput
    inputs: Inputs
    picture: ShownPicture | None = None


@dataclass
class EditResult:
    """A run under edits, beside what it was."""

    trace: Trace
    output: ModelOutput
    before: list[Probability] = field(default_factory=list)
    after: list[Probability] = field(default_factory=list)
    before_text: str | None = None
    after_text: str | None = None
    kl: float | None = None


class Runner(ABC):
    """A model that is open: runs on a request, and again under edits."""

    model: Any  # the module
    stepwise = False  # whether the model calls its attention once for each query

    @torch.no_grad()
    def run(self, request: RunRequest, monitor: RunMonitor) -> RunResult:
        """Read what was asked, and write where the model writes."""
        inputs = self.read(request, monitor)
        layers = self.layer_names(inputs) if request.edits else []
        if request.edits and not self.is_streaming(inputs):
            edited = self.run_again(inputs, layers, request.edits, monitor)
            return RunResult(edited.trace, edited.output, inputs, self.picture(inputs))
        with self.watch(inputs) as trace, self.edit(layers, request.edits):
            streaming = self.is_streaming(inputs)
            prediction = self.stream(inputs, monitor, trace) if streaming else self.forward(inputs)
        return RunResult(trace, describe_output(prediction, self.written_text(inputs)), inputs, self.picture(inputs))

    @torch.no_grad()
    def run_again(self, inputs: Inputs, layers: list[str], edits: list[EditSpec], monitor: RunMonitor) -> EditResult:
        """Run the same inputs as they are and under edits, which count `layers`.

        The map is of the same tokens as before, read in one pass; texts are written anew.
        """
        before = self.forward(inputs)
        with self.watch(inputs) as trace, self.edit(layers, edits):
            after = self.forward(inputs)
        monitor.must_go_on()
        whole = is_positional(edits)
        texts = [self.rewrite(inputs, layers, some, monitor, whole=whole) for some in ([], edits)]
        result = EditResult(trace, describe_output(after, texts[1]), before_text=texts[0], after_text=texts[1])
        if before is not None and after is not None:
            result.kl = divergence(before.logits, after.logits)
            if before.is_single:
                result.before, result.after = top_of_both(before.logits, after.logits, before.name)
        return result

    def layer_names(self, inputs: Inputs) -> list[str]:
        """The layers that edits count, in the order of a trace."""
        with watch(self.model) as trace:
            self.forward(inputs)
        return [layer.name for layer in trace.layers]

    def edit(self, layers: list[str], edits: list[EditSpec]) -> AbstractContextManager[None]:
        """The model under these edits."""
        return apply_edits(self.model, layers, edits, stepwise=self.stepwise)

    # What an adapter says

    @abstractmethod
    def read(self, request: RunRequest, monitor: RunMonitor) -> Inputs:
        """Check a request, and make it inputs."""

    @abstractmethod
    def forward(self, inputs: Inputs) -> Prediction | None:
        """One pass over all that the model was fed; None where it predicts no names."""

    def watch(self, inputs: Inputs) -> AbstractContextManager[Trace]:
        """Listen to the model, and name the tokens of what it reads."""
        return watch(self.model)

    def is_streaming(self, inputs: Inputs) -> bool:
        """Whether the model is watched while it writes, token by token."""
        return False

    def stream(self, inputs: Inputs, monitor: RunMonitor, trace: Trace | None) -> Prediction | None:
        """Write token by token, and tell each; puts what was written and fed into the inputs."""
        raise NotImplementedError

    def written_text(self, inputs: Inputs) -> str | None:
        """The text of what was written."""
        return None

    def rewrite(
        self, inputs: Inputs, layers: list[str], edits: list[EditSpec], monitor: RunMonitor, *, whole: bool
    ) -> str | None:
        """What the model writes under these edits; `whole`: an edit of one position is among those compared."""
        return None

    def picture(self, inputs: Inputs) -> ShownPicture | None:
        """The picture that was read."""
        return None
