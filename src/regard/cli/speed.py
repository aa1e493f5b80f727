"""How quickly a text was written."""

import time
from typing import Any

import torch

ENGINES = {"Lean": "lean", "Fast": "fast", "Library": "transformers"}  # by the names of their states


class Stopwatch:
    """Counts tokens from now on, and says how quickly they came."""

    def __init__(self) -> None:
        self.start = self.last = time.perf_counter()
        self.first, self.tokens = 0.0, 0

    def count(self, tokens: int = 1) -> None:
        """So many more have come."""
        self.last = time.perf_counter()
        if not self.tokens:
            self.first = self.last - self.start
        self.tokens += tokens

    def describe(self, steps: Any = None) -> str:
        """A sentence; with the `steps` of one text also the time to its first token, and the engine.

        The rate of one text is that of the tokens after the first, which waits for the prompt to be read.
        """
        count, seconds, said = self.tokens, self.last - self.start, f"{self.tokens} tokens"
        if steps is not None and count:
            said += f", the first after {self.first:.2f} s"
            count, seconds = count - 1, seconds - self.first
        if count and seconds > 0:
            said += f", {'then ' if steps is not None else ''}{count / seconds:.1f} tokens/s"
        engine = "" if steps is None else f"engine {name_engine(steps)}, "
        return f"{said}; {engine}{torch.get_num_threads()} threads"


def name_engine(steps: Any) -> str:
    """What computes the steps of a model."""
    inner = getattr(steps, "steps", steps)  # of a conversation, which keeps what was read
    return next((name for start, name in ENGINES.items() if type(inner).__name__.startswith(start)), "plain")
