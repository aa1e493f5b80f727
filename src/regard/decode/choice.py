"""How the next token of a row is chosen from its logits: the likeliest, or one that is drawn."""

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from regard.decode.filters import keep_min_p, keep_top_k, keep_top_p
from regard.errors import ConfigError, ShapeError

Choose = Callable[[Tensor, Tensor], Tensor]  # logits up to a constant (b, n), the rows they are of (b,) → ids (b,)
Generators = Generator | Sequence[Generator] | None


def choose_likeliest(logits: Tensor, rows: Tensor) -> Tensor:
    """The likeliest token of every row; of equals, the lowest id."""
    return logits.argmax(-1)


def make_choice(
    rows: int,
    *,
    temperature: float | int,
    top_k: int | None = None,
    top_p: float | int | None = None,
    min_p: float | int | None = None,
    generator: Generators = None,
) -> Choose:
    """What chooses a token for each of `rows` texts by these settings, as `regard.sample` says them."""
    check_sampling(temperature, top_k, top_p, min_p)
    if isinstance(generator, Sequence) and len(generator) != rows:
        raise ShapeError(f"{len(generator)} generators came for {rows} rows; give one generator, or one per row")
    if not temperature:
        return choose_likeliest

    def choose(logits: Tensor, alive: Tensor) -> Tensor:
        scores = logits / temperature
        if top_k is not None:
            scores = keep_top_k(scores, top_k)
        if top_p is not None and top_p < 1:
            scores = keep_top_p(scores, top_p)
        if min_p:
            scores = keep_min_p(scores, min_p)
        return draw(scores.softmax(-1), draw_uniform(generator, alive))

    return choose


def draw_uniform(generator: Generators, alive: Tensor) -> Tensor:
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
