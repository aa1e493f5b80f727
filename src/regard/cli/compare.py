"""Time, memory and error of every way to attend, on this machine, as ratios to dense attention of the same run."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.attention.attend import attend
from regard.attention.mask import Mask, bigbird, causal, longformer, window
from regard.attention.matrix_free.linformer import Linformer
from regard.attention.matrix_free.mechanism import Mechanism
from regard.attention.matrix_free.performer import Performer
from regard.cli.outputs import check_target, writing
from regard.errors import ConfigError
from regard.trace.change.cost import Spent, spent
from regard.trace.measure.bar import bar
from regard.trace.measure.table import Record, Table, shown

MOST = 1 << 30  # bytes of the two matrices that attention written out makes, beyond which it is left out
LONGEST = 8192  # beyond which errors are not measured: exact attention in float64 would take minutes
MB = 1 << 20
ROOM = 1 << 36  # bytes that are taken for granted where the system does not say how many there are
FIGURES = (".svg", ".png", ".pdf")
BLOCKS = 8  # that a block of BigBird sees: itself, one on either side, the first, the last and three at random


@dataclass(frozen=True)
class Measured:
    """One way to attend at one length. Ratios are to dense attention: `faster` is its time / this time."""

    length: int
    way: str
    path: str
    seconds: float
    faster: float
    bytes: int | None
    sees: float  # the share of the cells that a query may look at
    error: float | None  # of the mix, relative, against exact attention under the same mask; None: not measured
    astray: float | None  # the share of the weight that stands at other keys than in exact attention


def compared(lengths: list[int], *, heads: int, width: int, keys: int, as_json: bool, to: Path | None) -> str:
    """The table as text, or JSON; the plot goes to a file, if one is named."""
    if keys < BLOCKS:
        raise ConfigError(f"keys is {keys}, but BigBird sees {BLOCKS} blocks; give {BLOCKS} or more")
    check_target(to, FIGURES)
    lengths = sorted(set(lengths))
    check_memory(lengths[-1], heads, width)
    found: list[Measured] = []
    with bar("measuring", len(lengths) * (2 + len(ways(1, heads, width, keys)))) as advance:
        for length in lengths:
            for one in measured(length, heads=heads, width=width, keys=keys):
                if one is not None:
                    found.append(one)
                advance(1)
    if to is not None:
        from regard.cli.compare_plot import plotted

        with writing(to):
            plotted(found, to)
    sizes = {"heads": heads, "width": width, "keys": keys, "threads": torch.get_num_threads()}
    if as_json:
        return json.dumps(sizes | {"ways": [asdict(one) for one in found]})
    return told(found, sizes) + ("" if to is None else f"\n\nTime and memory against length: {to}")


def check_memory(length: int, heads: int, width: int) -> None:
    """Refuse a length whose q, k, v and mix this machine cannot hold, before it asks for them."""
    needed = 4 * 4 * heads * length * width
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else ROOM
    if needed > there:
        raise ConfigError(
            f"a length of {length:,} needs {needed / 1e9:,.0f} GB for q, k, v and the mix, but this machine has "
            f"{there / 1e9:,.0f} GB; give a smaller --length"
        )


def ways(length: int, heads: int, width: int, keys: int) -> dict[str, Mask | Mechanism]:
    """Every mechanism, each with about as many keys, features or mixtures."""
    half = keys // 2
    return {
        "causal": causal(),
        "window": window(half, half),
        "longformer": longformer(half, global_at=[0]),
        "bigbird": bigbird(max(1, keys // BLOCKS)),
        "performer": Performer(width, keys),
        "linformer": Linformer(length, keys),
    }


def measured(length: int, *, heads: int, width: int, keys: int) -> Iterator[Measured | None]:
    """Dense attention first, then each way on the same random tensors; None where one would take too much memory."""
    generator = torch.Generator().manual_seed(length)
    q, k, v = (torch.randn(1, heads, length, width, generator=generator) for _ in range(3))
    with torch.no_grad():
        dense = spent(lambda: F.scaled_dot_product_attention(q, k, v))
        yield row(length, "dense", "fused", dense, dense)
        if 2 * heads * length * length * 4 <= MOST:
            whole = spent(lambda: (q @ k.mT / width**0.5).softmax(-1) @ v)
            yield row(length, "written out", "", whole, dense)
        else:
            yield None
        for name, attention in ways(length, heads, width, keys).items():
            mask, by = (attention, None) if isinstance(attention, Mask) else (None, attention)

            def run(mask: Mask | None = mask, by: Mechanism | None = by) -> Tensor:
                return attend(q, k, v, mask=mask, by=by).mix

            cost, path = spent(run), attend(q, k, v, mask=mask, by=by).path
            sees = 1.0 if mask is None else share(mask, length)
            error, astray = (0.0, 0.0) if by is None else off(by, q[:, :1], k[:, :1], v[:, :1])
            yield row(length, name, path, cost, dense, sees, error, astray)


def off(by: Mechanism, q: Tensor, k: Tensor, v: Tensor) -> tuple[float | None, float | None]:
    """How far a mechanism is from exact attention: its mix, and its weights."""
    if q.shape[-2] > LONGEST:
        return None, None
    found = attend(q, k, v, by=by).error()
    return found.mix, found.weights.mean


def row(
    length: int,
    way: str,
    path: str,
    cost: Spent,
    dense: Spent,
    sees: float = 1.0,
    error: float | None = 0.0,
    astray: float | None = 0.0,
) -> Measured:
    faster = dense.seconds / cost.seconds if cost.seconds else 1.0
    return Measured(length, way, path, cost.seconds, faster, cost.bytes, sees, error, astray)


class Round(Table):
    """A table whose numbers may be large or small: three digits, and no powers of ten."""

    def cells(self) -> list[list[str]]:
        values = [[line.get(name) for name in self.columns] for line in self.rows]
        return [[rounded(value) if isinstance(value, float) else shown(value) for value in line] for line in values]


def rounded(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def share(mask: Mask, length: int, rows: int = 256) -> float:
    """How much of the map may be looked at, counted in blocks of rows."""
    from regard.attention.mask import Sizes
    from regard.attention.mask.lead import tile, whole

    sizes, seen = Sizes((1, 1), length, length), 0
    lead = whole(sizes, "cpu")
    for first in range(0, length, rows):
        part = tile(mask, sizes, lead, slice(first, first + rows))
        seen += int(part.expand(1, 1, min(rows, length - first), length).sum())
    return seen / length**2


def told(found: list[Measured], sizes: dict[str, int]) -> str:
    """The table, and what its numbers are."""
    rows: list[Record] = [
        {
            "length": one.length,
            "way": one.way,
            "path": one.path or None,
            "ms": one.seconds * 1e3,
            "× as fast": one.faster,
            "MB": None if one.bytes is None else one.bytes / MB,
            "sees": f"{one.sees:.1%}",
            "error": one.error,
            "astray": one.astray,
        }
        for one in found
    ]
    title = (
        f"{sizes['heads']} heads of {sizes['width']}, about {sizes['keys']} keys, features or mixtures for each query; "
        f"{sizes['threads']} {'thread' if sizes['threads'] == 1 else 'threads'}, forward"
    )
    notes = [
        "× as fast: processor time of dense attention (torch's fused kernel) / of this way, the least of 3.",
        "MB: the most that is held at once beyond q, k, v and the mix. sees: the share of the cells; masks are exact.",
        "error, astray: of the mix, and of the weights, of one head against exact attention, on random q, k and v,",
        "whose mixes nearly cancel; Linformer's mixtures are not trained.",
        "On a model of your own: regard.swap(model, attention=regard.window(256, 0))(**inputs)",
    ]
    return repr(Round(rows, title, notes))
