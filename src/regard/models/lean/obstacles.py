"""When the modules of a model may be passed over: nobody listens, and they are what they are taken for."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.modules.module as hooks
from torch import Tensor, nn

from regard.attention.observe import OBSERVER, RECORDERS
from regard.eager import is_transformed
from regard.layers import EncoderBlock, MultiHead, Residual
from regard.layers.dropout import Dropout
from regard.layers.feedforward import FeedForward
from regard.models.causal import CausalModel
from regard.models.gpt import GPT, AttentionBlock
from regard.models.gpt2 import Gpt2
from regard.models.llama import Llama
from regard.positions import Learned, Rotary, Sinusoid

MODELS = (GPT, Gpt2, Llama)
PARTS = frozenset({
    *MODELS, nn.ModuleList, nn.Embedding, nn.Linear, nn.LayerNorm, nn.RMSNorm,
    EncoderBlock, AttentionBlock, MultiHead, FeedForward, Residual, Dropout, Learned, Sinusoid, Rotary,
})  # fmt: skip
METHODS = ("forward", "hidden", "attend", "__call__")


def find_obstacle(model: CausalModel) -> str | None:
    """Why the modules of a model must compute its steps themselves now; None where nothing speaks against a shortcut.

    >>> from regard.models import Gpt2Config
    >>> model = Gpt2Config(vocab_size=10, width=8, heads=2, layers=1, context=16).build()
    >>> find_obstacle(model)
    'the model is in training mode'
    >>> find_obstacle(model.eval())
    """
    reasons: Iterator[str | None] = (
        look(model) for look in (find_listener, find_foreign_part, find_hook, find_odd_attention, find_odd_weight)
    )
    return next((reason for reason in reasons if reason is not None), None)


def find_listener(model: CausalModel) -> str | None:
    """Somebody watches, edits or swaps, or the model trains."""
    if OBSERVER.get() is not None or RECORDERS.get():
        return "somebody watches or edits attention"
    return "the model is in training mode" if any(module.training for module in model.modules()) else None


def find_foreign_part(model: CausalModel) -> str | None:
    """A module that is not exactly one of ours or torch's own, such as an adapter, a parametrization or a subclass."""
    for name, module in model.named_modules():
        own = module.__dict__
        if (
            type(module) not in PARTS
            or own.get("_compiled_call_impl") is not None
            or any(one in own for one in METHODS)
        ):
            return f"{name or 'the model'} is a {type(module).__name__} of its own"
    return None


def find_hook(model: CausalModel) -> str | None:
    """A hook that wants to see a module run."""
    if has_hooks(find_hook_tables(model)):
        return "there are hooks on its modules"
    return None


def find_hook_tables(model: nn.Module) -> list[Any]:
    """Every table that can hold hooks around a forward call, of the modules and of all modules there are."""
    own = [table for module in model.modules() for table in (module._forward_hooks, module._forward_pre_hooks)]
    return [*own, hooks._global_forward_hooks, hooks._global_forward_pre_hooks]


def has_hooks(tables: list[Any]) -> bool:
    return any(map(len, tables))


def find_odd_attention(model: CausalModel) -> str | None:
    """Attention, blocks or positions that do more than the shortcut can."""
    first: Any = model.blocks[0]
    for block in model.blocks:
        attention: Any = block.attention
        usual = (attention.score, attention.scale, attention.softcap, attention.sink_logits, attention.attention)
        if any(one is not None for one in usual) or attention.positions is not first.attention.positions:
            return "its attention is not the scaled dot product alone"
        if any(one.order != "pre" for one in block.modules() if isinstance(one, Residual)):
            return "its norms stand after the sublayers"
    turn = first.attention.positions
    if turn is not None and (turn.layout != "half" or turn.rotated != turn.width):
        return "its rotary positions turn some channels only, or neighbours"
    return None


def find_odd_weight(model: CausalModel) -> str | None:
    """Weights that are not plain float32 or float64 numbers of one dtype on the processor."""
    weights = [*model.parameters()]
    kinds = {(weight.dtype, weight.device.type) for weight in weights}
    if kinds not in ({(torch.float32, "cpu")}, {(torch.float64, "cpu")}):
        return "its weights are not all float32, or all float64, on the processor"
    if any(type(weight) is not nn.Parameter or type(weight.data) is not Tensor for weight in weights):
        return "its weights are no plain tensors"
    return "its weights were made in inference mode" if any(weight.is_inference() for weight in weights) else None


def make_guard(model: CausalModel) -> Callable[[], bool]:
    """What says, in microseconds, whether a step may still pass over the modules of a model without an obstacle.

    Someone may listen, hook, train, record gradients or replace weights between two steps.
    """
    tables, weights = find_hook_tables(model), [*model.parameters()]
    places = [weight.data_ptr() for weight in weights]

    def may_go_on() -> bool:
        if OBSERVER.get() is not None or RECORDERS.get() or model.training or has_hooks(tables):
            return False
        if torch.is_grad_enabled() and any(weight.requires_grad for weight in weights):
            return False
        if torch.is_autocast_enabled("cpu") or torch.compiler.is_compiling() or is_transformed():
            return False
        return [weight.data_ptr() for weight in weights] == places

    return may_go_on
