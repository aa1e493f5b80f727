"""What does it cost to watch a model? Time and memory beside the same model unwatched, and beside eager attention.

The model is Llama-style: 6 layers, 9 query heads of 64, 3 key heads. How much quicker than eager attention it is
depends on how much of the model is attention, so that is asked of one with 12 heads of 32, too. Time is the least of
interleaved pairs, enter and exit included; memory is what the process peaks at beyond the unwatched forward pass, in a
process of its own each, where malloc maps every large tensor by itself: then the peak is what is alive, and not how the
heap happened to be cut up.

    python benchmarks/watch_cost.py            everything (about 15 minutes)
    python benchmarks/watch_cost.py 512 2048   these lengths only
    python benchmarks/watch_cost.py looks      what a look at very long maps costs, only (some minutes)
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.measure import Row, best, plot, report

LENGTHS = (512, 2048, 8192)
LONG = 32_768


def llama(layers: int = 6, width: int = 576, heads: int = 9, kv_heads: int = 3):
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=512, hidden_size=width, intermediate_size=width * 8 // 3, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=kv_heads, max_position_embeddings=40_000,
    )  # fmt: skip
    return transformers.LlamaModel(config).eval()


def drawn(n: int):
    import torch

    return torch.randint(0, 512, (1, n), generator=torch.Generator().manual_seed(n))


def time_ratio(model, n: int, rounds: int, inner: int = 1) -> float:
    import torch

    import regard

    ids = drawn(n)

    def plain() -> None:
        model(ids, use_cache=False)

    def watched() -> None:
        with regard.watch(model):
            model(ids, use_cache=False)

    with torch.no_grad():
        ours, theirs = best(watched, plain, rounds=rounds, inner=inner)
    return ours / theirs


def eager_ratios(n: int, rounds: int = 3, **shape: int) -> tuple[float, float]:
    """Eager attention that returns its maps beside the watched and the unwatched model: the least of each, in turns."""
    import torch

    import regard

    model, slow, ids = llama(**shape), llama(**shape), drawn(n)
    slow.set_attn_implementation("eager")
    times: dict[str, list[float]] = {"watched": [], "plain": [], "eager": []}
    with torch.no_grad():
        for _ in range(rounds):
            for how, found in times.items():
                start = time.perf_counter()
                if how == "watched":
                    with regard.watch(model):
                        model(ids, use_cache=False)
                elif how == "plain":
                    model(ids, use_cache=False)
                else:
                    slow(ids, use_cache=False, output_attentions=True)
                found.append(time.perf_counter() - start)
    watched, plain, eager = (min(found) for found in times.values())
    return eager / watched, eager / plain


def peak(how: str, n: int) -> dict[str, float]:
    """Peak memory of one forward pass in a fresh process: "plain", "watched" or "eager"."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import watch_cost as w; w.child({how!r}, {n})"
    )
    alone = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=alone)
    return json.loads(done.stdout.splitlines()[-1])


def child(how: str, n: int) -> None:
    import torch

    import regard

    model, ids = llama(), drawn(n)
    with torch.no_grad():
        model(drawn(64), use_cache=False)
        with regard.watch(model):
            model(drawn(64), use_cache=False)
        if how == "eager":
            model.set_attn_implementation("eager")
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew: loading the model had one of its own
        before = resident("VmRSS")
        kept = 0
        if how == "watched":
            with regard.watch(model) as trace:
                out = model(ids, use_cache=False)
            kept = sum(x.numel() * 4 for layer in trace for x in (layer.q, layer.k, layer.v))
            kept += sum(layer.seen.mix.numel() * 4 for layer in trace)
        else:
            out = model(ids, use_cache=False, output_attentions=how == "eager")
    assert out is not None
    print(json.dumps({"peak": resident("VmHWM") - before, "kept": kept}))


