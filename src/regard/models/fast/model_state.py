"""A Llama in the middle of writing, by compiled kernels as long as its modules may be passed over."""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from regard.models.causal_state import CausalState
from regard.models.fast.state import FastState
from regard.models.fast.weights import StoredWeights, store_parameters
from regard.models.lean.joined import join_weights
from regard.models.lean.obstacles import make_guard
from regard.models.lean.state import LEAN

LONG = 128  # tokens of a prompt that is read by torch


class FastModelState(FastState):
    """A `FastState` of a `Llama` with modules.

    Before every call it looks whether these may still be passed over, as nobody watches or trains them; where not, it
    hands all keys and values to their own state, which goes on.
    """

    def __init__(self, plain: CausalState) -> None:
        model: Any = plain.model
        join_weights(model)  # as the lean engine has them, so that either may begin after the other
        super().__init__(StoredWeights(model.config, store_parameters(model)), plain.prompt, plain.left_padding)
        self.plain, self.may_go_on, self.is_plain = plain, make_guard(model), False

    def __call__(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b n"]:
        """Reads the next tokens of every row; the logits of the token after the last of them."""
        if not self.is_plain and not self.may_go_on():
            self._hand_over()
        if self.is_plain:
            return self.plain(ids)
        is_long = not self.seen and ids.shape[1] >= LONG
        return self._read_long(ids) if is_long and not any(self.plain.model.windows) else super().__call__(ids)

    def _read_long(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b n"]:
        """The same for a long prompt: torch's products of large matrices, by the lean engine, are quicker."""
        lean = LEAN.begin(self.plain)
        logits = lean(ids)
        self.decoder.make_room(ids.shape[1])
        for index, slots in enumerate(lean.slots):
            assert slots.keys is not None
            assert slots.values is not None
            pair = (one.unflatten(0, (len(ids), -1))[:, :, : ids.shape[1]] for one in (slots.keys, slots.values))
            self.decoder.workspace.set_pair(index, *pair)
        self.decoder.seen = ids.shape[1]
        return logits

    def _hand_over(self) -> None:
        self.is_plain = True
        if self.decoder.seen:
            for index, cache in enumerate(self.plain.cache):
                cache.append(*self.decoder.workspace.find_pair(index, self.decoder.seen))

    @property
    def seen(self) -> int:
        """How many positions were read, padding included."""
        return self.plain.seen if self.is_plain else super().seen

    def take_prompt(self, rows: int, steps: int) -> Int[Tensor, "b t"]:
        """The tokens to read first, as the modules' own state gives them."""
        return self.plain.take_prompt(rows, steps)

    def reorder(self, index: Int[Tensor, " c"]) -> None:
        """Row i becomes what row index[i] was."""
        self.plain.reorder(index)
        if not self.is_plain:
            super().reorder(index)

    def crop(self, length: int) -> None:
        """Go back to when `length` positions had been read."""
        if self.is_plain:
            self.plain.crop(length)
        else:
            super().crop(length)

    @property
    def repeatable(self) -> bool:
        """Whether a second pass computes what the first one did."""
        return self.plain.repeatable

    def again(self, written: Sequence[Sequence[int]], begin: int) -> None:
        """One pass of the modules over the prompts and what was written after each."""
        self.plain.again(written, begin)
