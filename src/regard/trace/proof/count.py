"""torch's own count of the attention that runs: a dispatch mode that follows where each tensor comes from.

It leans on nothing that the doors know. Whatever comes from the model's inputs is an activation; a product of two of
them, and a softmax, are followed through all that is done cell by cell, until they meet values.
"""

import sys
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from regard.trace.doors.call_site import Tree, place_of
from regard.trace.doors.handwritten import is_attention
from regard.trace.doors.ledger import is_normalised
from regard.trace.doors.products import MIXTURES

FUSED = ("_scaled_dot_product", "_native_multi_head_attention", "_transformer_encoder_layer_fwd", "flex_attention")
SOFTMAX = ("_softmax", "_safe_softmax")
PRODUCTS = {"bmm": (0, 1), "mm": (0, 1), "baddbmm": (1, 2), "addmm": (1, 2)}
LOSES = ("linear", "convolution", "embedding", "native_layer_norm", "mean", "var", "cumsum", "index_add", "scatter_add")


@dataclass(eq=False)
class ProductOrigin:
    """A product of activations or a softmax, from which other tensors are made."""

    counted: bool  # as a softmax over rows, which is a map of its own
    square: bool = False
    straight: int = 0  # the product itself: what has it as an operand takes it as it is
    weighed: bool = False  # spread over the channels of values


class AttentionCounter(TorchDispatchMode):
    """Counts what computes attention below autograd: fused kernels, softmaxes over rows, and products by hand."""

    supports_higher_order_operators = True

    def __init__(self, tree: Tree, inputs: Any) -> None:
        super().__init__()
        self.tree = tree
        self.found: Counter[str] = Counter()
        self.by_hand: Counter[str] = Counter()  # of `found`, by the path of the module
        self.active: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self.origins: WeakIdKeyDictionary = WeakIdKeyDictionary()
        for x in tensors_in(inputs):
            self.active[x] = True

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), named: Any = None) -> Any:
        name = str(getattr(function, "__name__", function)).partition(".")[0]
        out = function(*args, **(named or {}))
        if "backward" not in name:
            self.look(name, args, tensors_in((args, named)), tensors_in(out))
        return out

    def look(self, name: str, args: Any, given: list[Tensor], made: list[Tensor]) -> None:
        rows = name in SOFTMAX and over_rows(*args[:2])
        if name.startswith(FUSED) or rows:
            self.found[name] += 1
        origin = None
        if name in PRODUCTS:
            left, right = (args[i] for i in PRODUCTS[name])
            origin = self.product(name, left, right, made[0])
        elif name in SOFTMAX and made[0].ndim > 1:
            origin = ProductOrigin(rows)
        elif not name.startswith((*FUSED, *LOSES)):
            origin = next((self.origins[x] for x in given if x in self.origins), None)
        if origin is not None and name == "mul" and made[0].ndim > 2:
            weights = next((x for x in given if x in self.origins), None)
            if weights is not None and weights.shape[-1] == 1 < made[0].shape[-1] and weights.shape[-2] > 1:
                origin = replace(origin, weighed=True)
        if origin is not None and name == "sum":
            dims = [dim % args[0].ndim for dim in (args[1] if len(args) > 1 and args[1] else ())]
            if origin.weighed and dims == [args[0].ndim - 2]:
                self.count(origin, "weighted sum", one_query=args[0].ndim == 3 and not origin.straight)
            origin = None
        active = any(x in self.active for x in given)
        for x in made:
            if active:
                self.active[x] = True
            if origin is not None and x.is_floating_point():
                self.origins[x] = origin

    def product(self, name: str, left: Tensor, right: Tensor, out: Tensor) -> ProductOrigin | None:
        """A product of matrices: the second of two, or perhaps the first."""
        if left.shape[-1] < 2 or left not in self.active or right not in self.active:
            return None
        for x in (left, right):
            origin = self.origins.get(x)
            if origin is None or (origin.square and origin.straight == x.data_ptr()):
                continue
            self.count(origin, name)
            return None
        for weights in (left, right.mT):
            if (weights is left or weights.shape[-2] > 1) and weights.ndim > 2 and is_normalised(weights):
                self.count(ProductOrigin(False), name)
                return None
        square = len({*left.shape[-2:], *right.shape[-2:]}) == 1
        return ProductOrigin(False, square, out.data_ptr())

    def count(self, origin: ProductOrigin, name: str, *, one_query: bool = False) -> None:
        """Once for each map, which may meet more than one tensor of values.

        `one_query` is a softmax by which experts, layers and branches are mixed as well as keys.
        """
        if origin.counted:
            return
        origin.counted = True
        place = place_of(sys._getframe(2))
        if one_query and (place is None or not is_attention(place)):
            return
        inside = None if place is None else self.tree.get(id(place.module))
        if inside is not None and not any(word in type(inside[1]).__name__.lower() for word in MIXTURES):
            self.found[f"{name} by hand"] += 1
            self.by_hand[inside[0] or type(inside[1]).__name__] += 1


def tensors_in(x: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(x) if isinstance(leaf, Tensor)]


def over_rows(scores: Any, dim: int) -> bool:
    """Whether a softmax runs over rows that could be a map's."""
    return bool(scores.ndim >= 3 and dim in (-1, scores.ndim - 1))
