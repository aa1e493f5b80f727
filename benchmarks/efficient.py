"""What does attention over some of the keys, or without its matrix, cost? Beside dense SDPA and beside other packages.

    python benchmarks/efficient.py            all of it (some minutes)
    python benchmarks/efficient.py peers      one part: dense, slope, memory, peers, plot

Times are CPU seconds of one thread, ours and theirs in turns. Memory is the peak of a fresh process beyond its
inputs and outputs.
"""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from tools import peers
from tools.measure import OUT, Row, report

import regard

HEADS, WIDTH, REACH, FEATURES, RANK = 4, 64, 256, 256, 256
LENGTHS = [512 * 2**i for i in range(7)]
Call = Callable[[], object]


def with_mask(mask: regard.Mask) -> Call:
    return lambda q, k, v: regard.attend(q, k, v, mask=mask).mix


def with_by(make: Callable[[int], object]) -> Call:
    known = {}  # made once for each length, outside of what is timed

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        n = k.shape[-2]
        if n not in known:
            known[n] = make(n)
        return regard.attend(q, k, v, by=known[n]).mix

    return call


def mechanisms() -> dict[str, Call]:
    """All that can be measured; a line for each that cannot."""
    found: dict[str, Call] = {
        "dense SDPA": F.scaled_dot_product_attention,
        f"window({REACH}, {REACH})": with_mask(regard.window(REACH, REACH)),
        "window, 4 sinks": with_mask(regard.window(REACH, REACH, keep_first=4)),
        f"longformer({REACH})": with_mask(regard.longformer(REACH, global_at=[0, 100])),
        "bigbird(64)": with_mask(regard.bigbird(64)),
    }
    try:
        from regard.attention.matrix_free import Linformer, Performer
    except ImportError as error:
        print(f"Performer and Linformer: left out, because {error}")
        return found
    found[f"Performer, {FEATURES}"] = with_by(lambda n: Performer(WIDTH, FEATURES))
    found[f"Linformer, {RANK}"] = with_by(lambda n: Linformer(n, RANK))
    return found


