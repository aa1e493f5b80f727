"""Small traces to look at, made by hand, so that what should be on the picture is known."""

import torch

import regard
from regard.tokens import Tokens
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace

SOURCE = ("The", "cat", "sat", "</s>", "<pad>")
TARGET = ("<s>", "猫", "坐", "。")


def aimed(at, keys, heads=3, sharp=40.0, mask=None):
    """A map whose head h looks at key at[i] + h, counted round, from query i: all of it, or what `sharp` leaves."""
    wanted = (torch.tensor(at)[None] + torch.arange(heads)[:, None]) % keys  # h q
    k = torch.eye(keys).expand(1, heads, keys, keys)
    q = torch.nn.functional.one_hot(wanted, keys)[None] * sharp
    return regard.attend(q.float(), k, k, mask=mask).weights


def layer(name, kind, weights, queries=None, keys=None):
    names = [None if some is None else (Tokens(tuple(some)),) * weights.shape[0] for some in (queries, keys)]
    return Layer(name, kind, weights, queries=names[0], keys=names[1])


def translator() -> Trace:
    """Two encoder layers, then two decoder layers of self- and cross-attention; the last source token is padding."""
    pad = regard.padding([4])
    layers = [
        layer(f"encoder.{i}.self", "self", aimed([0, 1, 2, 3, 0], 5, sharp=2.0, mask=pad), SOURCE, SOURCE)
        for i in range(2)
    ]
    for i in range(2):
        own = aimed([0, 0, 1, 2], 4, sharp=3.0, mask=regard.causal())
        layers.append(layer(f"decoder.{i}.self", "self", own, TARGET, TARGET))
        layers.append(layer(f"decoder.{i}.cross", "cross", aimed([0, 1, 2, 3], 5, mask=pad), TARGET, SOURCE))
    return Trace([Run(layers)], model="Translator")


def decoder(tokens=6, heads=4, layers=3, mask=None, names=True) -> Trace:
    """Layers of one kind."""
    shown = [f"t{i}" for i in range(tokens)] if names else None
    q = torch.randn(layers, 1, heads, tokens, 8)
    return Trace(
        [
            Run(
                [
                    layer(f"blocks.{i}", "self", regard.attend(x, x, x, mask=mask).weights, shown, shown)
                    for i, x in enumerate(q)
                ]
            )
        ]
    )
