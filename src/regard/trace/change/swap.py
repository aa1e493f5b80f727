"""`with swap(model, attention=window(512)):` another attention in the place of a model's own."""

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.mask import Mask
from regard.attention.matrix_free.mechanism import Mechanism
from regard.errors import WatchError
from regard.trace.change.cost import seconds
from regard.trace.change.effect import compare_outputs
from regard.trace.change.references import copy_inputs
from regard.trace.change.swap_listener import LayerSwap, SwapListener, describe_attention
from regard.trace.change.swap_report import SwapReport
from regard.trace.doors.handwritten import settle
from regard.trace.doors.install import listening, must_be_watchable
from regard.trace.doors.scope import ListenerScope

ROUNDS = 2  # calls of the model whose time is taken, after one to warm up


class Swap:
    """Another attention for a model, while a block lasts or for one report. `swap` makes it."""

    def __init__(
        self,
        model: nn.Module,
        attention: Any,
        layers: Any = None,
        tokenizer: Any = None,
        read: Callable[[Any], Tensor] | None = None,
    ) -> None:
        must_be_watchable(model)
        if not isinstance(attention, Mask | Mechanism):
            raise WatchError(
                f"attention is {type(attention).__name__}, but a mask such as window(512, 0) or a mechanism such as "
                "Performer(…) takes the place of a model's own; give one of these"
            )
        self.model: nn.Module = model
        self.attention: Mask | Mechanism = attention
        self.tokenizer, self.read, self.named = tokenizer, read, layers
        self._listener = SwapListener(model, attention, layers)
        self._open: tuple[ExitStack, ListenerScope] | None = None

    @property
    def layers(self) -> dict[str, LayerSwap]:
        """What became of every attention layer that ran in the block, by name."""
        return self._listener.layers

    def __enter__(self) -> "Swap":
        if self._open is not None:
            raise WatchError("this swap is open already; make another one for a block inside of it")
        self._listener = SwapListener(self.model, self.attention, self.named)
        stack = ExitStack()
        self._open = (stack, stack.enter_context(listening(self._listener)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._open is not None
        (stack, scope), self._open = self._open, None
        with stack:
            if kind is None:
                settle(scope)
                self._listener.finish()

    def __call__(self, *args: Any, **inputs: Any) -> SwapReport:
        """Call the model with its own attention and with the other, without gradients, and compare.

        The model runs a few times each way: both draw the same random numbers, and each run gets its own copy of a
        cache among the inputs.
        """
        if self._open is not None:
            raise WatchError("this swap is open, so that the model's own answer cannot be had; ask after the block")
        device = next((p.device for p in self.model.parameters()), torch.device("cpu"))

        def run() -> Any:
            with torch.random.fork_rng():
                return self.model(*copy_inputs(args), **copy_inputs(inputs))

        with torch.no_grad():
            before = run()
            taken = min(seconds(run, device) for _ in range(ROUNDS))
            listener = SwapListener(self.model, self.attention, self.named, metered=True)
            with listening(listener) as scope:
                after = run()
                settle(scope)
                listener.finish()
        notes = [f"{path} was left as it is: {why}" for path, why in listener.reasons().items()]
        effect = compare_outputs(before, after, inputs, self.tokenizer, self.read, model=self.model)
        return SwapReport(describe_attention(self.attention), effect, listener.layers, taken, notes)

    report = __call__

    def __repr__(self) -> str:
        where = "" if self.named is None else f", layers={self.named!r}"
        return f"swap({type(self.model).__name__}, attention={describe_attention(self.attention)}{where})"


def swap(
    model: Any,
    *,
    attention: Any,
    layers: Any = None,
    tokenizer: Any = None,
    read: Callable[[Any], Tensor] | None = None,
) -> Swap:
    """Another attention in the place of a model's own: as a block, or as a report of what it would change.

    `attention` is a mask, `window(256, 0, keep_first=4)` or `longformer(…)`, which holds beside the masks that the
    model has itself, or a mechanism, `Performer(…)` or `Linformer(…)`. The model is one of this package, or any whose
    attention reaches `F.scaled_dot_product_attention` or the attention functions of transformers; what they compute is
    answered by `attend` instead. Self-attention is swapped, cross-attention left alone; `layers` names which ones by
    parts of their paths, cross-attention among them. A query that sees nothing any more mixes to zero.

    `with swap(…):` holds while the block lasts, also for `generate`, step by step; afterwards the model is as it was.
    It goes with `watch` and `edit` in either order: what is watched is the swapped model. Only this context is
    swapped: other threads are not. The model's own attention is computed as well and thrown away.

    `swap(…)(**inputs)`, or `.report(**inputs)`, calls the model both ways and gives a `SwapReport`: how far the output
    is off, whether the strongest tokens agree, how much faster and smaller attention is, which layers were left as
    they are, and why. `tokenizer` names tokens in it, `read` picks the tensor to compare from what the model returns.

    >>> import regard, torch
    >>> model = regard.models.GPTConfig(vocab_size=11, width=16, heads=2, layers=2, context=32).build().eval()
    >>> ids = torch.arange(24)[None] % 11
    >>> found = swap(model, attention=regard.window(4, 0))(ids)
    >>> found.swapped, 0 < found.error < 1, found.agreement <= 1
    (['blocks.0.attention', 'blocks.1.attention'], True, True)
    >>> with torch.no_grad(), swap(model, attention=regard.window(31, 0)):  # sees as much as before
    ...     logits = model(ids)
    >>> torch.allclose(logits, model(ids), atol=1e-6)
    True
    """
    return Swap(model, attention, layers, tokenizer, read)