def seconds(call: Call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def turns(ours: Call, theirs: Call, rounds: int = 5) -> float:
    """How many times longer theirs takes: the best of each."""
    ours(), theirs()
    found = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
    return min(b for _, b in found) / min(a for a, _ in found)


def drawn(n: int, heads: int = HEADS, gradients: bool = False) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(n)
    return [torch.randn(1, heads, n, WIDTH, generator=generator).requires_grad_(gradients) for _ in range(3)]


def both_ways(call: Call, tensors: list[torch.Tensor]) -> Call:
    def run() -> object:
        mix = call(*tensors)
        return torch.autograd.grad(mix, tensors, torch.ones_like(mix))

    return run


def beside_dense() -> list[Row]:
    """n = 8192: how many times faster than the dense kernel."""
    rows, found = [], mechanisms()
    dense = found.pop("dense SDPA")
    promised = {"window(256, 256)": (7.0, 5.0), "Performer, 256": (5.0, None), "Linformer, 256": (5.0, None)}
    for name, call in found.items():
        forward, both = promised.get(name, (None, None))
        q, k, v = drawn(8192)
        with torch.no_grad():
            figure = turns(lambda: call(q, k, v), lambda: dense(q, k, v), 4)  # noqa: B023
        rows.append(Row(f"n = 8192, {name}, forward: dense SDPA / ours", figure, forward, least=True))
        tensors = drawn(8192, gradients=True)
        figure = turns(both_ways(call, tensors), both_ways(dense, tensors), 2)
        rows.append(Row(f"n = 8192, {name}, forward and backward", figure, both, least=True))
    return rows


@torch.no_grad()
def slopes() -> list[Row]:
    """log time against log n, from 2k to 32k: 1 is linear, 2 quadratic."""
    rows, lengths = [], LENGTHS[2:]
    for name, call in mechanisms().items():
        if name == "dense SDPA":
            continue
        given = [drawn(n, 2) for n in lengths]
        for tensors in given:
            call(*tensors)
        found = [[seconds(lambda: call(*tensors)) for tensors in given] for _ in range(5)]  # noqa: B023
        best = [math.log(min(column)) for column in zip(*found)]
        rows.append(Row(f"slope of time in n, 2k to 32k, {name}", slope(lengths, best), 1.1, ""))
    return rows


def slope(lengths: list[int], logs: list[float]) -> float:
    x = [math.log(n) for n in lengths]
    mean = sum(x) / len(x), sum(logs) / len(logs)
    return sum((a - mean[0]) * (b - mean[1]) for a, b in zip(x, logs)) / sum((a - mean[0]) ** 2 for a in x)


CHILD = """
import sys; sys.path.insert(0, {here!r})
import torch, efficient
torch.set_num_threads(1)
def peak():
    return int(next(x for x in open("/proc/self/status") if x.startswith("VmHWM")).split()[1]) * 1024
call = efficient.mechanisms()[{name!r}]
run = (lambda g: efficient.both_ways(call, g)()) if {gradients} else (lambda g: call(*g))
with torch.set_grad_enabled({gradients}):
    run(efficient.drawn(3000, 1, {gradients}))  # so that code and what kernels keep do not count
    for n in {lengths}:
        given = efficient.drawn(n, 1, {gradients})
        open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
        before = peak()
        kept = run(given)
        out = sum(x.nbytes for x in (kept if isinstance(kept, tuple) else (kept,)))
        print("peak", n, peak() - before - out)
        del given, kept
"""


def peaks(name: str, lengths: list[int], gradients: bool = False) -> dict[int, float]:
    """Bytes beyond inputs and outputs of one head, for each length; nothing where the system does not tell."""
    here = os.path.dirname(os.path.abspath(__file__))
    code = CHILD.format(here=here, name=name, lengths=lengths, gradients=gradients)
    env = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    if done.returncode:
        print(f"memory of {name}: not measured ({(done.stderr.strip().splitlines() or ['no reason given'])[-1]})")
    words = [line.split() for line in done.stdout.splitlines() if line.startswith("peak")]
    return {int(n): max(0.0, float(size)) for _, n, size in words}


def memory() -> list[Row]:
    """n = 32,768: the share of one head's dense matrix, 4 GB, that is needed beyond inputs and outputs."""
    rows, n = [], 32768
    for name in mechanisms():
        for gradients, way in ((False, "forward"), (True, "forward and backward")):
            if name == "dense SDPA" and gradients:
                continue
            for size in peaks(name, [n], gradients).values():
                limit = 2.0 if name.startswith("window(") else None
                rows.append(Row(f"n = 32,768, {name}, {way}: memory", 100 * size / (4 * n * n), limit, "%"))
    return rows


@torch.no_grad()
def beside_others() -> list[Row]:
    """Other packages at equal settings; the largest difference where both mean the same."""
    rows, n, m = [], 8192, HEADS * WIDTH
    makers = {
        "transformers Longformer": (lambda: peers.longformer(n, m, HEADS, REACH), 2.0),
        "transformers BigBird": (lambda: peers.bigbird(n, m, HEADS, 64), 2.0),
        "local-attention": (lambda: peers.local_attention(*drawn(n), REACH), 2.0),
        "performer-pytorch": (lambda: peers.performer(*drawn(n), FEATURES), 1.2),
        "linformer": (lambda: peers.linformer(n, m, HEADS, RANK), 1.2),
    }
    for name, (make, promised) in makers.items():
        try:
            pair = make()
        except (ImportError, AttributeError) as error:
            print(f"{name}: left out, because {error}")
            continue
        rows.append(Row(f"n = {n}, {name} / ours", turns(pair.ours, pair.theirs, 7), promised, least=True))
        error = float((pair.ours() - pair.theirs()).abs().max() / pair.theirs().abs().max())
        rows.append(Row(f"{name}: largest difference, relative", error * 1e6, 10.0 if pair.same else None, "e-6"))
    return rows


@torch.no_grad()
def over_lengths() -> list[Row]:
    """Time and memory of one head against n = 512 … 32,768, as a picture."""
    lines: dict[str, dict[str, list[tuple[int, float]]]] = {"seconds": {}, "MB": {}}
    for name, call in mechanisms().items():
        for n in LENGTHS:
            given = drawn(n, 1)
            call(*given)
            best = min(seconds(lambda: call(*given)) for _ in range(2 if n > 8192 else 3))  # noqa: B023
            lines["seconds"].setdefault(name, []).append((n, best))
        lines["MB"][name] = [(n, max(size / 1e6, 0.01)) for n, size in peaks(name, LENGTHS).items()]
    lines["MB"]["one dense matrix"] = [(n, 4e-6 * n * n) for n in LENGTHS]
    draw(lines)
    (OUT / "efficient_lines.json").write_text(json.dumps(lines, indent=1) + "\n")
    return []


def draw(lines: dict[str, dict[str, list[tuple[int, float]]]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    for axes, (what, of) in zip(figure.subplots(1, 2), lines.items()):
        for name, points in of.items():
            if points:
                axes.plot(*zip(*points), marker="o", markersize=3, label=name, linestyle="--" if "one" in name else "-")
        title = "CPU time of one head, forward" if what == "seconds" else "memory beyond inputs and outputs"
        axes.set(title=title, xlabel="n", ylabel=what, xscale="log", yscale="log")
        axes.set_xticks(LENGTHS, [f"{n:,}" for n in LENGTHS], fontsize=7)
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=7)
    OUT.mkdir(exist_ok=True)
    for ending in ("png", "svg"):
        figure.savefig(OUT / f"efficient.{ending}", dpi=120)
    print(f"plot: {OUT / 'efficient.png'}")


PARTS = {"dense": beside_dense, "slope": slopes, "memory": memory, "peers": beside_others, "plot": over_lengths}


def main() -> int:
    torch.set_num_threads(1)
    asked = sys.argv[1:] or list(PARTS)
    rows = [row for part in asked for row in PARTS[part]()]
    return report("efficient" if len(asked) == len(PARTS) else f"efficient_{'_'.join(asked)}", rows) if rows else 0


if __name__ == "__main__":
    sys.exit(main())
