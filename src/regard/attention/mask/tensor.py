"""Masks that somebody already has as a tensor or as a function."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Cells, Mask, Not
from regard.eager import readable
from regard.errors import DtypeError, MaskError

LETTERS = "b h q k"
Rule = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class TensorMask(Mask):
    """A boolean tensor. `axes` names its axes in the letters b h q k; empty means full rank."""

    fixed = False

    def __init__(self, tensor: Bool[Tensor, "..."], axes: tuple[str, ...]) -> None:
        self.tensor, self.axes = tensor, axes

    def whole(self, sizes: Sizes, device: torch.device) -> Bool[Tensor, "..."]:
        """The tensor with all axes of the map, of size 1 where it says nothing."""
        if not self.axes:
            return self.tensor if self.tensor.device == device else self.tensor.to(device)
        present = dict(zip(self.axes, self.tensor.shape))
        rank = len(sizes.lead)
        return self.tensor.to(device).reshape(
            [1] * max(0, rank - 2) + [present.get(letter, 1) for letter in LETTERS.split()[max(0, 2 - rank) :]]
        )

    def check(self, sizes: Sizes) -> None:
        want = (*sizes.lead, sizes.q, sizes.k)
        shape = tuple(self.tensor.shape)
        if self.axes:
            have = {"q": sizes.q, "k": sizes.k}
            if sizes.lead:
                have["h"] = sizes.lead[-1]
            if len(sizes.lead) == 2:
                have["b"] = sizes.lead[0]
            for letter, size in zip(self.axes, shape):
                if letter not in have:
                    raise MaskError(
                        f"the mask has an axis {letter!r}, but q of {len(want)} axes has none of that name; "
                        "give a mask of full rank"
                    )
                if size not in (1, have[letter]):
                    raise MaskError(
                        f"the mask of shape {shape} has {size} along {letter!r}, but there are {have[letter]}; "
                        f"give {have[letter]} or 1"
                    )
        elif len(shape) != len(want):
            raise MaskError(
                f"the mask has shape {shape}, but the map is {want} and a mask of fewer axes could mean several "
                f"things; name its axes, such as regard.allowed(mask, axes='{advise(len(shape))}'), "
                "or give it full rank with 1 where it says nothing"
            )
        elif any(a not in (1, b) for a, b in zip(shape, want)):
            raise MaskError(f"the mask has shape {shape}, but the map is {want}; each axis must be equal or 1")

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        t = self.whole(sizes, at.k.device)
        while t.ndim < 4:
            t = t.unsqueeze(0)
        if t.ndim > 4:
            t = t.expand(*sizes.lead, *t.shape[-2:]).flatten(0, -4)
        where = [i if size > 1 else torch.zeros_like(i) for i, size in zip(at, t.shape)]
        return t[tuple(where)]

    def describe(self) -> str:
        if not readable(self.tensor):
            return f"a tensor of shape {tuple(self.tensor.shape)} says what is seen"
        seen, cells = int(self.tensor.sum()), self.tensor.numel()
        return f"a tensor of shape {tuple(self.tensor.shape)} says what is seen, {seen} of its {cells} cells"

    def __repr__(self) -> str:
        axes = f", axes='{' '.join(self.axes)}'" if self.axes else ""
        return f"allowed(tensor of shape {tuple(self.tensor.shape)}{axes})"


class RuleMask(Mask):
    fixed = False

    def __init__(self, function: Rule) -> None:
        self.function = function

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        seen: object = self.function(*at)
        if not isinstance(seen, Tensor) or seen.dtype != torch.bool:
            came = seen.dtype if isinstance(seen, Tensor) else type(seen).__name__
            raise DtypeError(
                f"the rule gave {came}, but it must give True or False for every cell; "
                "write it with comparisons of b, h, q and k, joined by & | ~"
            )
        return seen

    def describe(self) -> str:
        return f"the rule {getattr(self.function, '__name__', 'given')!r} says what is seen"

    def __repr__(self) -> str:
        return f"rule({getattr(self.function, '__name__', self.function)})"


def advise(axes: int) -> str:
    return {1: "k", 2: "q k", 3: "b q k"}.get(axes, LETTERS)


def must_be_boolean(tensor: Tensor, call: str) -> None:
    """Refuse masks of numbers: 1 means look in one library and hidden in the next."""
    if tensor.dtype == torch.bool:
        return
    zero_one = readable(tensor) and bool(((tensor == 0) | (tensor == 1)).all())
    if tensor.is_floating_point() and not zero_one:
        raise DtypeError(
            f"{call} got {tensor.dtype} numbers, but a mask is boolean, True where a query may look; "
            "numbers that are added to the scores go in as bias="
        )
    raise DtypeError(
        f"{call} got {tensor.dtype} numbers, but a mask is boolean; "
        "if 1 means may look, give regard.allowed(mask.bool()); if 1 means hidden, regard.blocked(mask.bool())"
    )


def allowed(tensor: Shaped[Tensor, "..."], *, axes: str = "") -> Mask:
    """True where a query may look, given as a boolean tensor.

    Without `axes` the tensor has all axes of the map, with 1 where it says nothing. A shorter tensor needs
    its axes named, in order, in the letters `b h q k`: (S,) or (L, S) or (B, S) could mean several things,
    and none is guessed.

    >>> import torch
    >>> keys = torch.tensor([[True, False, True]])
    >>> allowed(keys, axes="b k").dense(2, 3, batch=1).int()
    tensor([[[1, 0, 1],
             [1, 0, 1]]], dtype=torch.int32)
    """
    must_be_boolean(tensor, "allowed")
    letters = tuple(axes.split())
    if letters:
        if [x for x in LETTERS.split() if x in letters] != list(letters):
            raise MaskError(f"axes are {axes!r}, but they are some of '{LETTERS}', in this order, each once")
        if len(letters) != tensor.ndim:
            raise MaskError(
                f"axes {axes!r} name {len(letters)} axes, but the mask has shape {tuple(tensor.shape)}; "
                "name each of its axes"
            )
    return TensorMask(tensor, letters)


def blocked(tensor: Shaped[Tensor, "..."], *, axes: str = "") -> Mask:
    """True where a query may *not* look: the polarity of `nn.MultiheadAttention` and of many papers.

    >>> import torch
    >>> print(blocked(torch.tensor([[False, True]]), axes="q k").text(1, 2))
    ■ ·
    """
    must_be_boolean(tensor, "blocked")
    return Not(allowed(tensor, axes=axes))


def rule(function: Rule) -> Mask:
    """A function of (b, h, q, k), given as index tensors that broadcast, that says what is seen.

    The same function serves FlexAttention as a mask_mod. q counts queries and k counts keys from 0.

    >>> print(rule(lambda b, h, q, k: (q + k) % 2 == 0).text(3))
    ■ · ■
    · ■ ·
    ■ · ■
    """
    if not callable(function):
        raise DtypeError(f"rule takes a function of (b, h, q, k), not {type(function).__name__}")
    return RuleMask(function)


def as_mask(mask: object, sizes: Sizes) -> Mask:
    """Whatever was given as `mask=`, as a mask that fits."""
    if isinstance(mask, Mask):
        found = mask
    elif isinstance(mask, Tensor):
        must_be_boolean(mask, "mask=")
        found = TensorMask(mask, ())
    elif callable(mask):
        found = RuleMask(mask)
    else:
        raise DtypeError(
            f"mask= got {type(mask).__name__}; give a mask such as regard.causal(), a boolean tensor of full rank, "
            "or a function of (b, h, q, k)"
        )
    found.check(sizes)
    return found
