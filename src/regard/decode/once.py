"""What a search kept, told in one pass: who watches sees a map per layer, and not every beam of every step."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from regard.attention.observe import has_listeners, muted
from regard.models.decoder_state import DecoderState, Replayable

Keep = Callable[[Sequence[Sequence[int]]], None]


@contextmanager
def told_once(steps: DecoderState, begin: int) -> Iterator[Keep]:
    """What is computed in here is not told; the texts that `keep` is given are, afterwards, where somebody listens."""
    if not has_listeners() or not isinstance(steps, Replayable) or not steps.repeatable:
        yield lambda written: None
        return
    kept: list[Sequence[int]] = []
    with muted():
        yield kept.extend
    if kept:
        steps.again(kept, begin)
