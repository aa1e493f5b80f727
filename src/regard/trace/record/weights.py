"""A trace from weights that people already have, such as `outputs.attentions`."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from regard.attention.map import AttentionMap
from regard.errors import TraceError
from regard.tokens import Tokens
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace

KINDS = ("self", "cross", "unknown")
STACKS = ("encoder", "decoder", "attentions", "cross")  # in the order they are computed in
ENDING = "_attentions"
OUTPUTS = ("last_hidden_state", "logits", "loss", "past_key_values", "hidden_states")  # what models return beside them
FULL, HALF = 1e-3, 2e-2  # how far a row may be from adding up to 1 and still be weights


def from_weights(weights: Any, tokens: Any = None, *, keys: Any = None, kind: str = "self") -> Trace:
    """A trace of stored weights, to look at, measure and save like one that was watched.

    `weights` is (b, h, q, k), (h, q, k) or (q, k), as a tensor, an array of NumPy, JAX or a library that knows one of
    them, or nested lists; a list or tuple of maps, one for each layer, as `outputs.attentions` is; a mapping of names
    to maps, where "encoder", "decoder" and "cross" are the stacks of an encoder–decoder; or what a model of
    `transformers` returned when asked for its attentions. `tokens` names the queries and `keys` the keys, where they
    are others: strings, `Tokens`, a list of either for each batch entry, or `(tokenizer, ids)`. For an encoder and a
    decoder `tokens` are the decoder's and `keys` the encoder's. Nothing is copied but arrays; what a mask hid is not
    known and shows as 0.

    >>> import torch
    >>> trace = from_weights(torch.tensor([[1.0, 0.0], [0.25, 0.75]]), ["The", "cat"])
    >>> trace.layers
    [layer.0 (self, b 1, h 1, q 2, k 2, stored)]
    >>> trace["layer.0"].head(0).top(1)[0].flatten()
    tensor([1.0000, 0.7500])
    >>> from_weights({"block.3": torch.eye(2), "block.7": torch.eye(2)}).layers[1]
    block.7 (self, b 1, h 1, q 2, k 2, stored)
    """
    if kind not in KINDS:
        raise TraceError(f"kind is {kind!r}; give one of {', '.join(KINDS)}")
    stacks = stacks_of(weights)
    layers: list[Layer] = []
    queries, seen = read_tokens(tokens, "tokens"), read_tokens(keys, "keys")
    for stack, stored in stacks.items():
        at, to = queries, seen or queries
        if stack == "encoder":
            at, to = (seen or queries,) * 2
        elif stack == "decoder" or (not stack and "cross" in stacks):
            at, to = (queries,) * 2
        elif stack == "cross":
            to = seen
        for name, one in named_layers(stack, stored):
            if one is None:  # some models return nothing for layers without attention
                continue
            kept = as_weights(one, name)
            layers.append(
                Layer(
                    name=name,
                    kind={"encoder": "self", "decoder": "self", "cross": "cross"}.get(stack, kind),
                    weights=AttentionMap.stored(kept),
                    door="given",
                    queries=fit_tokens(at, kept.shape[0], kept.shape[-2], f"the queries of {name}"),
                    keys=fit_tokens(to, kept.shape[0], kept.shape[-1], f"the keys of {name}"),
                )
            )
    if not layers:
        raise TraceError("no weights came; ask the model for them with output_attentions=True, or watch it")
    return Trace(runs=[Run(layers)])


def stacks_of(weights: Any) -> dict[str, Any]:
    """The layers of each stack; a model without stacks has one, without a name. Other names are those of layers."""
    if not isinstance(weights, Mapping):
        if not hasattr(weights, "attentions"):
            return {"": weights}
        weights = {"attentions": weights.attentions}
    named = {str(name).removesuffix(ENDING): value for name, value in weights.items()}
    if not named.keys() & {*STACKS, *OUTPUTS} and all(map(may_be_weights, named.values())) and named:
        return {str(name): value for name, value in weights.items()}
    read_tokens = {stack: named[stack] for stack in STACKS if named.get(stack) is not None}
    found = {
        "" if stack == "attentions" else stack: stored
        for stack, stored in read_tokens.items()
        if not isinstance(stored, list | tuple) or stored  # a model without such layers returns ()
    }
    if not found:
        raise TraceError(
            f"there are no weights under {', '.join(map(repr, weights)) or 'no name'}; give maps by the names of their "
            "layers, or as 'encoder', 'decoder' and 'cross', or call the model with output_attentions=True and eager "
            "attention, or watch it"
        )
    return found


def named_layers(stack: str, stored: Any) -> list[tuple[str, Any]]:
    """The layers of a stack by name: numbered, but for one map that somebody gave a name of its own."""
    layers = each(stored)
    if stack and stack not in STACKS:
        return [(stack, layers[0])] if len(layers) == 1 else [(f"{stack}.{i}", one) for i, one in enumerate(layers)]
    path = f"{stack}.layer" if stack else "layer"
    return [(f"{path}.{i}", one) for i, one in enumerate(layers)]


def is_array(one: Any) -> bool:
    """Whether this is an array of some library, rather than lists or something else."""
    return any(hasattr(one, name) for name in ("ndim", "__array__", "__dlpack__"))


def may_be_weights(one: Any) -> bool:
    return is_array(one) or isinstance(one, list | tuple)


def each(stored: Any) -> list[Any]:
    """The layers of a stack, one by one."""
    if not isinstance(stored, list | tuple):
        if getattr(stored, "ndim", 0) == 5:
            return list(stored)
        return [stored]
    if any(isinstance(one, tuple) for one in stored):
        raise TraceError(
            "the weights are a tuple for each step, as generate() returns them; watch the call of generate() instead, "
            "which stitches the steps, or give one step"
        )
    if all(one is None or is_array(one) or holds_arrays(one) for one in stored):
        return list(stored)
    return list(stored) if depth(stored) == 5 else [stored]  # nested lists of numbers


def holds_arrays(one: Any) -> bool:
    """Whether this is a list of arrays: the heads of one layer."""
    return isinstance(one, list) and bool(one) and all(map(is_array, one))


def depth(stored: Any) -> int:
    """How many lists stand in each other."""
    return 1 + depth(stored[0]) if isinstance(stored, list | tuple) and stored else 0


def tensor_of(one: Any) -> Tensor:
    """The numbers of any array, in their own precision where torch has it."""
    if isinstance(one, Tensor):
        return one.detach()
    if holds_arrays(one):
        return torch.stack([tensor_of(head) for head in one])
    if hasattr(one, "__dlpack__") and not hasattr(one, "__array__"):
        return from_dlpack(one).clone()
    array = np.asarray(one)
    if array.dtype.name == "bfloat16":  # of JAX and of ml_dtypes; NumPy itself knows no such number, nor torch theirs
        return torch.from_numpy(np.ascontiguousarray(array).view(np.int16).copy()).view(torch.bfloat16)
    if array.dtype.name.startswith("float8"):
        array = array.astype(np.float32)
    return torch.tensor(array)


def as_weights(one: Any, name: str) -> Tensor:
    """(b, h, q, k), detached, if it can be weights at all."""
    try:
        kept = tensor_of(one)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TraceError(f"{name} is no tensor, array or lists of numbers, but {type(one).__name__}") from error
    if kept.is_complex() or not 2 <= kept.ndim <= 4 or not kept.numel():
        raise TraceError(
            f"{name} has shape {tuple(kept.shape)} of {kept.dtype}; give weights as (b, h, q, k), (h, q, k) or (q, k)"
        )
    kept = kept if kept.is_floating_point() else kept.float()
    kept = kept.reshape((1,) * (4 - kept.ndim) + tuple(kept.shape))
    within = HALF if kept.dtype.itemsize < 4 else FULL
    least, most = kept.amin().item(), kept.sum(-1, dtype=torch.float32).amax().item()
    if not least >= -within or not most <= 1 + within:  # written so that NaN is refused too
        what = "holds NaN" if least != least else f"has values from {least:.3g} and a row that adds up to {most:.3g}"
        raise TraceError(
            f"{name} {what}: these are scores, not weights, or were changed by dropout; "
            "give the weights after softmax, from a model in eval mode"
        )
    return kept


def read_tokens(tokens: Any, what: str) -> list[Tokens] | None:
    """One `Tokens` for each batch entry, from any of the forms."""
    if tokens is None:
        return None
    if isinstance(tokens, Tokens):
        return [tokens]
    if isinstance(tokens, tuple) and len(tokens) == 2 and not isinstance(tokens[0], str | Tokens | list | tuple):
        from regard.tokens.read import Reader

        reader, ids = Reader(tokens[0]), tokens[1]
        rows = ids.tolist() if hasattr(ids, "tolist") else list(ids)
        return [reader(row) for row in (rows if rows and isinstance(rows[0], list | tuple) else [rows])]
    if isinstance(tokens, list | tuple) and tokens and not isinstance(tokens[0], str):
        return [one if isinstance(one, Tokens) else Tokens.of(one) for one in tokens]
    if isinstance(tokens, Mapping) or not isinstance(tokens, list | tuple | str):
        raise TraceError(f"{what} came as {type(tokens).__name__}; give a list of strings, Tokens, or (tokenizer, ids)")
    return [Tokens.of(tokens)]


def fit_tokens(tokens: list[Tokens] | None, batch: int, size: int, what: str) -> tuple[Tokens, ...] | None:
    """The tokens of every batch entry; those of one entry serve all."""
    if tokens is None:
        return None
    if len(tokens) not in (1, batch):
        raise TraceError(f"tokens came for {len(tokens)} batch entries, but there are {batch}; give them for each")
    wrong = next((len(one) for one in tokens if len(one) != size), None)
    if wrong is not None:
        raise TraceError(f"{wrong} tokens came for {what}, which are {size}; give one token for each")
    return tuple(tokens) if len(tokens) == batch else tuple(tokens) * batch
