"""Does SmolLM2 stay fluent in a text without end? Perplexity of each thousand tokens of WikiText-2.

python benchmarks/endless.py                a window with sinks, the window alone, everything it can read; 20,000 tokens
python benchmarks/endless.py --run sinks    one of them: sinks, window, everything, steps; the table when all are there

The first three read many tokens at once, straight from the weights (tests/models/endless_oracle.py). "steps" reads
token by token, by the state that writes, `model.begin(prompt, window=…, sinks=…)`: it must have the same losses.
What was measured stays in benchmarks/out/endless_*.json; --again measures anew.
"""

import argparse
import json
import math
import sys
import time

from tools.measure import OUT, Row, report
from tools.smollm2 import ROOT, open_ours, wikitext

CACHE, SINKS, EACH = 1024, 4, 1000  # keys held, how many of them are the first ones; tokens of one figure
RUNS = {
    "sinks": {"window": CACHE - SINKS, "sinks": SINKS},
    "window": {"window": CACHE},
    "everything": {"window": None},
}
STEPS = 3000  # tokens read one by one, unless told


def by_thousand(losses: list[float]) -> list[float]:
    parts = [losses[first : first + EACH] for first in range(0, len(losses) - EACH + 1, EACH)]
    return [math.exp(sum(part) / EACH) for part in parts]


def ratio(ours: list[float], theirs: list[float]) -> float:
    """How many times the perplexity."""
    return math.exp(sum(ours) / len(ours) - sum(theirs) / len(theirs))


def measure(name: str, tokens: int, steps: int) -> list[float]:
    import torch

    sys.path.append(str(ROOT))
    from regard.tokens.protocol import as_tokenizer
    from tests.models.endless_oracle import read_endlessly, step_endlessly

    model, tokenizer = open_ours()
    ids = torch.tensor(as_tokenizer(tokenizer).encode(wikitext())[: tokens + 1])
    start = time.perf_counter()
    if name == "steps":
        losses = step_endlessly(model, ids[: steps + 1], **RUNS["sinks"]).tolist()
    else:
        read = ids[: model.config.context + 1] if name == "everything" else ids
        losses = []
        for some in read_endlessly(model, read, **RUNS[name]):
            losses += some.tolist()
            if len(losses) % 5120 == 0:
                print(f"{name}: {len(losses):,} tokens", flush=True)
    seconds = time.perf_counter() - start
    print(f"{name}, {seconds:.0f} s:", *(f"{one:.1f}" for one in by_thousand(losses)), flush=True)
    OUT.mkdir(exist_ok=True)
    (OUT / f"endless_{name}.json").write_text(json.dumps({"seconds": seconds, "losses": losses}) + "\n")
    return losses


def rows_of(sinks: list[float], window: list[float], everything: list[float], steps: list[float]) -> list[Row]:
    same = sinks[: len(steps)]
    return [
        Row("sinks, last 5,000 tokens / first 5,000", ratio(sinks[-5000:], sinks[:5000]), 1.1),
        Row("no sinks / sinks, last 5,000 tokens", ratio(window[-5000:], sinks[-5000:]), 1.3, least=True),
        Row("sinks / everything, within its context", ratio(sinks[: len(everything)], everything), 1.15),
        Row(f"token by token / at once, {len(steps)} tokens", ratio(steps, same), 1.0001),
        Row("largest difference of a loss", max(abs(a - b) for a, b in zip(steps, same)), 0.01, unit=""),
    ]


def main() -> int:
    asked = argparse.ArgumentParser()
    asked.add_argument("--tokens", type=int, default=20_000)
    asked.add_argument("--steps", type=int, default=STEPS)
    asked.add_argument("--run", choices=[*RUNS, "steps"])
    asked.add_argument("--again", action="store_true")
    given = asked.parse_args()
    if given.run:
        measure(given.run, given.tokens, given.steps)
        return 0
    losses = {}
    for name in (*RUNS, "steps"):
        kept = OUT / f"endless_{name}.json"
        known = None if given.again or not kept.is_file() else json.loads(kept.read_text())["losses"]
        losses[name] = measure(name, given.tokens, given.steps) if known is None else known
        print(f"{name}:", *(f"{one:.1f}" for one in by_thousand(losses[name])))
    return report("endless", rows_of(**losses))


if __name__ == "__main__":
    raise SystemExit(main())
