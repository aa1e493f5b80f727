"""The oracle of the survey: what torch itself ran, seen by a dispatch mode that knows nothing of the doors.

Below autograd every softmax is `_softmax` and every product `bmm` or `mm`. Where a softmax, or what views and
elementwise operations made of it, is the operand of a product over its own axis, that operand is what met the values.
Torch's fused kernel hands over q and k; its weights are computed from them in float64.
"""

import math
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.trace.survey.inputs import BATCH, SOURCE

FUSED = {"_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_fused_attention_overrideable"}
SOFTMAX = {"_softmax", "_safe_softmax"}
# What a softmax may go through on its way to the values and still be those weights.
CARRIES = {
    "view", "_unsafe_view", "reshape", "_reshape_alias", "transpose", "permute", "t", "expand", "clone", "_to_copy",
    "slice", "select", "split", "split_with_sizes", "unbind", "squeeze", "unsqueeze", "mul", "mul_", "div", "div_",
    "masked_fill", "masked_fill_", "where", "copy_", "native_dropout", "nan_to_num", "nan_to_num_", "alias",
    "detach", "cat", "constant_pad_nd", "as_strided", "add", "sub", "contiguous", "add_", "sub_", "stack",
    "index_select", "unfold", "roll", "index", "tril", "triu", "relu", "pow", "convolution", "native_layer_norm",
}  # fmt: skip
# What makes a picture, or cuts it into patches.
PICTURED = {"convolution", "view", "_unsafe_view", "permute", "avg_pool2d", "max_pool2d_with_indices", "im2col"}
SAME = {
    "mul",
    "add",
    "sub",
    "div",
    "where",
    "convolution",
    "native_layer_norm",
}  # these carry only what keeps its shape; heads that talk


@dataclass(eq=False)
class AttentionRecord:
    """One attention that torch ran: its weights, (n, q, k), as they met the values."""

    path: str
    weights: Tensor
    dead: Tensor  # n q: rows that may look nowhere
    how: str
    shape: tuple[int, ...] = ()  # of the softmax, or of q @ k

    def readings(self) -> list[Tensor]:
        """The weights, and where heads and queries share an axis, because heads share their keys, these apart."""
        weights, shape = self.weights, self.shape
        if len(shape) != 4 or weights.numel() != torch.Size(shape).numel() or weights.shape[-1] != shape[-1]:
            return [weights]
        b, h, q, k = shape
        apart = weights.reshape(b, h, q, k), weights.reshape(b, q, h, k).transpose(1, 2)
        return [weights, *(one.flatten(0, 1) for one in apart)] if weights.shape[-2] == h * q != q else [weights]


@dataclass(eq=False)
class Carried:
    """A tensor that holds a softmax: its size along the axis that adds up to one."""

    x: Tensor
    size: int
    shape: tuple[int, ...]
    met: list[bool]  # shared by all that came of one softmax
    features: bool = False  # its other axis may be that of features, as of the keys of linear attention
    sigmoid: bool = False  # which is mostly a gate, and then meets parameters


