"""Tensors of another library as ours, and ours as theirs, as a table says."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import count
from typing import Any

import torch
from torch import Tensor

from regard.errors import ModelError
from regard.models.config import sizes_in
from regard.models.convert.operations import Tensors
from regard.models.convert.table import ConversionTable, TensorRule
from regard.models.kinds import kind_of_config
from regard.models.store import SkipInit

State = dict[str, Tensor]
FEW = 1000  # a model of so many layers or channels is made at once, and its missing tensors named


def convert_weights(table: ConversionTable, state: Mapping[str, Tensor], config: Any) -> State:
    """Our `state_dict` from theirs, in their dtypes; `config` is ours, as `convert_config` gives it.

    Every tensor must be known, there and of its shape: one that is not is an error that names it.
    """
    check_sizes(config, state)
    rules, shapes = expand_rules(table, config)
    theirs = prepare_state(table, state, config)
    check_tensors(table, export_tensors(rules, shapes), theirs)
    result: State = {}
    for rule in rules:
        tensors: Tensors = tuple(theirs[name] for name in rule.theirs)
        for operation in rule.operations:
            tensors = operation.to_ours(tensors)
        result.update(zip(rule.ours, (tensor.contiguous() for tensor in tensors), strict=True))
    return result


def export_weights(table: ConversionTable, state: Mapping[str, Tensor], config: Any) -> State:
    """Their `state_dict` from ours, with every name that a tensor has there: the way back of `convert_weights`."""
    rules, shapes = expand_rules(table, config)
    check_tensors(table, shapes, state)
    result = export_tensors(rules, state)
    dtype = next(iter(result.values())).dtype
    result |= {name: make(config).to(dtype) for name, make in table.constants.items()}
    result |= {name: result[origin] for name, origin in table.copies(config).items()}
    return {name.removeprefix(table.prefix): one for name, one in result.items()} if table.headless(config) else result


def expand_rules(table: ConversionTable, config: Any) -> tuple[list[TensorRule], State]:
    """The rules that our model of this config has tensors for, one per layer, and these tensors without numbers."""
    try:
        with torch.device("meta"), SkipInit():
            shapes = config.build().state_dict()
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise ModelError(f"the config describes no model of ours: {error}") from error

    def expand(rule: TensorRule) -> Iterator[TensorRule]:
        for layer in count() if rule.repeats else [0]:
            one = rule.at(layer)
            if not shapes.keys() >= set(one.ours) or one.unless in shapes:
                return
            yield one

    rules = [one for rule in table.rules for one in expand(rule)]
    lacking = sorted(shapes.keys() - {name for rule in rules for name in rule.ours})
    if lacking:
        raise ModelError(
            f"our {type(config).__name__.removesuffix('Config')} has a tensor {lacking[0]!r}, which no model of the "
            f"family {table.family!r} has; choose another config"
        )
    return rules, shapes


def export_tensors(rules: list[TensorRule], state: Mapping[str, Tensor]) -> State:
    """Their tensors from ours, by the rules alone; of tensors without numbers it gives the shapes."""
    result: State = {}
    for rule in rules:
        tensors: Tensors = tuple(state[name] for name in rule.ours)
        for operation in reversed(rule.operations):
            tensors = operation.to_theirs(tensors)
        result.update(zip(rule.theirs, (tensor.contiguous() for tensor in tensors), strict=True))
    return result


def prepare_state(table: ConversionTable, state: Mapping[str, Tensor], config: Any) -> State:
    """Their tensors under the names of the rules; second names and constants are compared, and gone."""
    bare = table.prefix and not any(name.startswith(table.prefix) for name in state)
    heads = {name for rule in table.rules for name in rule.theirs if not name.startswith(table.prefix)}
    result = {table.prefix + name if bare and name not in heads else name: tensor for name, tensor in state.items()}
    leftovers = [re.escape(name).replace(r"\{layer\}", r"\d+") for name in table.leftovers]
    for name in list(result):
        if any(re.fullmatch(pattern, name) for pattern in leftovers):
            del result[name]
    for name, origin in table.copies(config).items():
        tensor = result.pop(name, None)
        if tensor is not None and not torch.equal(result.setdefault(origin, tensor), tensor):
            raise ModelError(
                f"the tensors {name!r} and {origin!r} differ, but the config says that they are one; correct the "
                "config (tie_word_embeddings), or the weights"
            )
    for name, make in table.constants.items():
        tensor = result.pop(name, None)
        if tensor is not None:
            check_constant(table, name, tensor, make(config))
    return result


def check_constant(table: ConversionTable, name: str, tensor: Tensor, wanted: Tensor) -> None:
    """Refuse a tensor that was learned where ours has none, and computes or leaves out what it stands for."""
    if tensor.shape != wanted.shape:
        raise_misshapen(name, tensor, wanted)
    wanted = wanted.double()
    rounding = 16 * torch.finfo(tensor.dtype).eps * float(wanted.abs().max())  # where it is 0, it must be 0
    difference = float((tensor.double() - wanted).abs().max())
    if not difference <= rounding:
        raise ModelError(
            f"the tensor {name!r} has values of its own (it differs from the usual ones by up to "
            f"{difference:.2g}), which our model of the family "
            f"{table.family!r} cannot express; keep the model of that library"
        )


def check_sizes(config: Any, state: Mapping[str, Tensor]) -> None:
    """Refuse sizes that so few weights cannot have, before a model is made of them."""
    numbers = sum(tensor.numel() for tensor in state.values())
    for field in fields(config):
        most = len(state) if field.name.endswith(("layers", "depths")) else numbers
        size = max(sizes_in(getattr(config, field.name)), default=0)
        if size > max(most, FEW) and field.name not in kind_of_config(config).unbounded:
            raise ModelError(
                f"by the config {field.name} is {size}, but the weights are {len(state)} tensors with {numbers} "
                "numbers in all; give the weights that belong to this config"
            )


def check_tensors(table: ConversionTable, wanted: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
    """Refuse a tensor that is missing, not known, of another shape, or of no floating-point dtype."""
    missing = [name for name in wanted if name not in state]
    unknown = [name for name in state if name not in wanted]
    if unknown:
        raise ModelError(
            f"the weights have {len(unknown)} tensors that a {table.family!r} of this config has not, {unknown[0]!r} "
            "for one; check the config, or leave them out if the model does without them"
        )
    if missing:
        raise ModelError(
            f"the weights lack {len(missing)} tensors of a {table.family!r} of this config, {missing[0]!r} for one; "
            "check the config, or save the whole model"
        )
    for name, tensor in state.items():
        if tensor.shape != wanted[name].shape:
            raise_misshapen(name, tensor, wanted[name])
        if not tensor.is_floating_point():
            raise ModelError(f"the tensor {name!r} came as {tensor.dtype}, wanted floats; dequantize the weights first")


def raise_misshapen(name: str, tensor: Tensor, wanted: Tensor) -> None:
    raise ModelError(
        f"the tensor {name!r} came with shape {tuple(tensor.shape)}, but by the config it is {tuple(wanted.shape)}; "
        "give the weights that belong to this config"
    )
