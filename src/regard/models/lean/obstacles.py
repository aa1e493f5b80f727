"""When the modules of a model may be passed over: nobody listens, and they are what they are taken for."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.nn.modules.module as hooks
from torch import Tensor, nn

from regard.attention.observe import OBSERVER, RECORDERS
from regard.eager import is_transformed
from regard.layers import DecoderBlock, EncoderBlock, MultiHead, Residual
from regard.layers.dropout import Dropout
from regard.layers.feedforward import FeedForward
from regard.models.causal import CausalModel
from regard.models.encoder_decoder import Decoder, Encoder, EncoderDecoder
from regard.models.gpt import GPT, AttentionBlock
from regard.models.gpt2 import Gpt2
from regard.models.llama import Llama
from regard.models.pointer_generator import PointerGenerator
from regard.models.translator import Translator
from regard.positions import Learned, Rotary, Sinusoid

MODELS = (GPT, Gpt2, Llama)
TRANSLATORS = (Translator, PointerGenerator)  # the latter without its pointer
PARTS = frozenset({
    *MODELS, *TRANSLATORS, nn.ModuleList, nn.Embedding, nn.Linear, nn.LayerNorm, nn.RMSNorm, nn.Identity,
    Encoder, Decoder, EncoderBlock, DecoderBlock, AttentionBlock, MultiHead, FeedForward, Residual, Dropout,
    Learned, Sinusoid, Rotary,
})  # fmt: skip
Modules = Mapping[str, nn.Module]  # all of a model, by their names
METHODS = ("forward", "hidden", "decode_hidden", "embed", "attend", "__call__")


def find_obstacle(model: CausalModel) -> str | None:
    """Why the modules of a model must compute its steps themselves now; None where nothing speaks against a shortcut.

    >>> from regard.models import Gpt2Config
    >>> model = Gpt2Config(vocab_size=10, width=8, heads=2, layers=1, context=16).build()
    >>> find_obstacle(model)
    'the model is in training mode'
    >>> find_obstacle(model.eval())
    """
    return find_first(model, find_odd_attention)


def find_translator_obstacle(model: EncoderDecoder) -> str | None:
    """The same of a model with an encoder, whose decoder is to be passed over.

    >>> from regard.models import TranslatorConfig
    >>> find_translator_obstacle(TranslatorConfig(11, 13, width=8, heads=2, layers=1).build().eval())
    """
    return find_first(model, find_odd_decoder)


def find_first(model: Any, find_odd: Callable[[Any], str | None]) -> str | None:
    """The first reason there is."""
    modules = dict(model.named_modules())  # once: to walk over them takes longer than to look at them
    reasons: Iterator[str | None] = (look(modules) for look in (find_listener, find_foreign_part, find_hook))
    first = next((reason for reason in reasons if reason is not None), None)
    return first or find_odd(model) or find_odd_weight(modules)


def find_listener(modules: Modules) -> str | None:
    """Somebody watches, edits or swaps, or the model trains."""
    if OBSERVER.get() is not None or RECORDERS.get():
        return "somebody watches or edits attention"
    return "the model is in training mode" if any(module.training for module in modules.values()) else None


def find_foreign_part(modules: Modules) -> str | None:
    """A module that is not exactly one of ours or torch's own, such as an adapter, a parametrization or a subclass."""
    for name, module in modules.items():
        own = module.__dict__
        if (
            type(module) not in PARTS
            or own.get("_compiled_call_impl") is not None
            or any(one in own for one in METHODS)
        ):
            return f"{name or 'the model'} is a {type(module).__name__} of its own"
    return None


def find_hook(modules: Modules) -> str | None:
    """A hook that wants to see a module run."""
    if has_hooks(find_hook_tables(modules.values())):
        return "there are hooks on its modules"
    return None


def find_hook_tables(modules: Iterable[nn.Module]) -> list[Any]:
    """Every table that can hold hooks around a forward call, of these modules and of all modules there are."""
    own = [table for module in modules for table in (module._forward_hooks, module._forward_pre_hooks)]
    return [*own, hooks._global_forward_hooks, hooks._global_forward_pre_hooks]


def has_hooks(tables: list[Any]) -> bool:
    return any(map(len, tables))


