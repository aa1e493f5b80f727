"""What a run keeps of its residual stream: what each call of the model returned, and what chosen modules gave."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.errors import TraceError
from regard.trace.residual.kept import KeptTensor
from regard.trace.residual.known import MadeTensor
from regard.trace.residual.terms import MixTerm, PartTerm, Term

WHOLE = 1 << 24  # numbers of an output that are kept by reference; of a larger one, the last position
NOT_KEPT = "watch the model with residual=True, and look before the trace is saved: a file does not hold the stream"


@dataclass(eq=False)
class StreamOutput:
    """What one call of the model returned, and how it was made."""

    root: Term | MadeTensor | None
    kept: KeptTensor  # b n v, or b v
    last: bool = False  # whether only the last position is kept


@dataclass(eq=False)
class ModuleOutput:
    """What a module gave: all positions, or those that were asked for."""

    kept: list[KeptTensor]  # one for each call of the model
    at: tuple[int, ...] | None = None  # positions, as they were asked for
    length: int = 0  # how many positions there were

    def value(self) -> Tensor:
        return torch.cat([one.value() for one in self.kept], -2) if len(self.kept) > 1 else self.kept[0].value()


@dataclass(eq=False)
class ResidualStream:
    """`ResidualStream` is what one run keeps of its residual stream."""

    outputs: list[StreamOutput] = field(default_factory=list)
    modules: dict[str, ModuleOutput] = field(default_factory=dict)
    mixes: dict[str, MixTerm] = field(default_factory=dict)  # by the name of the layer
    tokenizer: Any = None
    recorded: bool = False  # whether sums were noted, so that a logit can be taken apart

    def extend(self, other: "ResidualStream") -> None:
        """What the next call of the model gave, beside what is here."""
        self.outputs += other.outputs
        self.mixes |= other.mixes
        for name, output in other.modules.items():
            known = self.modules.setdefault(name, output)
            if known is not output:
                known.kept += output.kept
                known.length += output.length

    def parts(self) -> dict[str, PartTerm]:
        """What was added to the stream whole, by the module that gave it."""
        found: dict[str, PartTerm] = {}
        for output in self.outputs:
            if isinstance(output.root, Term):
                for term in in_order(output.root):
                    if isinstance(term, PartTerm):
                        found.setdefault(term.name, term)
        return found


def keep_output(x: Tensor, root: Term | MadeTensor | None) -> StreamOutput:
    """What the model returned, or its last position where it is large."""
    last = x.numel() > WHOLE and x.ndim == 3
    return StreamOutput(root, KeptTensor(x[:, -1:].clone() if last else x), last)


def in_order(root: Term) -> Iterator[Term]:
    """Every term that the root was made of, each after all that it went into."""
    found: list[Term] = []
    seen: set[int] = set()
    todo: list[tuple[Term, bool]] = [(root, False)]
    while todo:
        term, done = todo.pop()
        if done:
            found.append(term)
        elif id(term) not in seen:
            seen.add(id(term))
            todo.append((term, True))
            todo += [(one, False) for one in term.inputs]
    return reversed(found)


def module_output(stream: ResidualStream | None, path: str, at: Any = None, batch: int | None = None) -> Tensor:
    """What a module gave in a run: the residual stream after a block, or what an MLP added to it.

    (b, n, m), or (n, m) of one batch entry; `at` are positions, counted from 0 or from the end.

    >>> kept = ModuleOutput([KeptTensor(torch.arange(6.0).reshape(1, 3, 2))], None, 3)
    >>> module_output(ResidualStream(modules={"blocks.0": kept}), "blocks.0", at=[-1])
    tensor([[[4., 5.]]])
    """
    if stream is None:
        raise TraceError(f"the residual stream of this run was not kept; {NOT_KEPT}")
    names = [name for name in stream.modules if name == path] or [
        name for name in stream.modules if name.endswith(f".{path}") or f".{path}." in f".{name}."
    ]
    if len(names) > 1:
        raise TraceError(f"{path!r} fits {len(names)} modules that were kept: {', '.join(names[:8])}")
    if names:
        one = stream.modules[names[0]]
        x, kept, length = one.value(), one.at, one.length
    else:
        parts = stream.parts()
        fitting = [name for name in parts if f".{path}." in f".{name}."]
        if len(fitting) != 1:
            known = ", ".join([*stream.modules, *parts][:12]) or "nothing"
            raise TraceError(f"what {path!r} gave was not kept; kept is: {known}; name others in residual=")
        x = parts[fitting[0]].kept.value()
        kept, length = None, x.shape[-2]
    x = x if batch is None else x[batch]
    if at is None:
        return x
    given = [at] if isinstance(at, int) else list(at)
    wanted = [place % length for place in given if -length <= place < length]
    if len(wanted) < len(given):
        raise TraceError(f"positions {given} were asked for, but {path} gave {length}; count from 0 to {length - 1}")
    if kept is not None:
        held = [place % length for place in kept]
        if not set(wanted) <= set(held):
            raise TraceError(f"positions {given} of {path} were asked for, but only {list(kept)} were kept")
        wanted = [held.index(place) for place in wanted]
    return x[..., torch.tensor(wanted, device=x.device), :]
