"""Does SmolLM2 stay fluent in a text without end? Perplexity of each thousand tokens of WikiText-2.

python benchmarks/endless.py                 20,000 tokens: a window with sinks, the window alone, everything (minutes)
python benchmarks/endless.py --steps 20000   and so many of them token by token, by the state that writes (longer)

The first three read many tokens at once, straight from the weights (tests/models/endless_oracle.py); the state that
`model.begin(prompt, window=…, sinks=…)` gives must have the same losses.
"""

import argparse
import json
import math
import sys
import time

from tools.measure import OUT, Row, report
from tools.smollm2 import ROOT, open_ours, wikitext

CACHE, SINKS, EACH = 1024, 4, 1000


def by_thousand(losses) -> list[float]:
    return [math.exp(float(part.mean())) for part in losses.split(EACH) if len(part) == EACH]


def main() -> int:
    asked = argparse.ArgumentParser()
    asked.add_argument("--tokens", type=int, default=20_000)
    asked.add_argument("--steps", type=int, default=0)
    given = asked.parse_args()
    import torch

    sys.path.append(str(ROOT))
    from regard.tokens.protocol import as_tokenizer
    from tests.models.endless_oracle import read_endlessly, step_endlessly

    model, tokenizer = open_ours()
    ids = torch.tensor(as_tokenizer(tokenizer).encode(wikitext())[: given.tokens + 1])
    runs = {
        f"window {CACHE - SINKS}, {SINKS} sinks": {"window": CACHE - SINKS, "sinks": SINKS},
        f"window {CACHE}, no sinks": {"window": CACHE},
        "everything, up to its context": {"window": None},
    }
    losses, seconds = {}, {}
    for name, how in runs.items():
        start = time.perf_counter()
        read = ids if how["window"] else ids[: model.config.context + 1]
        losses[name] = torch.cat(list(read_endlessly(model, read, **how)))
        seconds[name] = time.perf_counter() - start
        print(f"{name}, {seconds[name]:.0f} s:", *(f"{one:.1f}" for one in by_thousand(losses[name])), flush=True)
    with_sinks, bare, everything = losses.values()
    flat = by_thousand(with_sinks)
    rows = [
        Row("last 5,000 tokens / first 5,000, sinks", ratio(with_sinks[-5000:], with_sinks[:5000]), 1.1),
        Row("highest thousand / mean, sinks", max(flat) / math.exp(float(with_sinks.mean())), 1.6),
        Row("last 5,000 tokens, no sinks / sinks", ratio(bare[-5000:], with_sinks[-5000:]), 2.0, least=True),
        Row("sinks / everything, within its context", ratio(with_sinks[: len(everything)], everything), 1.15),
    ]
    if given.steps:
        start = time.perf_counter()
        stepped = step_endlessly(model, ids[: given.steps + 1], window=CACHE - SINKS, sinks=SINKS)
        seconds["token by token"] = time.perf_counter() - start
        losses["token by token"] = stepped
        print(f"token by token, {seconds['token by token']:.0f} s:", *(f"{one:.1f}" for one in by_thousand(stepped)))
        same = with_sinks[: given.steps]
        rows.append(Row("state / many tokens at once", ratio(stepped, same), 1.0001))
        rows.append(Row("largest difference of a loss", float((stepped - same).abs().max()), 0.01, unit=""))
    OUT.mkdir(exist_ok=True)
    kept = {name: {"seconds": seconds[name], "by thousand": by_thousand(one)} for name, one in losses.items()}
    (OUT / f"endless_{given.steps}.json").write_text(json.dumps(kept, indent=2) + "\n")
    return report("endless", rows)


def ratio(ours, theirs) -> float:
    """How many times the perplexity."""
    return math.exp(float(ours.mean() - theirs.mean()))


if __name__ == "__main__":
    raise SystemExit(main())
