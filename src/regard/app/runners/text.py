"""What runners of models that read a text with a tokenizer have in common."""

from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Any

import torch

from regard.app.protocol.limits import must_fit
from regard.app.protocol.messages import EditSpec, RunRequest
from regard.app.protocol.refusal import Refusal
from regard.app.runners.edits import is_positional
from regard.app.runners.monitor import RunMonitor
from regard.app.runners.runner import Inputs, Runner
from regard.errors import WatchError
from regard.trace.record.trace import Trace
from regard.trace.watch import watch


class TextRunner(Runner):
    """A model that reads the ids of a text and may go on writing, token by token."""

    name: str
    tokenizer: Any
    max_tokens: int | None  # that it reads at once
    is_pair = False  # whether it writes beside the text, not after it

    def read(self, request: RunRequest, monitor: RunMonitor) -> Inputs:
        ids = self.encode(request.text)
        if not ids:
            raise Refusal("the text is empty, so there is nothing to look at; give some words").with_code("text.empty")
        steps = self.count_steps(request)
        must_fit(len(ids), self.max_tokens, self.name, 0 if self.is_pair else steps)
        seed = int(torch.randint(1 << 31, ()).item())
        return {"ids": ids, "steps": steps, "temperature": request.temperature, "seed": seed}

    def watch(self, inputs: Inputs) -> AbstractContextManager[Trace]:
        return watch(self.model, self.tokenizer)

    def is_streaming(self, inputs: Inputs) -> bool:
        return inputs["steps"] > 0

    def rewrite(
        self, inputs: Inputs, layers: list[str], edits: list[EditSpec], monitor: RunMonitor, *, whole: bool
    ) -> str | None:
        """From the same seed; None where an edit of one position cannot be made while the model writes."""
        if not self.is_streaming(inputs) or (self.is_pair and is_positional(edits)):
            return None
        anew = {key: value for key, value in inputs.items() if key != "written"}
        try:
            with self.edit(layers, edits):
                self.stream(anew, monitor, None)
        except WatchError:
            if "written" not in anew or not is_positional(edits):
                raise  # else it ended before it came to that position, which is an answer too
        return self.written_text(anew)

    def count_steps(self, request: RunRequest) -> int:
        """How many tokens it should write."""
        return request.steps

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of a text; none where it is empty."""
