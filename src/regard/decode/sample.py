"""A token drawn by its probability, again and again."""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from regard.decode.decoded import DecodedText
from regard.decode.filters import keep_min_p, keep_top_k, keep_top_p
from regard.decode.limits import Limits
from regard.decode.single import write
from regard.errors import ConfigError, ShapeError
from regard.models.decoder_state import DecoderState


@torch.no_grad()
def sample(
    steps: DecoderState,
    rows: int,
    *,
    temperature: float | int = 1.0,
    top_k: int | None = None,
    top_p: float | int | None = None,
    min_p: float | int | None = None,
    generator: Generator | Sequence[Generator] | None = None,
    limits: Limits,
) -> list[DecodedText]:
    """For each of the `rows` texts that `steps` is in the middle of, tokens drawn by their probability until it ends.

    The logits are divided by `temperature` (0 says the likeliest, as `greedy`), then the `top_k` likeliest stay, of
    those the fewest that reach probability `top_p` together, of those what is at least `min_p` times as likely as the
    likeliest, in that order; from what is left a token is drawn. Scores are those of the model itself.

    One random number in [0, 1) is taken per token, and the first token at which the running sum of probabilities
    exceeds it is said. One `generator` (or torch's own) deals numbers to the rows that are still written, in their
    order. With one generator per row each text depends on its own alone, so a batch gives what single texts give.

    >>> import torch
    >>> class Dice:  # 3 to 8, equally likely
    ...     def __call__(self, ids):
    ...         return torch.zeros(len(ids), 9).index_fill(1, torch.tensor([0, 1, 2]), -torch.inf)
    ...     def reorder(self, index):
    ...         pass
    ...     def attention(self):
    ...         return None
    >>> generators = [torch.Generator().manual_seed(seed) for seed in (0, 1)]
    >>> [text.ids for text in sample(Dice(), 2, generator=generators, limits=Limits(longest=5))]
    [[8, 7, 5, 8, 6], [3, 4, 4, 4, 6]]
    """
    check_sampling(temperature, top_k, top_p, min_p)
    if isinstance(generator, Sequence) and len(generator) != rows:
        raise ShapeError(f"{len(generator)} generators came for {rows} rows; give one generator, or one per row")

    def choose(chances: Tensor, alive: Tensor) -> Tensor:
        if not temperature:
            return chances.argmax(-1)
        scores = chances / temperature
        if top_k is not None:
            scores = keep_top_k(scores, top_k)
        if top_p is not None and top_p < 1:
            scores = keep_top_p(scores, top_p)
        if min_p:
            scores = keep_min_p(scores, min_p)
        return draw(scores.softmax(-1), draw_uniform(generator, alive))

    return write(steps, rows, limits, choose)


def draw_uniform(generator: Generator | Sequence[Generator] | None, alive: Tensor) -> Tensor:
    """A random number in [0, 1) for each row that is still written, (b,)."""
    if generator is None or isinstance(generator, Generator):
        device = alive.device if generator is None else generator.device
        return torch.rand(len(alive), dtype=torch.float64, generator=generator, device=device).to(alive.device)
    own = [generator[row] for row in alive.tolist()]
    drawn = [torch.rand((), dtype=torch.float64, generator=each, device=each.device) for each in own]
    return torch.stack(drawn).to(alive.device)


def draw(chances: Tensor, at: Tensor) -> Tensor:
    """The first token of each row whose running sum exceeds `at` of the whole; one without a chance never is."""
    running = chances.cumsum(-1, dtype=torch.float64)  # thousands of small numbers: float32 would bias the last ones
    whole = running[:, -1:].contiguous()
    token = torch.searchsorted(running, at[:, None] * whole, right=True)
    last = torch.searchsorted(running, whole).clamp(max=chances.shape[1] - 1)  # NaN is told by whoever adds up scores
    return torch.minimum(token, last)[:, 0]  # should at · whole be rounded up to whole


def check_sampling(
    temperature: float | int, top_k: int | None, top_p: float | int | None, min_p: float | int | None
) -> None:
    """Raises where a setting is outside what it can be."""
    if not 0 <= temperature < float("inf"):
        raise ConfigError(f"temperature is {temperature}, but it divides the logits; give 0 (the likeliest) or more")
    if top_k is not None and top_k < 1:
        raise ConfigError(f"top_k is {top_k}, but at least one token must be left; give 1 or more, or None for all")
    if top_p is not None and not 0 < top_p <= 1:
        raise ConfigError(f"top_p is {top_p}, but it is a probability; give more than 0 and at most 1")
    if min_p is not None and not 0 <= min_p <= 1:
        raise ConfigError(f"min_p is {min_p}, but it is a share of the highest probability; give 0 to 1")
