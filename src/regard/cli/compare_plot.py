"""Time and memory of every way to attend against the length of the text."""

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from regard.views.static.write import write

if TYPE_CHECKING:
    from regard.cli.compare import Measured

MB = 1 << 20


def plotted(found: "list[Measured]", path: Path) -> None:
    """Two panels, both axes by powers of two: a line of slope 1 grows with n, one of slope 2 with n²."""
    figure = Figure(figsize=(9.5, 4.2), dpi=150, layout="constrained")
    time, memory = figure.subplots(1, 2)
    for way in dict.fromkeys(one.way for one in found):
        rows = [one for one in found if one.way == way]
        style = {"marker": "o", "markersize": 4, "linewidth": 2.5 if way == "dense" else 1.3, "label": way}
        time.plot([one.length for one in rows], [one.seconds * 1e3 for one in rows], **style)
        held = [(one.length, one.bytes / MB) for one in rows if one.bytes]
        memory.plot([n for n, _ in held], [mb for _, mb in held], **style)
    lengths = sorted({one.length for one in found})
    for axes, what in ((time, "milliseconds of processor time"), (memory, "MB held beyond q, k, v and the mix")):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(lengths, [f"{n:,}" for n in lengths])
        axes.minorticks_off()
        axes.set(xlabel="length", title=what)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    memory.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    write(figure, path)
