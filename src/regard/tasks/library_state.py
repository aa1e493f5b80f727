"""A causal model of the `transformers` library in the middle of writing."""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.models.causal_inputs import pad_left


class LibraryState:
    """The `DecoderState` of any causal model of that library, over the cache that it makes itself.

    Prompts of different lengths are padded on the left, and positions count from the first token of each.
    """

    def __init__(self, model: Any, prompt: Sequence[Sequence[int]], *, window: int | None = None) -> None:
        if window is not None:
            raise ConfigError(
                f"a window of {window} came, but {type(model).__name__} keeps its own cache; leave window out"
            )
        self.model = model
        self.prompt, self.left_padding = pad_left(prompt)
        self.prompt_padding = self.left_padding
        self.past: Any = None
        self.seen = 0
        self.has_positions = "position_ids" in inspect.signature(model.forward).parameters

    def __call__(self, ids: Tensor) -> Tensor:
        """Reads the next tokens of every row; the logits of the token after the last of them."""
        first, self.seen = self.seen, self.seen + ids.shape[1]
        more: dict[str, Any] = {}
        if self.left_padding is not None:
            at = torch.arange(self.seen) - self.left_padding[:, None]  # b t: below 0 is padding
            more["attention_mask"] = (at >= 0).long()
            if self.has_positions:
                more["position_ids"] = at[:, first:].clamp(min=0)
        output = self.model(input_ids=ids, past_key_values=self.past, use_cache=True, **more)
        self.past = output.past_key_values
        logits: Tensor = output.logits[:, -1]
        return logits

    def take_prompt(self, rows: int, steps: int) -> Tensor:
        """The tokens to read first."""
        return self.prompt

    def reorder(self, index: Tensor) -> None:
        """Row i becomes what row index[i] was."""
        if self.past is not None:
            self.past.reorder_cache(index)
        if self.left_padding is not None:
            self.left_padding = self.left_padding[index]

    def crop(self, length: int) -> None:
        """Go back to when `length` tokens had been read."""
        self.past.crop(length)
        self.seen = length

    def attention(self) -> None:
        """There is no source to look at."""

    @property
    def repeatable(self) -> bool:
        """Whether a second pass computes what the first one did: nothing is dropped."""
        return not self.model.training

    def again(self, written: Sequence[Sequence[int]], begin: int) -> None:
        """One pass over each prompt and what was written after it."""
        pads = [0] * len(self.prompt) if self.prompt_padding is None else self.prompt_padding.tolist()
        for row, pad, ids in zip(self.prompt, pads, written):
            self.model(input_ids=torch.cat((row[pad:], row.new_tensor(list(ids))))[None])
