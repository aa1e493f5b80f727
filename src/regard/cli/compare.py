"""Time, memory and error of every kind of attention on this machine, relative to dense attention in the same run."""

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
from regard.cli.harmless import format_json
from regard.cli.outputs import check_target, explain_write_errors
from regard.errors import ConfigError
from regard.trace.change.cost import MeasuredCost, measure_cost
from regard.trace.measure.bar import bar
from regard.trace.measure.table import Record, Table, format_cell

MOST = 1 << 30  # bytes of the two matrices that attention written out makes, beyond which it is left out
LONGEST = 8192  # beyond which errors are not measured: exact attention in float64 would take minutes
MB = 1 << 20
ROOM = 1 << 36  # bytes that are taken for granted where the system does not say how many there are
FIGURES = (".svg", ".png", ".pdf")
BLOCKS = 8  # that a block of BigBird sees: itself, one on either side, the first, the last and three at random


@dataclass(frozen=True)
class Measurement:
    """One kind of attention at one length; `speedup` is dense attention's time / this time."""

    length: int
    attention: str
    path: str
    seconds: float
    speedup: float
    bytes: int | None
    visible: float  # the share of the map that queries may look at
    mix_error: float | None  # relative, against exact attention under the same mask; None: not measured
    weight_error: float | None  # the share of the weight that stands at other keys than in exact attention


def compare_lengths(lengths: list[int], *, heads: int, width: int, keys: int, as_json: bool, to: Path | None) -> str:
    """The table as text, or JSON; the plot goes to a file, if one is named."""
    if keys < BLOCKS:
        raise ConfigError(f"keys is {keys}, but BigBird needs {BLOCKS} blocks; give {BLOCKS} or more")
    check_target(to, FIGURES)
    lengths = sorted(set(lengths))
    check_memory(lengths[-1], heads, width)
    measurements: list[Measurement] = []
    with bar("measuring", len(lengths) * (2 + len(mechanisms(1, heads, width, keys)))) as advance:
        for length in lengths:
            for one in measure_length(length, heads=heads, width=width, keys=keys):
                if one is not None:
                    measurements.append(one)
                advance(1)
    if to is not None:
        from regard.cli.compare_plot import plot_measurements

        with explain_write_errors(to):
            plot_measurements(measurements, to)
    sizes = {"heads": heads, "width": width, "keys": keys, "threads": torch.get_num_threads()}
    if as_json:
        return format_json(sizes | {"results": [asdict(one) for one in measurements]})
    return comparison_text(measurements, sizes) + ("" if to is None else f"\n\nTime and memory against length: {to}")


def check_memory(length: int, heads: int, width: int) -> None:
    """Refuse a length whose q, k, v and mix this machine cannot hold, before it asks for them."""
    needed = 4 * 4 * heads * length * width
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else ROOM
    if needed > there:
        raise ConfigError(
            f"a length of {length:,} needs {needed / 1e9:,.0f} GB for q, k, v and the mix, but this machine has "
            f"{there / 1e9:,.0f} GB; give a smaller --length"
        )


