"""A model that continues what repeats: find the heads that do it, see one, take one away, and it breaks.

It takes two heads in a row. One tells each token which came before it; the other looks for the token that came after
the present one the last time (Olsson et al. 2022, arXiv 2209.11895). The model comes with the package.

Run it: python examples/05_induction.py [folder for the picture]
"""

import sys
import tempfile
from pathlib import Path

import torch

import regard

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
model, tokenizer = regard.open_model("induction")

# A census over random letters, each string said twice, so that nothing but the repetition tells what comes next.
torch.manual_seed(0)
once = [torch.randperm(26)[:length].tolist() for length in range(20, 26)]  # the first 26 ids are A to Z
census = regard.census(model, [ids + ids for ids in once], progress=False)
for kind in ("previous-token", "induction"):
    for layer, head in census.find(kind):
        print(f"{layer}, head {head}: {census.why(layer, head)}")
before, *_ = census.find("previous-token")
finder, *_ = census.find("induction")

# What the strongest induction head does with words.
ids = torch.tensor([tokenizer.encode("the little fox sees a red bird . the little fox sees a red bird")])
with torch.no_grad(), regard.watch(model, tokenizer) as trace:
    model(ids)
assert trace.verify()
layer, head = finder
words = trace[layer].keys[0].shown
weights, keys = trace[layer].head(head).top(1)
for row in range(8, 15):
    print(f"{words[row]:6} looks at {words[keys[row, 0]]:6} {weights[row, 0]:.2f}")
title = "The second time, each word looks at what came next the first time"
trace.figure(layer, head, rows=slice(8, 15), title=title, to=folder / "induction.svg")
print(f"As a picture: {folder / 'induction.svg'}")

# Seeing a head look is no proof that it matters. Muting it is: what is the last word followed by, without this head?
print("\nEach head muted in turn, and how likely the full stop still is:")
stop = tokenizer.token_to_id(".")
print(regard.importance(model, ids, lambda logits: logits[0, -1].softmax(-1)[stop], progress=False))

# Any one induction head can go: three others do the same. The previous-token head cannot: nobody stands in for it.
with regard.edit(model, tokenizer) as e:
    e.mute(before[0], heads=before[1])
    without = e.run(ids)
print(f"\nWithout {before[0]}, head {before[1]}:")
print(without.top(2))
assert without.before[0, -1].argmax() == stop
assert without.after[0, -1].argmax() != stop
