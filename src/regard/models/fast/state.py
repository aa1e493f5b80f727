"""Weights in the middle of writing, by compiled kernels."""

from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import CacheError, ShapeError
from regard.models.fast.decoder import KernelDecoder
from regard.models.fast.weights import StoredWeights


class FastState:
    """What was read and written, one row per text: a `DecoderState` whose steps are one compiled call each.

    The first step reads the prompt, as `take_prompt` gives it. Rows whose prompts are shorter begin later
    (`left_padding`), and give what each gives alone.
    """

    def __init__(
        self, weights: StoredWeights, prompt: Int[Tensor, "b t"], left_padding: Int[Tensor, " b"] | None = None
    ) -> None:
        if not prompt.shape[1]:
            raise ShapeError("there is no token to begin with; give a prompt of shape (b, t) with t of 1 or more")
        self.prompt = prompt
        self.decoder = KernelDecoder(weights, len(prompt), None if left_padding is None else left_padding.tolist())

    def __call__(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b n"]:
        """Reads the next tokens of every row; the logits of the token after the last of them."""
        if len(ids) != self.decoder.rows or not ids.shape[1]:
            raise ShapeError(
                f"ids of shape {tuple(ids.shape)} came for {self.decoder.rows} rows; give at least one token for each"
            )
        low, high = (int(end) for end in ids.aminmax())
        known = self.decoder.weights.config.vocab_size
        if low < 0 or high >= known:
            raise ShapeError(
                f"an id is {low if low < 0 else high}, but this model knows {known} tokens; "
                f"give ids from 0 to {known - 1}"
            )
        return self.decoder.read(ids)

    @property
    def seen(self) -> int:
        """How many positions were read, padding included."""
        return self.decoder.seen

    def take_prompt(self, rows: int, steps: int) -> Int[Tensor, "b t"]:
        """The tokens to read first; any number of steps may follow, as rotary positions end nowhere."""
        if rows != len(self.prompt):
            raise ShapeError(f"{rows} rows are to be written, but the prompt has {len(self.prompt)}; give one row each")
        return self.prompt

    def reorder(self, index: Int[Tensor, " c"]) -> None:
        """Row i becomes what row index[i] was."""
        self.decoder.reorder(index)

    def crop(self, length: int) -> None:
        """Go back to when `length` positions had been read."""
        if not 0 <= length <= self.seen:
            raise CacheError(f"crop to {length} tokens came, but {self.seen} were seen; give 0 to {self.seen}")
        self.decoder.crop(length)

    def attention(self) -> None:
        """There is no source to look at."""
