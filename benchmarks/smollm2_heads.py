"""Which heads does SmolLM2 have? A census over random tokens said twice and over WikiText-2, and what muting does.

python benchmarks/smollm2_heads.py            our Llama, from the GGUF file
python benchmarks/smollm2_heads.py --theirs   `LlamaForCausalLM` of transformers with the same weights
"""

import json
import random
import re
import sys
from collections import Counter

from tools.measure import OUT
from tools.smollm2 import open_ours, open_theirs, wikitext

LENGTH, ROWS = 48, 16  # tokens of a sequence that is said twice; sequences
PARAGRAPHS, CUT = 48, 128  # texts of WikiText-2, and tokens of each
TOP, DRAWS = (1, 3, 5, 10, 20), 5  # heads muted; how often other heads are drawn instead
KINDS = ("previous-token", "induction", "duplicate", "sink", "self", "positional", "rare-word")


def say_twice(seed: int, rows: int = ROWS):
    """Random different tokens, each string said twice; strings differ in length, so that no fixed offset fits."""
    import torch

    draw = torch.Generator().manual_seed(seed)
    once = [(1000 + torch.randperm(19000, generator=draw)[: LENGTH - row % 4]).tolist() for row in range(rows)]
    return [[*one, *one] for one in once]


def paragraphs() -> list[str]:
    lines = [line.strip() for line in wikitext().split("\n")]
    return [line for line in lines if len(line) > 800 and not line.startswith("= ")][:PARAGRAPHS]


def by_place(census) -> dict[tuple[int, int], dict]:
    """The rows of a census by the numbers of layer and head, whatever the model calls its layers."""
    rows = [row | {"layer": int(re.search(r"\d+", row["layer"])[0])} for row in census.records()]
    return {(row["layer"], row["head"]): row for row in rows}


def losses(model, texts: list[list[int]], muted=(), how: str = "zero") -> tuple[float, float]:
    """Mean loss of the tokens of the first time and of the second, with some heads muted."""
    import torch
    import torch.nn.functional as F

    import regard

    names = layer_names(model)
    sums, counts = [0.0, 0.0], [0, 0]
    with torch.no_grad(), regard.edit(model) as e:
        for layer in sorted({layer for layer, _ in muted}):
            e.mute(names[layer], [head for at, head in muted if at == layer], how=how)
        for same in (texts[row::4] for row in range(4)):  # of one length
            ids = torch.tensor(same)
            output = model(ids)
            logits = getattr(output, "logits", output)[:, :-1]
            lost = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")  # b t
            half = ids.shape[1] // 2
            for which, part in enumerate((lost[:, : half - 1], lost[:, half:])):
                sums[which], counts[which] = sums[which] + float(part.double().sum()), counts[which] + part.numel()
    return sums[0] / counts[0], sums[1] / counts[1]


def layer_names(model) -> list[str]:
    """The attention layers, in their order."""
    found = [name for name, _ in model.named_modules() if re.search(r"\d+\.(self_attn|attention)$", name)]
    return sorted(found, key=lambda name: int(re.search(r"\d+", name)[0]))


def ablate(model, kinds: dict[str, list[tuple[int, int]]], every: list[tuple[int, int]]) -> list[dict]:
    """What the second time costs without some heads, and without as many drawn from the same layers at random."""
    texts = say_twice(seed=99, rows=8)
    first, second = losses(model, texts)
    rows = [{"muted": "none", "heads": 0, "how": "", "first": first, "second": second}]
    marked = {head for heads in kinds.values() for head in heads}
    for kind in ("induction", "previous-token"):
        for count in [n for n in TOP if n <= len(kinds[kind])]:
            chosen = kinds[kind][:count]
            for how in ("zero", "mean"):
                first, second = losses(model, texts, chosen, how)
                rows.append({"muted": kind, "heads": count, "how": how, "first": first, "second": second})
            for draw in range(DRAWS if count in (5, 10) else 0):
                others = others_like(chosen, [head for head in every if head not in marked], draw)
                first, second = losses(model, texts, others)
                rows.append({"muted": f"not {kind}", "heads": count, "how": "zero", "first": first, "second": second})
            print("muted", kind, count, [round(row["second"], 3) for row in rows if row["heads"] == count], flush=True)
    return rows


def others_like(chosen, free, seed: int):
    """As many heads of the same layers that are none of the kind, where there are any; of other layers else."""
    draw, taken = random.Random(seed), []
    for layer, _ in chosen:
        left = [head for head in free if head not in taken]
        here = [head for head in left if head[0] == layer]
        taken.append(draw.choice(here or left))
    return taken


def main() -> int:
    import regard
    from regard.tokens.protocol import as_tokenizer

    model, tokenizer = open_theirs() if "--theirs" in sys.argv else open_ours()
    twice = by_place(regard.census(model, say_twice(seed=7), batch=4))
    print("induction test done", flush=True)
    texts = [as_tokenizer(tokenizer).encode(text)[:CUT] for text in paragraphs()]
    real = by_place(regard.census(model, texts, tokenizer, batch=8))
    kinds = {
        kind: [
            at for at, row in sorted(twice.items(), key=lambda item: -(item[1]["score"] or 0)) if row["label"] == kind
        ]
        for kind in ("induction", "previous-token")
    }
    rows = ablate(model, kinds, list(twice))
    OUT.mkdir(exist_ok=True)
    name = "smollm2_heads_theirs" if "--theirs" in sys.argv else "smollm2_heads"
    kept = {"twice": [*twice.values()], "real": [*real.values()], "ablation": rows}
    (OUT / f"{name}.json").write_text(json.dumps(kept) + "\n")
    for source in ("twice", "real"):
        print(source, Counter(row["label"] for row in kept[source]))
    for kind in KINDS:
        for source, some in (("twice", kept["twice"]), ("real", kept["real"])):
            found = sorted((row for row in some if row["label"] == kind), key=lambda row: -row["score"])
            print(f"{kind}, {source}:", ", ".join(f"{r['layer']}.{r['head']} {r['score']:.2f}" for r in found[:16]))
    for row in rows:
        print(row)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
