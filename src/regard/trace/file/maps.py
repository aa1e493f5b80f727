"""Maps over a file: what is asked of them reads what it needs, one head or a few rows, and no more."""

from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.attention.axes.heads import choose_key_heads
from regard.attention.axes.select import Index, Where, take
from regard.attention.map import Computed
from regard.attention.map.computed import UNVERSIONED, Weigh
from regard.attention.map.source import widen_dtype
from regard.attention.map.stored import Stored
from regard.attention.mask import Mask, Sizes
from regard.attention.mask.base import Cells
from regard.attention.mask.bits import Bits
from regard.attention.mask.lead import LeadingIndex
from regard.attention.score.bias import Bias
from regard.attention.weigh.softmax import softmax
from regard.trace.file.array import FileArray, pick_of, read_when_asked, rows_of
from regard.trace.record.diagonals import Diagonals

Numbers = FileArray | Tensor


class FileComputed(Computed):
    """A map that is computed from q and k in a file."""

    __slots__ = ("files",)
    files: dict[str, Any]  # what the four below are read from
    q, k, bias, sink = (read_when_asked(name) for name in ("q", "k", "bias", "sink"))

    def __init__(
        self,
        q: Numbers,
        k: Numbers,
        sizes: Sizes,
        *,
        scale: float = 1.0,
        mask: Mask | None = None,
        bias: Numbers | Bias | None = None,
        softcap: float | None = None,
        sink: Numbers | None = None,
        weigh: Weigh = softmax,
        lead: LeadingIndex | None = None,
    ) -> None:
        parts = {"q": q, "k": k, "bias": bias, "sink": sink, "score": None, "scale": scale, "softcap": softcap}
        self.__setstate__(parts | {"sizes": sizes, "mask": mask, "weigh": weigh, "lead": lead})

    @property
    def device(self) -> torch.device:
        return torch.device(self.files["q"].device)

    @property
    def dtype(self) -> torch.dtype:
        return widen_dtype(self.files["q"].dtype)

    @property
    def precision(self) -> torch.dtype:
        dtype: torch.dtype = self.files["q"].dtype
        return dtype

    def check_fresh(self) -> None:
        """What a file holds does not change unseen."""

    def may_need_gradient(self) -> bool:
        return False

    def pick(self, chosen: tuple[Index, ...]) -> "FileComputed":
        lead = self.leading_index()
        size = len(lead.shape)
        chosen = chosen + (slice(None),) * (size - len(chosen))
        q, k, bias, sink = (self.files[name] for name in ("q", "k", "bias", "sink"))
        return FileComputed(
            pick_of(q, chosen),
            pick_of(k, choose_key_heads(chosen, lead.shape, k.shape[size - 1])) if size else k,
            self.sizes,
            scale=self.scale,
            mask=self.mask,
            bias=pick_of(bias, chosen) if isinstance(bias, FileArray | Tensor) else bias,
            softcap=self.softcap,
            sink=None if sink is None else pick_of(sink, chosen),
            weigh=self.weigh,
            lead=lead.pick(chosen),
        )

    def queries(self, rows: Where) -> Tensor:
        return rows_of(self.files["q"], rows)

    def keys(self, columns: Where) -> Tensor:
        return rows_of(self.files["k"], columns)

    def has_groups(self) -> bool:
        q, k = self.files["q"], self.files["k"]
        return bool(q.ndim > 2 and k.ndim > 2 and q.shape[-3] != k.shape[-3])

    def bias_at(self, rows: Where, columns: Where) -> Tensor:
        bias = self.files["bias"]
        if not isinstance(bias, FileArray) or bias.shape[-2] == 1:
            return super().bias_at(rows, columns)
        some = bias.rows(rows)
        return (some if some.shape[-1] == 1 else take(some, -1, columns)).to(self.dtype)

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in Computed.__slots__ if name != "versions"}

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.versions = UNVERSIONED


class FileStored(Stored):
    """Weights that are stored in a file."""

    files: dict[str, Any]
    kept = read_when_asked("kept")

    def __init__(self, kept: Numbers, mask: Mask | None = None, lead: LeadingIndex | None = None) -> None:
        self.hold(kept, mask, lead)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.files["kept"].shape)

    @property
    def device(self) -> torch.device:
        return torch.device(self.files["kept"].device)

    @property
    def precision(self) -> torch.dtype:  # type: ignore[override]
        dtype: torch.dtype = self.files["kept"].dtype
        return dtype

    def pick(self, chosen: tuple[Index, ...]) -> "FileStored":
        return FileStored(pick_of(self.files["kept"], chosen), self.mask, self.lead.pick(chosen))

    def weights(self, rows: Where = slice(None), columns: slice = slice(None)) -> Tensor:
        return take(rows_of(self.files["kept"], rows), -1, columns).to(self.dtype)


class FileBits(Bits):
    """One bit per cell, in a file."""

    files: dict[str, Any]
    bits = read_when_asked("bits")

    def __init__(self, bits: FileArray) -> None:
        self.bits = bits

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        bits = self.files["bits"]
        rows = bits.shape[2]
        alone = bits.shape[0] * bits.shape[1] == 1 and rows > 1 and at.q.numel()
        if not isinstance(bits, FileArray) or not alone:
            return super().cell(at, sizes)
        first, last = int(at.q.min()), int(at.q.max())
        some = Bits(bits.rows(slice(first, last + 1)))  # only the rows that are asked for
        if first == last:
            return some.cell(at, sizes)
        return some.cell(at._replace(q=at.q - first), sizes)

    def describe(self) -> str:
        return f"one bit per cell says what is seen, {tuple(self.files['bits'].shape)} bytes of them"

    def __repr__(self) -> str:
        return f"bits(of shape {tuple(self.files['bits'].shape)})"

    def check(self, sizes: Sizes) -> None:
        """The reader has compared the shapes."""


class FileDiagonals(Diagonals):
    """One number per diagonal, in a file."""

    files: dict[str, Any]
    values = read_when_asked("values")

    def __init__(self, values: FileArray, *, keys: int, heads: int) -> None:
        self.values, self.keys, self.heads = values, keys, heads

    def block(self, queries: Int[Tensor, " r"], keys: Int[Tensor, " c"], of: Int[Tensor, " g"] | None = None) -> Tensor:
        return Diagonals(self.values, keys=self.keys, heads=self.heads).block(queries, keys, of)

    def __repr__(self) -> str:
        return f"Diagonals(h {self.heads}, {self.files['values'].shape[1]} distances)"