def mechanisms(length: int, heads: int, width: int, keys: int) -> dict[str, Mask | Mechanism]:
    """Every mask and approximation, each with about as many keys, features or mixtures per query."""
    half = keys // 2
    return {
        "causal": causal(),
        "window": window(half, half),
        "longformer": longformer(half, global_at=[0]),
        "bigbird": bigbird(max(1, keys // BLOCKS)),
        "performer": Performer(width, keys),
        "linformer": Linformer(length, keys),
    }


def measure_length(length: int, *, heads: int, width: int, keys: int) -> Iterator[Measurement | None]:
    """Dense attention first, then each other kind on the same random tensors; None where one needs too much memory."""
    generator = torch.Generator().manual_seed(length)
    q, k, v = (torch.randn(1, heads, length, width, generator=generator) for _ in range(3))
    with torch.no_grad():
        dense = measure_cost(lambda: F.scaled_dot_product_attention(q, k, v))
        yield make_measurement(length, "dense", "fused", dense, dense)
        if 2 * heads * length * length * 4 <= MOST:
            whole = measure_cost(lambda: (q @ k.mT / width**0.5).softmax(-1) @ v)
            yield make_measurement(length, "unfused", "", whole, dense)
        else:
            yield None
        for name, attention in mechanisms(length, heads, width, keys).items():
            mask, by = (attention, None) if isinstance(attention, Mask) else (None, attention)

            def run(mask: Mask | None = mask, by: Mechanism | None = by) -> Tensor:
                return attend(q, k, v, mask=mask, by=by).mix

            cost, path = measure_cost(run), attend(q, k, v, mask=mask, by=by).path
            visible = 1.0 if mask is None else visible_share(mask, length)
            errors = (0.0, 0.0) if by is None else measure_error(by, q[:, :1], k[:, :1], v[:, :1])
            yield make_measurement(length, name, path, cost, dense, visible, *errors)


def measure_error(by: Mechanism, q: Tensor, k: Tensor, v: Tensor) -> tuple[float | None, float | None]:
    """How far a mechanism is from exact attention: its mix, and its weights."""
    if q.shape[-2] > LONGEST:
        return None, None
    error = attend(q, k, v, by=by).error()
    return error.mix, error.weights.mean


def make_measurement(
    length: int,
    attention: str,
    path: str,
    cost: MeasuredCost,
    dense: MeasuredCost,
    visible: float = 1.0,
    mix_error: float | None = 0.0,
    weight_error: float | None = 0.0,
) -> Measurement:
    speedup = dense.seconds / cost.seconds if cost.seconds else 1.0
    return Measurement(length, attention, path, cost.seconds, speedup, cost.bytes, visible, mix_error, weight_error)


class RoundedTable(Table):
    """A table whose numbers may be large or small: three digits, and no powers of ten."""

    def cells(self) -> list[list[str]]:
        values = [[line.get(name) for name in self.columns] for line in self.rows]
        return [
            [format_rounded(value) if isinstance(value, float) else format_cell(value) for value in line]
            for line in values
        ]


def format_rounded(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def visible_share(mask: Mask, length: int, rows: int = 256) -> float:
    """How much of the map may be looked at, counted in blocks of rows."""
    from regard.attention.mask import Sizes
    from regard.attention.mask.lead import tile, whole

    sizes, seen = Sizes((1, 1), length, length), 0
    lead = whole(sizes, "cpu")
    for first in range(0, length, rows):
        part = tile(mask, sizes, lead, slice(first, first + rows))
        seen += int(part.expand(1, 1, min(rows, length - first), length).sum())
    return seen / length**2


def comparison_text(measurements: list[Measurement], sizes: dict[str, int]) -> str:
    """The table, and what its numbers are."""
    rows: list[Record] = [
        {
            "length": one.length,
            "attention": one.attention,
            "path": one.path or None,
            "ms": one.seconds * 1e3,
            "speedup": one.speedup,
            "MB": None if one.bytes is None else one.bytes / MB,
            "visible": f"{one.visible:.1%}",
            "mix error": one.mix_error,
            "weight error": one.weight_error,
        }
        for one in measurements
    ]
    title = (
        f"{sizes['heads']} heads of {sizes['width']}, about {sizes['keys']} keys, features or mixtures per query; "
        f"{sizes['threads']} {'thread' if sizes['threads'] == 1 else 'threads'}, forward pass"
    )
    notes = [
        "speedup: CPU time of dense attention (PyTorch's fused kernel) / CPU time of this kind, best of 3.",
        "MB: peak memory beyond q, k, v and the mix. visible: share of the map that queries may look at.",
        "mix error, weight error: relative to exact attention for one head on random q, k and v, where values nearly",
        "cancel out; masks are exact, and Linformer's projections are not trained.",
        "On your own model: regard.swap(model, attention=regard.window(256, 0))(**inputs)",
    ]
    return repr(RoundedTable(rows, title, notes))