def resident(which: str) -> int:
    """Bytes in memory now (VmRSS), or at the highest point (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(which))


def long_trace() -> list[Row]:
    """32,768 tokens to a file and back."""
    import torch

    import regard

    model, ids = llama(), drawn(LONG)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.trace"
        with torch.no_grad(), regard.watch(model, values=False, to=path):
            model(ids, use_cache=False)
        size = path.stat().st_size / 2**20
        start = time.perf_counter()
        trace = regard.load(path)
        opened = (time.perf_counter() - start) * 1000
        one = trace[3].weights[0, 4]
        one[12_345]

        def least(call, rounds: int = 7) -> float:
            times = []
            for _ in range(rounds):
                start = time.perf_counter()
                call()
                times.append((time.perf_counter() - start) * 1000)
            return min(times)

        row = least(lambda: one[LONG - 7])
        tile = least(lambda: one[LONG - 256 :, LONG - 256 :])
        pooled = least(lambda: one.pool(512, 512), rounds=2) / 1000
    return [
        Row(f"file of {LONG} tokens × 6 layers, q and k", size, unit="MB"),
        Row("opening it", opened, unit="ms"),
        Row("a row of any head", row, 50.0, "ms"),
        Row("a tile of 256 × 256", tile, 50.0, "ms"),
        Row("an overview of 512 × 512", pooled, 3.0, "s"),
    ]


def looks(n: int = 131_072, rollout_n: int = 65_536, layers: int = 6, heads: int = 2) -> list[Row]:
    """What a look at very long causal maps costs, exact and sampled, in seconds of one core: others do not count in.

    On c cores that are free it takes a c-th of that, and a little more.
    """
    import torch

    import regard
    from regard.attention.map import AttentionMap, Computed
    from regard.attention.mask import Sizes
    from regard.trace.record.layer import Layer
    from regard.trace.record.trace import Run, Trace

    def long_trace(length: int) -> Trace:
        def draw(number: int) -> Layer:
            q, k = torch.randn(2, 1, heads, length, 64, generator=torch.Generator().manual_seed(number))
            source = Computed(q, k, Sizes((1, heads), length, length), mask=regard.causal(), scale=1 / 8)
            return Layer(f"layers.{number}", "self", AttentionMap(source))

        return Trace([Run([draw(number) for number in range(layers)])])

    def seconds(call) -> float:
        start = time.process_time()
        call()
        return time.process_time() - start

    trace = long_trace(n)
    one = trace[3].weights[0, 1]
    one.sample(8, 8)  # threads begin
    trace.figure(0, exact=False, rows=slice(0, 8), cols=slice(0, 8))
    with tempfile.TemporaryDirectory() as folder:
        asks = {
            "an overview of 512 × 512, sampled": lambda: one.sample(512, 512),
            "the same, exact": lambda: one.pool(512, 512),
            "entropy of a head, exact": one.entropy,
            "a figure of all heads, sampled": lambda: trace.figure(to=Path(folder) / "all.png"),
            "a figure of one head, sampled": lambda: trace.figure(3, 1, to=Path(folder) / "one.png"),
        }
        rows = [Row(f"{n} tokens: {name}", seconds(ask), unit="CPU s") for name, ask in asks.items()]
    trace = long_trace(rollout_n)
    name = f"rollout through {layers} layers"
    asks = {f"{name}, sampled": trace.sample_flow, f"{name}, exact": trace.rollout}
    return rows + [
        Row(f"{rollout_n} tokens: {name}", seconds(lambda ask=ask: ask(rollout_n - 1)), unit="CPU s")
        for name, ask in asks.items()
    ]


def main() -> int:
    if sys.argv[1:] == ["looks"]:
        return report("watch_cost_looks", looks())
    lengths = [int(word) for word in sys.argv[1:]] or list(LENGTHS)
    rows: list[Row] = []
    tiny = llama(layers=6, width=64, heads=4, kv_heads=2)
    rows.append(Row("watched / unwatched, tiny model, n = 16", time_ratio(tiny, 16, 200), 1.5))
    model = llama()
    points = []
    for n in lengths:
        ratio = time_ratio(model, n, 60 if n < 2048 else 30 if n < 8192 else 8)
        points.append((float(n), ratio))
        rows.append(Row(f"watched / unwatched, n = {n}", ratio, 1.03))
    for n in lengths:
        plain, watched = peak("plain", n), peak("watched", n)
        extra = watched["peak"] - plain["peak"]
        rows.append(Row(f"extra memory / bytes kept, n = {n}", extra / watched["kept"], 1.2))
    if len(lengths) > 1:
        for shape in ({"width": 384, "heads": 12, "kv_heads": 4}, {"width": 576, "heads": 9, "kv_heads": 3}):
            quicker, at_best = eager_ratios(4096, **shape)
            name = (
                f"{shape['heads']} heads of {shape['width'] // shape['heads']}, n = 4096: eager with output_attentions"
            )
            rows.append(Row(f"{name} / watched", quicker, 8.0, least=True))
            rows.append(Row(f"{name} / unwatched", at_best))
        plain, watched, eager = (peak(how, 4096) for how in ("plain", "watched", "eager"))
        more = (eager["peak"] - plain["peak"]) / max(1.0, watched["peak"] - plain["peak"])
        rows.append(Row("eager with output_attentions / watched, extra memory, n = 4096", more, 25.0, least=True))
        rows += long_trace()
        rows += looks()
        plot("watch_cost", "what watching costs", {"watched / unwatched": points}, x="tokens", y="time, ratio")
    return report("watch_cost", rows)


if __name__ == "__main__":
    raise SystemExit(main())