@dataclass(eq=False)
class Recorder(TorchDispatchMode):
    """Records each attention of what runs inside, and the module in which its product stands."""

    model: nn.Module
    records: list[AttentionRecord] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)  # what the model gave while this listened
    embedded: list[Tensor] = field(default_factory=list)  # ids that were looked up
    fields: set[tuple[int, int]] = field(default_factory=set)  # heights and widths of what may be a picture

    def __post_init__(self) -> None:
        TorchDispatchMode.__init__(self)
        self.carried: dict[int, Carried] = {}
        self.stack: list[str] = []
        self.hooks: list[Any] = []
        self.paths = {module: path for path, module in self.model.named_modules(remove_duplicate=True)}
        self.owned = {x.untyped_storage().data_ptr() for x in (*self.model.parameters(), *self.model.buffers())}

    def __enter__(self) -> "Recorder":
        self.fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        for module, path in self.paths.items():
            self.hooks.append(module.register_forward_pre_hook(lambda *_, path=path: self.stack.append(path)))
            self.hooks.append(module.register_forward_hook(lambda *_: self.leave(), always_call=True))
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        torch.backends.mha.set_fastpath_enabled(self.fast)
        for hook in self.hooks:
            hook.remove()
        self.carried.clear()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        if name in FUSED:
            self.fused(args, kwargs)
        elif name in SOFTMAX:
            axis = args[1] % out.ndim if out.ndim else 0
            if out.ndim > 1 and not mixes_streams(out):
                self.carried[id(out)] = Carried(
                    out, out.shape[axis], tuple(out.shape), [False], axis == out.ndim - 2 > 0 and out.shape[-1] > 1
                )
        elif name == "sigmoid" and out.ndim > 2 and out.shape[-1] > 1:
            self.carried[id(out)] = Carried(out, out.shape[-1], tuple(out.shape), [False], sigmoid=True)
        elif name == "embedding":
            self.embedded.append(args[1].detach().clone())
        elif name in ("bmm", "mm"):
            self.product(args[0], args[1], out, name == "bmm")
        elif name in ("baddbmm", "addmm"):
            self.product(args[1], args[2], out, name == "baddbmm")
        if name in PICTURED and isinstance(out, Tensor) and out.ndim > 3:
            shape = out.shape[1:]
            near = pairwise(shape) if out.ndim == 4 else combinations(shape, 2)
            self.fields.update((int(a), int(b)) for a, b in near)
        if name == "im2col":
            side = math.isqrt(out.shape[-1])  # of a square
            self.fields.add((side, side))
        if name in CARRIES:
            self.carry(name, args, kwargs, out)
        return out

    def leave(self) -> None:
        self.stack.pop()

    def here(self) -> str:
        return self.stack[-1] if self.stack else ""

    def fused(self, args: Any, kwargs: Any) -> None:
        q, k = args[:2]
        causal = args[4] if len(args) > 4 else kwargs.get("is_causal", False)
        mask, scale = kwargs.get("attn_mask"), kwargs.get("scale")
        wide = k.double().repeat_interleave(q.shape[1] // k.shape[1], 1)
        scores = q.double() @ wide.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
        if causal:
            scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask.double()
        dead = scores.amax(-1) < -1e30
        weights = scores.softmax(-1).nan_to_num(0.0)
        self.records.append(
            AttentionRecord(self.here(), weights.flatten(0, -3), dead.flatten(0, -2), "fused", tuple(scores.shape))
        )

    def product(self, left: Tensor, right: Tensor, out: Tensor, batched: bool) -> None:
        for operand, turned in ((left, False), (right, True)):
            known = self.carried.get(id(operand))
            if known is None or operand is not known.x:
                shape = tuple(operand.shape)
                fixed = right.untyped_storage().data_ptr() in self.owned
                if batched and not turned and not fixed and not mixes_streams(operand) and is_normalised(operand):
                    self.records.append(
                        AttentionRecord(self.here(), operand.clone(), dead_rows(operand), "rows of one", shape)
                    )
                    return
                continue
            if known.sigmoid and not (batched and tuple(operand.shape[-2:]) == known.shape[-2:]):
                continue
            weights = operand.mT if turned else operand
            if weights.shape[-1] != known.size:  # it is mixed over another axis, such as the heads
                same = operand is left and out.shape[:-1] == left.shape[:-1]
                if same or (out.numel() >= operand.numel() // 8 and known.size in out.shape):
                    self.carried[id(out)] = Carried(
                        out, known.size, known.shape, known.met, known.features, known.sigmoid
                    )
                continue
            if known.features and weights.shape[-2] == known.shape[-1]:
                return  # keys with a softmax over positions: each row is a feature
            if right.untyped_storage().data_ptr() in self.owned:
                return  # the values are parameters, so the keys are no positions
            weights = weights.detach().clone()
            weights = weights[None] if weights.ndim == 2 else weights
            dead = torch.zeros(weights.shape[:-1], dtype=torch.bool)
            known.met[0] = True
            if known.size == 1 and not batched:
                return
            if turned and known.shape[-1] == 1 < known.size:
                return  # one row for each place: a dynamic convolution, which is not counted
            self.records.append(AttentionRecord(self.here(), weights, dead, "product", known.shape))
            return

    def carry(self, name: str, args: Any, kwargs: Any, out: Any) -> None:
        """What was made of a softmax holds it too."""
        given = [x for x in flat(args) if id(x) in self.carried and self.carried[id(x)].x is x]
        if not given:
            return
        known = self.carried[id(given[0])]
        for x in flat([out]):
            if name in SAME and x.shape != given[0].shape:
                continue
            size = known.size
            if (
                name in ("slice", "constant_pad_nd", "cat", "split", "split_with_sizes", "unfold")
                and x.ndim == given[0].ndim
            ):
                changed = [(a, b) for a, b in zip(given[0].shape, x.shape) if a != b]
                size = next((b for a, b in changed if a == size), size)
            self.carried[id(x)] = Carried(x, size, known.shape, known.met, known.features, known.sigmoid)


def mixes_streams(weights: Tensor) -> bool:
    """Whether this is a small square matrix for each position of the texts that were given: streams are mixed by it."""
    places = tuple(weights.shape[:-2]) in ((BATCH, SOURCE), (BATCH * SOURCE,))
    return places and weights.shape[-2] == weights.shape[-1] < SOURCE


def is_normalised(x: Tensor) -> bool:
    """Whether the rows add up to one, whoever made them, and are no even means and no choices of one."""
    if x.shape[-1] < 2 or not x.is_floating_point() or bool((x < 0).any()):
        return False
    uneven = (x > 0) & (x < x.amax(-1, keepdim=True) * 0.99)
    return bool(((x.sum(-1) - 1).abs() < 1e-4).all()) and bool(uneven.any())


def dead_rows(x: Tensor) -> Tensor:
    return torch.zeros(x.shape[:-1], dtype=torch.bool)


def flat(values: Any) -> list[Tensor]:
    """All tensors in arguments."""
    found: list[Tensor] = []
    for one in values:
        if isinstance(one, Tensor):
            found.append(one)
        elif isinstance(one, list | tuple):
            found += flat(one)
    return found
