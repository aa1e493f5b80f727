"""A decoder-only model in the middle of writing: each token is read once, by the modules themselves."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.errors import PositionError, ShapeError
from regard.models.causal import CausalModel


class CausalState:
    """What a model has read and written, one row per text, as `model.begin(prompt)` gives it.

    Its first step reads the prompt; `regard.greedy`, `regard.sample` and `regard.beam` ask for it by `take_prompt`.
    `left_padding`, `window` and `sinks` are those of `CausalModel`.

    >>> from regard.models import GPT, GPTConfig
    >>> model = GPT(GPTConfig(vocab_size=10, width=8, heads=2, layers=1, context=16)).eval()
    >>> steps = model.begin(torch.tensor([[3, 1, 4], [5, 9, 2]]), engine="plain")
    >>> steps(steps.take_prompt(2, steps=7)).shape
    torch.Size([2, 10])
    >>> steps.reorder(torch.tensor([0, 0, 1]))
    >>> steps(torch.tensor([[7], [8], [7]])).shape
    torch.Size([3, 10])
    """

    def __init__(
        self,
        model: CausalModel,
        prompt: Int[Tensor, "b t"],
        left_padding: Int[Tensor, " b"] | None = None,
        *,
        window: int | None = None,
        sinks: int = 0,
    ) -> None:
        if not prompt.shape[1]:
            raise ShapeError("there is no token to begin with; give a prompt of shape (b, t) with t of 1 or more")
        self.model, self.prompt, self.prompt_padding = model, prompt, left_padding
        self.left_padding, self.window, self.sinks = left_padding, window, sinks
        self.cache = model.make_cache(window=window, sinks=sinks)

    def __call__(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b n"]:
        """Reads the next tokens of every row; the logits of the token after the last of them.

        The model itself is called, so that whoever watches it knows which tokens it reads.
        """
        logits: Tensor = self.model(ids, self.cache, left_padding=self.left_padding)
        return logits[:, -1]

    def hidden(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b m"]:
        """The same before the head."""
        return self.model.hidden(ids, self.cache, left_padding=self.left_padding)[:, -1]

    @property
    def head(self) -> tuple[Tensor, Tensor | None]:
        """What makes the logits: a weight, and no bias."""
        return self.model.head_weight, self.model.head_bias

    @property
    def seen(self) -> int:
        """How many positions were read, padding included."""
        return self.cache[0].seen

    def take_prompt(self, rows: int, steps: int) -> Int[Tensor, "b t"]:
        """The tokens to read first, where so many rows are to be written in so many steps, the first of which reads
        them."""
        if rows != len(self.prompt):
            raise ShapeError(f"{rows} rows are to be written, but the prompt has {len(self.prompt)}; give one row each")
        length, most = self.prompt.shape[1], self.model.longest
        if most is not None and steps and length + steps - 1 > most:
            raise PositionError(
                f"{length} tokens and {steps} steps came, but this model reads at most {most}; "
                f"ask for at most {max(0, most + 1 - length)} steps"
            )
        return self.prompt

    def reorder(self, index: Int[Tensor, " c"]) -> None:
        """Row i becomes what row index[i] was."""
        for layer in self.cache:
            layer.reorder(index)
        if self.left_padding is not None:
            self.left_padding = self.left_padding[index]

    def crop(self, length: int) -> None:
        """Go back to when `length` positions had been read; a window that has dropped keys cannot."""
        for layer in self.cache:
            layer.crop(length)

    def attention(self) -> None:
        """There is no source to look at."""

    @property
    def repeatable(self) -> bool:
        """Whether a second pass computes what the first one did: nothing is dropped, and every key is held."""
        return not self.model.training and self.window is None

    def again(self, written: Sequence[Sequence[int]], begin: int) -> None:
        """One pass over the prompts and what was written after each, shorter ones filled up on the right with id 0."""
        pads = [0] * len(self.prompt) if self.prompt_padding is None else self.prompt_padding.tolist()
        prompts = [row[pad:] for row, pad in zip(self.prompt, pads)]
        rows = [torch.cat((row, row.new_tensor(list(ids)))) for row, ids in zip(prompts, written)]
        self.model(nn.utils.rnn.pad_sequence(rows, batch_first=True)[:, : self.model.longest])
