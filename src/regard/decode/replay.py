"""The texts that a search chose, read again in one pass: who watches sees a map per layer, not every step and beam."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from regard.attention.observe import has_listeners, muted
from regard.models.decoder_state import DecoderState, Replayable

Keep = Callable[[Sequence[Sequence[int]]], None]


@contextmanager
def replay_once(steps: DecoderState, begin: int) -> Iterator[Keep]:
    """Listeners hear nothing of what is computed in the block, but one pass over the chosen texts after it."""
    if not has_listeners() or not isinstance(steps, Replayable) or not steps.repeatable:
        yield lambda written: None
        return
    texts: list[Sequence[int]] = []
    with muted():
        yield texts.extend
    if texts:
        steps.again(texts, begin)
