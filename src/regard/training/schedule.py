"""How fast to learn at each step: pure functions of the step, so that a run that is resumed needs no memory of it."""

import math
from difflib import get_close_matches

from regard.errors import ConfigError

KINDS = ("linear", "cosine", "inverse_sqrt", "constant")
SLOW = 10_000  # steps after which a rate without warm-up has fallen to 1/√2 of its peak; transformers takes as many


def rate_at(
    step: int,
    *,
    kind: str,
    peak: float | int,
    warmup: int = 0,
    steps: int | None = None,
    floor: float | int = 0.0,
) -> float:
    r"""Give the learning rate of a step, counted from 0.

    In the first `warmup` steps it rises from 0 to `peak` in a straight line; then it falls towards `floor`:

    - "linear": in a straight line, so that it would be there at step `steps`
      (`transformers.get_linear_schedule_with_warmup`);
    - "cosine": along half a wave, $\frac{1}{2}(1 + \cos \pi x)$ (Loshchilov & Hutter 2017, eq. 5);
    - "inverse_sqrt": as $\sqrt{\mathrm{warmup} / \mathrm{step}}$, without an end (Vaswani et al. 2017, §5.3);
    - "constant": not at all.

    The first two need to know how many `steps` there are, and stay at `floor` after them.

    >>> [rate_at(step, kind="linear", peak=8.0, warmup=2, steps=6) for step in range(8)]
    [0.0, 4.0, 8.0, 6.0, 4.0, 2.0, 0.0, 0.0]
    >>> rate_at(16, kind="inverse_sqrt", peak=8.0, warmup=4)
    4.0
    """
    check(step, kind, peak, warmup, steps, floor)
    if step < warmup:
        return peak * (step / warmup)
    return floor + (peak - floor) * share_left(step, kind, warmup, steps)


def share_left(step: int, kind: str, warmup: int, steps: int | None) -> float:
    """How much of the way from `floor` to `peak` is left after the warm-up, from 1 downwards."""
    if kind == "constant":
        return 1.0
    if kind == "inverse_sqrt":
        scale = warmup or SLOW
        return 1.0 / math.sqrt((step - warmup + scale) / scale)
    assert steps is not None
    if step >= steps:
        return 0.0
    if kind == "linear":
        return (steps - step) / (steps - warmup)
    return 0.5 * (1.0 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


def check(step: int, kind: str, peak: float | int, warmup: int, steps: int | None, floor: float | int) -> None:
    """Whether these describe a schedule; each refusal says what came, what was wanted and what to do."""
    if kind not in KINDS:
        near = get_close_matches(kind, KINDS, 1, 0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(map(repr, KINDS))}"
        raise ConfigError(f"the schedule is {kind!r}, which does not exist; {hint}")
    if step < 0 or warmup < 0:
        raise ConfigError(f"step {step} and a warm-up of {warmup} steps came; give 0 or more of each")
    if kind in ("linear", "cosine") and (steps is None or steps < 1):
        raise ConfigError(f"a {kind} schedule ends, but steps={steps} came; say in how many steps, 1 or more")
    if not (math.isfinite(peak) and peak > 0.0):
        raise ConfigError(f"the peak of the learning rate is {peak}; give a number above 0, such as 0.001")
    if not 0.0 <= floor <= peak:
        raise ConfigError(f"the floor of the learning rate is {floor}; give a number from 0 to its peak, {peak}")
