"""What does SmolLM2 lose on WikiText-2 in each quantised form? Ours beside `transformers`, and other forms of the file.

python benchmarks/perplexity.py                  the first 16,384 tokens (minutes)
python benchmarks/perplexity.py --tokens all     the whole test split, of the file as it is, ours and theirs
python benchmarks/perplexity.py --tokens 2048 --forms Q8_0 Q4_0

The file holds Q4_1 (embeddings Q8_0). Other forms are made from these numbers, not from the ones that were trained: a
form with more bits shows what rounding twice costs, not how good the form is. `gguf` can make no K-quants.
"""

import argparse
import json
import time

from tools.measure import OUT, Row, report
from tools.smollm2 import open_ours, open_theirs, wikitext

FORMS = ("Q8_0", "Q5_1", "Q5_0", "Q4_0")
WINDOW = 1024


def requantise(model, form: str) -> None:
    """Round every matrix of the blocks to a form and back, as reading such a file would give it."""
    import gguf
    import torch

    kind = gguf.GGMLQuantizationType[form]
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2 and "blocks" in name:
                rounded = gguf.quants.dequantize(gguf.quants.quantize(weight.numpy(), kind), kind)
                weight.copy_(torch.from_numpy(rounded))


def measure(model, tokenizer, text: str, stride: int):
    from regard.tasks.perplexity import perplexity

    start = time.perf_counter()
    found = perplexity(model, tokenizer, text, window=WINDOW, stride=stride, progress=True)
    return found, time.perf_counter() - start


def main() -> int:
    asked = argparse.ArgumentParser()
    asked.add_argument("--tokens", default="16384")
    asked.add_argument("--stride", type=int, default=WINDOW)
    asked.add_argument("--forms", nargs="*", default=None)
    given = asked.parse_args()
    from regard.tasks.perplexity import first_tokens

    model, tokenizer = open_ours()
    text = wikitext()
    if given.tokens != "all":
        text = first_tokens(text, tokenizer, int(given.tokens))
    forms = given.forms if given.forms is not None else [] if given.tokens == "all" else FORMS
    results, seconds = {}, {}
    results["transformers, Q4_1"], seconds["transformers, Q4_1"] = measure(*open_theirs(), text, given.stride)
    print(results["transformers, Q4_1"], flush=True)
    for form in ("Q4_1", *forms):
        if form != "Q4_1":
            requantise(model := open_ours()[0], form)
        results[form], seconds[form] = measure(model, tokenizer, text, given.stride)
        print(f"{form}: {results[form]}, {seconds[form]:.0f} s", flush=True)
    ours, theirs = results["Q4_1"], results["transformers, Q4_1"]
    OUT.mkdir(exist_ok=True)
    kept = {name: one.to_json() | {"seconds": seconds[name]} for name, one in results.items()}
    (OUT / f"perplexity_{given.tokens}.json").write_text(json.dumps(kept, indent=2) + "\n")
    rows = [Row(f"{name}, per token", one.per_token, unit="") for name, one in results.items()]
    rows += [Row(f"{name}, per word", one.per_word, unit="") for name, one in results.items()]
    rows += [Row(f"{name}, per byte", one.bits_per_byte, unit="b") for name, one in results.items()]
    rows.append(Row("ours − theirs, 1e-4 of it", abs(ours.per_token / theirs.per_token - 1) * 1e4, 1.0, unit=""))
    return report("perplexity", rows)


if __name__ == "__main__":
    raise SystemExit(main())
