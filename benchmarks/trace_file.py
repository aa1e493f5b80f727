"""What does a trace file cost? Memory while it is written, and time to write, to check and to read it.

Memory is the peak of a process of its own, with and without `watch(to=file)`, for models of more and more layers: it
must not depend on their number. Time is a ratio within one run: digests beside writing without them, and reading with
digests into memory of our own beside numbers in a file that is mapped, all in the page cache.

    python benchmarks/trace_file.py                   everything (some minutes)
    python benchmarks/trace_file.py memory 16384 8 16 memory at this length, for these numbers of layers
    python benchmarks/trace_file.py time              time only
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

LENGTH, LAYERS = 16_384, (8, 16, 32)
ROWS = slice(9000, 10_024)


def peak(how: str, n: int, layers: int) -> int:
    """Kilobytes that a process with the model takes at most."""
    import resource

    import torch

    import regard

    torch.set_num_threads(1)
    model = regard.models.GPTConfig(vocab_size=50, width=128, heads=2, layers=layers, context=n).build().eval()
    ids = torch.randint(50, (1, n))
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        if how == "plain":
            model(ids)
        else:
            with regard.watch(model, to=Path(folder) / "a.trace") as trace:
                model(ids)
            assert len(trace.layers) == layers
            assert {layer.weights.kind for layer in trace} == {"computed"}
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def in_process(how: str, n: int, layers: int) -> int:
    words = [sys.executable, __file__, "peak", how, str(n), str(layers)]
    return int(json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout))


def memory(n: int, numbers: tuple[int, ...]) -> None:
    print(f"\npeak memory, n = {n}\n\n| layers | unwatched | watched to a file | more | ratio |\n|---|---|---|---|---|")
    for layers in numbers:
        plain, ours = (in_process(how, n, layers) for how in ("plain", "to"))
        more = f"{(ours - plain) / 1024:.0f} MB"
        print(f"| {layers} | {plain / 1024:.0f} MB | {ours / 1024:.0f} MB | {more} | {ours / plain:.2f} |", flush=True)


def time() -> None:
    import mmap

    import torch
    from tools.measure import best

    import regard
    from regard.attention.map import AttentionMap, Computed
    from regard.attention.mask import Sizes
    from regard.trace.file.container import RECENT
    from regard.trace.file.stream import ChunkDigests, Writer
    from regard.trace.record.layer import Layer
    from regard.trace.record.trace import Run, Trace

    torch.set_num_threads(1)
    n, heads, d = 32_768, 4, 64
    q, k = torch.randn(2, 1, heads, n, d)
    sizes = Sizes((1, heads), n, n)
    trace = Trace([Run([Layer("a", "self", AttentionMap(Computed(q, k, sizes, mask=regard.causal(), scale=0.1)))])])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.trace"
        trace.save(path)
        sizes_of = f"{path.stat().st_size >> 20} MB"

        def write(digests: bool) -> None:
            writer = Writer(Path(folder) / "b.trace")
            if not digests:
                writer.digests.update = lambda data: None  # type: ignore[method-assign]
            writer.put(q)
            writer.put(k)
            writer.abort()

        ours, theirs = best(lambda: write(True), lambda: write(False), rounds=5)
        print(f"\ndigests: written with / without, {sizes_of}: {ours / theirs:.2f}")
        digests = ChunkDigests()
        ours, theirs = best(lambda: digests.update(q.numpy().data), lambda: q.numpy().tobytes(), rounds=5)
        print(f"SHA-256 alone: {q.nbytes / ours / 1e9:.2f} GB/s")

        opened = regard.load(path)
        begin = opened.layers[0].weights.source.files  # type: ignore[union-attr]

        def mapped() -> Computed:
            with open(path, "rb") as file:
                memory = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
            over = [
                torch.frombuffer(memory, dtype=torch.float32, count=q.numel(), offset=begin[x].start).view(q.shape)
                for x in ("q", "k")
            ]
            return Computed(*over, sizes, mask=regard.causal(), scale=0.1)

        def fresh() -> Computed:
            RECENT.forget(begin["q"].container.serial)
            return opened.layers[0].weights.source  # type: ignore[return-value]

        asks = {
            "a row": lambda source: AttentionMap(source)[0, 1, n - 7],
            "a tile of 256 × 256": lambda source: source.pick((0, 1)).scores(slice(9000, 9256), slice(100, 356)),
            "the largest weights of 1,024 rows of a head": lambda source: source.pick((0, 1)).weights(ROWS).amax(),
        }
        print("\n| | mapped | first read, with digests | ratio | read again | ratio |\n|---|---|---|---|---|---|")
        for what, ask in asks.items():
            first, theirs = best(lambda ask=ask: ask(fresh()), lambda ask=ask: ask(mapped()), rounds=5)
            again, _ = best(lambda ask=ask: ask(opened.layers[0].weights.source), lambda: None, rounds=5)
            numbers = f"{theirs * 1e3:.1f} ms | {first * 1e3:.1f} ms | {first / theirs:.1f} | {again * 1e3:.1f} ms"
            print(f"| {what} | {numbers} | {again / theirs:.1f} |", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["peak", how, n, layers]:
            print(peak(how, int(n), int(layers)))
        case ["memory", n, *layers]:
            memory(int(n), tuple(map(int, layers)) or LAYERS)
        case ["time"]:
            time()
        case _:
            memory(LENGTH, LAYERS)
            time()
