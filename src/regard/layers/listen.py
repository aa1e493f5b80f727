"""Hearing what the layers attend to, while somebody listens."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from regard.attention.attend import Attended
from regard.attention.observe import RECORDERS

Heard = list[tuple[nn.Module, Attended]]


@contextmanager
def listen() -> Iterator[Heard]:
    """A list that fills with (layer, `Attended`) for every call of `attend` by a layer inside the block.

    Calls stand in the order they were made; a layer called twice is heard twice, also when activation
    checkpointing calls it again. Only this context hears: other threads and tasks do not, and outside of the
    block a layer keeps nothing of a call. Listeners may be nested; each hears everything.

    What is heard is handed on as it is: a map that was made while gradients were recorded can be differentiated
    and keeps its graph alive until the list is dropped; under `torch.no_grad()` there is no graph to keep. A map
    reads the layer's keys when it is asked; where a cache has meanwhile written over them it raises `Stale`.
    Compiled calls are not heard, because listening would break their graph.

    >>> import regard, torch
    >>> layer = regard.MultiHead(8, heads=2)
    >>> with listen() as heard:
    ...     _ = layer(torch.ones(3, 5, 8), mask=regard.causal())
    >>> [(module is layer, attended.weights) for module, attended in heard]
    [(True, AttentionMap (b 3, h 2, q 5, k 5), computed, softmax)]
    """
    heard: Heard = []
    token = RECORDERS.set((*RECORDERS.get(), heard))
    try:
        yield heard
    finally:
        RECORDERS.reset(token)


def join_last(count: int, attended: Attended) -> None:
    """The last `count` calls were parts of one: whoever listens hears the whole instead."""
    if torch.compiler.is_compiling():
        return
    for heard in RECORDERS.get():
        module = heard[-1][0]
        heard[-count:] = [(module, attended)]
