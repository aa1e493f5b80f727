"""What a search kept, told in one pass: who watches sees a map per layer, and not every beam of every step."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from regard.attention.told import overheard, unheard
from regard.models.steps import Retold, Steps

Keep = Callable[[Sequence[Sequence[int]]], None]


@contextmanager
def told_once(steps: Steps, begin: int) -> Iterator[Keep]:
    """What is computed in here is not told; the texts that `keep` is given are, afterwards, where somebody listens."""
    if not overheard() or not isinstance(steps, Retold) or not steps.repeatable:
        yield lambda written: None
        return
    kept: list[Sequence[int]] = []
    with unheard():
        yield kept.extend
    if kept:
        steps.again(kept, begin)
