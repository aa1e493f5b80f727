"""Time and memory of every kind of attention against sequence length."""

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from regard.views.static.write import write

if TYPE_CHECKING:
    from regard.cli.compare import Measurement

MB = 1 << 20


def plot_measurements(measurements: "list[Measurement]", path: Path) -> None:
    """Two panels, both axes by powers of two: a line of slope 1 grows with n, one of slope 2 with n²."""
    figure = Figure(figsize=(9.5, 4.2), dpi=150, layout="constrained")
    time, memory = figure.subplots(1, 2)
    for kind in dict.fromkeys(one.attention for one in measurements):
        rows = [one for one in measurements if one.attention == kind]
        style = {"marker": "o", "markersize": 4, "linewidth": 2.5 if kind == "dense" else 1.3, "label": kind}
        time.plot([one.length for one in rows], [one.seconds * 1e3 for one in rows], **style)
        held = [(one.length, one.bytes / MB) for one in rows if one.bytes]
        memory.plot([n for n, _ in held], [mb for _, mb in held], **style)
    lengths = sorted({one.length for one in measurements})
    for axes, what in ((time, "CPU time (ms)"), (memory, "Peak memory beyond q, k, v and the mix (MB)")):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(lengths, [f"{n:,}" for n in lengths])
        axes.minorticks_off()
        axes.set(xlabel="Sequence length", title=what)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    memory.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    write(figure, path)