def find_odd_attention(model: CausalModel) -> str | None:
    """Attention, blocks or positions that do more than the shortcut can."""
    first: Any = model.blocks[0]
    for block in model.blocks:
        attention: Any = block.attention
        if not is_scaled_dot(attention) or attention.positions is not first.attention.positions:
            return "its attention is not the scaled dot product alone"
        if any(one.order != "pre" for one in block.modules() if isinstance(one, Residual)):
            return "its norms stand after the sublayers"
    return find_odd_turn(first.attention.positions)


def find_odd_decoder(model: EncoderDecoder) -> str | None:
    """The same of a decoder that looks at a source; its norms may stand before or after the sublayers."""
    blocks: list[Any] = [*model.decoder.blocks]
    turn = blocks[0].self_attention.positions
    for block in blocks:
        own, cross = block.self_attention, block.cross_attention
        if not is_scaled_dot(own) or own.positions is not turn or not is_scaled_dot(cross) or cross.positions:
            return "its attention is not the scaled dot product alone"
    if len({sizes for block in blocks for sizes in read_sizes(block)}) > 1:
        return "its blocks differ, or share key heads"
    if not model.decoder.scaled or model.head_scale != 1:
        return "its embeddings or hidden states are scaled in another way"
    return find_odd_turn(turn)


def read_sizes(block: Any) -> set[tuple[Any, ...]]:
    """What the shortcut takes to be one in all blocks of a decoder: key heads, their width, activation, order."""
    attentions = (block.self_attention, block.cross_attention)
    heads = {(count, one.head_width) for one in attentions for count in (one.heads, one.kv_heads)}
    orders = {one.order for one in block.modules() if isinstance(one, Residual)}
    return {(*sizes, block.feed_forward.activation, order) for sizes in heads for order in orders}


def is_scaled_dot(attention: Any) -> bool:
    """Whether a layer computes the scaled dot product and nothing else."""
    more = (attention.score, attention.scale, attention.softcap, attention.sink_logits, attention.attention)
    return all(one is None for one in more)


def find_odd_turn(turn: Any) -> str | None:
    """Rotary positions that the shortcut does not turn."""
    if turn is not None and (turn.layout != "half" or turn.rotated != turn.width):
        return "its rotary positions turn some channels only, or neighbours"
    return None


def find_odd_weight(modules: Modules) -> str | None:
    """Weights that are not plain float32 or float64 numbers of one dtype on the processor."""
    weights = [weight for one in modules.values() for weight in one._parameters.values() if weight is not None]
    kinds = {(weight.dtype, weight.device.type) for weight in weights}
    if kinds not in ({(torch.float32, "cpu")}, {(torch.float64, "cpu")}):
        return "its weights are not all float32, or all float64, on the processor"
    if any(type(weight) is not nn.Parameter or type(weight.data) is not Tensor for weight in weights):
        return "its weights are no plain tensors"
    return "its weights were made in inference mode" if any(weight.is_inference() for weight in weights) else None


def make_guard(model: nn.Module, *parts: nn.Module) -> Callable[[], bool]:
    """What says, in microseconds, whether a step may still pass over the modules of a model without an obstacle.

    Someone may listen, hook, train, record gradients, or replace weights or modules between two steps. `parts` are the
    modules that a step passes over, all of them unless some are given.
    """
    modules = [module for part in parts or (model,) for module in part.modules()]
    tables, weights = find_hook_tables(modules), [*model.parameters()]
    inside = [one for one in (model._modules, *(module._modules for module in modules)) if one]
    held = [module._parameters for module in modules if module._parameters]

    def find_places() -> list[int]:
        """Where each module and each weight lies."""
        places = [weight.data_ptr() for table in held for weight in table.values() if weight is not None]
        return places + [id(module) for table in inside for module in table.values()]

    places = find_places()

    def may_go_on() -> bool:
        if OBSERVER.get() is not None or RECORDERS.get() or model.training or has_hooks(tables):
            return False
        if torch.is_grad_enabled() and any(weight.requires_grad for weight in weights):
            return False
        if torch.is_autocast_enabled("cpu") or torch.compiler.is_compiling() or is_transformed():
            return False
        return find_places() == places

    return may_go_on
