"""Which layers follow each other: one stack of self-attention, or an encoder and the decoder that reads it."""

from collections.abc import Sequence
from typing import NamedTuple

from regard.errors import TraceError
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace


class Stacks(NamedTuple):
    """Layers in the order they were computed. `source` is empty where there is one stack only."""

    source: tuple[Layer, ...]  # the encoder, where there is a decoder
    target: tuple[Layer, ...]  # the stack whose tokens are asked about; of a decoder also its cross-attention

    @property
    def layers(self) -> tuple[Layer, ...]:
        return (*self.source, *self.target)

    @property
    def length(self) -> int:
        """How many tokens the target has."""
        return self.target[0].weights.shape[-2]

    @property
    def source_length(self) -> int:
        """How many tokens the source has; 0 where there is none."""
        return next((layer.weights.shape[-1] for layer in self.target if layer.kind == "cross"), 0)


def stacks_of(trace: Trace, layers: str | Sequence[int] | None = None, *, entry: int = 0) -> Stacks:
    """The layers of the last run, sorted into stacks, after a check that each continues the one before.

    `layers` keeps only those whose path holds a part, such as "encoder", or those with these numbers.
    `in_decoder` says which stack a layer belongs to.
    """
    chosen = choose(trace.layers, layers)
    if not chosen:
        which = "" if layers is None else f" that fit {layers!r}"
        raise TraceError(
            f"the trace has no layers{which}, so nothing flows; watch a call of the model first"
        ).with_code("flow.empty")
    ours = in_decoder(chosen)
    ours = ours if any(ours) else [True] * len(chosen)
    source = tuple(layer for layer, our in zip(chosen, ours) if not our)
    found = Stacks(source, tuple(layer for layer, our in zip(chosen, ours) if our))
    must_chain(found, entry)
    return found


def choose(layers: Sequence[Layer], which: str | Sequence[int] | None) -> list[Layer]:
    if which is None:
        return list(layers)
    if isinstance(which, str):
        return [layer for layer in layers if which in layer.name]
    bad = next((i for i in which if not -len(layers) <= i < len(layers)), None)
    if bad is not None:
        raise TraceError(f"layer {bad} was asked for, but the trace has {len(layers)}")
    return [layers[i] for i in which]


def in_decoder(layers: Sequence[Layer]) -> list[bool]:
    """Which layers belong to a decoder that reads an encoder; none of them where there is no cross-attention.

    The decoder is what shares its path up to the first number with the cross-attention; where paths do not tell, the
    self-attention right before the first cross-attention, if it has as many rows, and all after it. A pooling layer has
    no such layer: what comes before it is all of the encoder.
    """
    crosses = [layer.kind == "cross" for layer in layers]
    if not any(crosses):
        return crosses
    first = crosses.index(True)
    root = path_of(layers[first].name)
    ours = [cross or path_of(layer.name) == root for cross, layer in zip(crosses, layers)]
    if not root or all(ours) or sum(ours) == sum(crosses):
        before = layers[max(0, first - 1)].weights.shape[-2] == layers[first].weights.shape[-2]
        ours = [cross or i >= first - before for i, cross in enumerate(crosses)]
    return ours


def path_of(name: str) -> str:
    """The path up to its first number: what all layers of one stack share."""
    steps = name.split(".")
    number = next((i for i, step in enumerate(steps) if step.isdigit()), 0)
    return ".".join(steps[:number])


def must_chain(stacks: Stacks, entry: int) -> None:
    """Raise where a layer's columns are not the rows of the layer before it."""
    first = stacks.layers[0]
    if not -first.batch <= entry < first.batch:
        raise TraceError(f"the trace holds a batch of {first.batch}, but entry {entry} was asked for")
    for layer in stacks.layers:
        if layer.batch != first.batch:
            raise TraceError(
                f"{layer.name} saw a batch of {layer.batch} and {first.name} one of {first.batch}, as windows of a "
                "picture do, so tokens cannot be followed from layer to layer; choose layers= that belong together"
            ).with_code("flow.windows", layer=layer.name)
    for some, length in ((stacks.source, stacks.source_length), (stacks.target, stacks.length)):
        names: tuple[str, ...] | None = None
        for layer in some:
            cross = layer.kind == "cross"
            q, k = layer.weights.shape[-2:]
            if q != length or k != (stacks.source_length if cross else length):
                raise TraceError(
                    f"{layer.name} has {q} queries and {k} keys, but {length} tokens flow through its stack, so it "
                    "does not continue the others; choose layers= of one stack, watched without an older cache"
                ).with_code("flow.broken", layer=layer.name, queries=q, keys=k, tokens=length)
            # Rows of a cross-attention may be named after what they write, the others after what they read.
            queries = None if layer.queries is None or cross else layer.queries[entry].shown
            keys = None if layer.keys is None or cross else layer.keys[entry].shown
            for shown in (queries, keys):
                if shown is not None and names is not None and shown != names:
                    raise TraceError(
                        f"the tokens of {layer.name} are not those of the layers before it (shifted windows, or "
                        "another input), so they cannot be followed; choose layers= that belong together"
                    ).with_code("flow.windows", layer=layer.name)
                names = names if shown is None else shown
