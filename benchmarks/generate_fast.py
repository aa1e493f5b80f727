"""How near do compiled kernels come to the speed of the memory, and what do 4-bit codes gain?

SmolLM2-135M, batch 1, greedy, 128 tokens after a prompt of 32; contestants take turns, 16 tokens each, and the best
token of each counts, so that a busy moment touches all. The bandwidth is measured in the same run.

    python benchmarks/generate_fast.py             about 2 minutes
    python benchmarks/generate_fast.py busy        where others use the machine: one thread, time of the processor
    REGARD_LLAMA_CPP=/path/to/python python benchmarks/generate_fast.py    with llama.cpp, which that Python has

llama-cpp-python is built from source, without what only this machine has:
`CMAKE_ARGS=-DGGML_NATIVE=OFF pip install --no-binary llama-cpp-python llama-cpp-python` (about 8 minutes).
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from tools.measure import Row, report
from tools.smollm2 import gguf_path, open_theirs, wikitext

BUSY = "busy" in sys.argv
THREADS, PROMPT, TURN, TURNS = 1 if BUSY else 2, 32, 16, 3 if BUSY else 8
now = time.process_time if BUSY else time.perf_counter
Write = Callable[[int], list[float]]  # writes so many tokens, and says how long each took


def time_steps(step: Callable[[torch.Tensor], torch.Tensor], prompt: torch.Tensor) -> tuple[Write, list[int]]:
    """What writes greedily with a function from tokens (1, t) to logits (1, n), and the tokens it wrote."""
    written: list[int] = []
    token = step(prompt).argmax(-1, keepdim=True)

    def write(count: int) -> list[float]:
        nonlocal token
        seconds = []
        for _ in range(count):
            written.append(int(token))
            start = now()
            token = step(token).argmax(-1, keepdim=True)
            seconds.append(now() - start)
        return seconds

    return write, written


def transformers_steps(model) -> Callable[[torch.Tensor], torch.Tensor]:
    """The forward step of `transformers` with its cache."""
    from transformers import DynamicCache

    cache = DynamicCache(config=model.config)
    return lambda ids: model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]


class LlamaCpp:
    """llama.cpp in a process of its own."""

    def __init__(self, python: str, prompt: torch.Tensor) -> None:
        script = Path(__file__).with_name("tools") / "llama_cpp_steps.py"
        arguments = [python, str(script), str(gguf_path()), str(THREADS), now.__name__]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.units = json.loads(self.process.stdout.readline())
        self.ask(read=prompt[0].tolist())

    def ask(self, **what) -> dict:
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def write(self, count: int) -> list[float]:
        return self.ask(write=count)["seconds"]


def measure_bandwidth(size: int) -> float:
    """Bytes a second that torch reads of a tensor of so many bytes, the best of twelve."""
    numbers = torch.ones(size // 4)
    best = 0.0
    for _ in range(12):
        start = now()
        numbers.sum()
        best = max(best, numbers.nbytes / (now() - start))
    return best


def difference(model, unpacked, tokens: int = 200) -> float:
    """The largest difference of a logit over a text."""
    from regard.models.gguf import GGUFFile
    from regard.models.gguf.tokenizer import read_tokenizer

    ids = torch.tensor([read_tokenizer(GGUFFile(gguf_path())).encode(wikitext()[:4000]).ids[:tokens]])
    return float((model(ids) - unpacked(ids)).abs().max())


def read_codes():
    """The model with its codes, and how much the process grew by reading it, kernels apart."""
    from regard.models.fast.quantized import QuantizedModel

    import_module("regard.models.fast.step")  # its memory is not that of the model
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = QuantizedModel.read(gguf_path())
    return model, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def run_turns(contestants: dict[str, Write]) -> tuple[dict[str, float], float]:
    """Seconds of the best token of each, and the bandwidth."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    bandwidth = 0.0
    for _ in range(TURNS):
        for name, write in contestants.items():
            times[name] += write(TURN)
        bandwidth = max(bandwidth, measure_bandwidth(2**29))
    for name, seconds in times.items():
        print(
            f"{name:<14}{1e3 * min(seconds):>8.2f} ms a token at best, {1e3 * np.median(seconds):>8.2f} in the middle"
        )
    print(f"bandwidth {bandwidth / 1e9:.1f} GB/s")
    return {name: min(seconds) for name, seconds in times.items()}, bandwidth


@torch.no_grad()
def main() -> int:
    from regard.models.gguf import GGUFFile
    from regard.models.gguf.model import read_model

    torch.set_num_threads(THREADS)
    model, grown = read_codes()
    theirs, unpacked = open_theirs()[0], read_model(GGUFFile(gguf_path()))
    prompt = torch.randint(100, 40_000, (1, PROMPT), generator=torch.Generator().manual_seed(0))
    start = time.perf_counter()
    model.begin(prompt)(prompt)
    print(f"first call of the kernels {time.perf_counter() - start:.1f} s")

    codes, from_codes = time_steps(model.begin(prompt), prompt)
    floats, from_floats = time_steps(unpacked.begin(prompt, engine="fast"), prompt)
    library, from_library = time_steps(transformers_steps(theirs), prompt)
    contestants: dict[str, Write] = {"codes": codes, "float32": floats, "transformers": library}
    python = os.environ.get("REGARD_LLAMA_CPP")
    if python:
        llama = LlamaCpp(python, prompt)
        contestants["llama.cpp"] = llama.write
        print("llama.cpp:", llama.units)
    best, bandwidth = run_turns(contestants)
    size, weights = gguf_path().stat().st_size, sum(one.nbytes for one in unpacked.parameters())
    print(f"same 48 tokens: {from_codes[:48] == from_floats[:48] == from_library[:48]}")
    rows = [
        Row("float32: share of the bandwidth", weights / best["float32"] / bandwidth, 0.8, least=True),
        Row("float32: × transformers", best["transformers"] / best["float32"]),
        Row("4-bit codes: × transformers", best["transformers"] / best["codes"], 4.0, least=True),
        Row("4-bit codes: share of the bandwidth", model.nbytes / best["codes"] / bandwidth),
        Row("4-bit codes: largest difference of a logit · 10⁴", 1e4 * difference(model, unpacked), 2.0, ""),
        Row("4-bit codes: memory of weights / file", model.nbytes / size, 1.3),
        Row("4-bit codes: growth of the process / file", grown / size, 1.3),
    ]
    if python:
        rows.insert(3, Row("4-bit codes: × llama.cpp", best["llama.cpp"] / best["codes"], 1.2, least=True))
    return report("generate_fast", rows)


if __name__ == "__main__":
    sys.exit(main())
