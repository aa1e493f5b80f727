"""A sentence, a layer, and what each word looks at: a map computed from q and k, drawn with its tokens.

Run it: python examples/03_a_map_of_words.py [folder for the picture]
"""

import sys
from pathlib import Path

import torch

import regard

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
torch.manual_seed(4)
words = ["the", "cat", "sat", "on", "the", "mat", "because", "the", "cat", "was", "tired"]

# The same word gets the same vector, and a rotary layer tells the places apart.
vocabulary = {word: torch.randn(32) for word in dict.fromkeys(words)}
x = torch.stack([vocabulary[word] for word in words])[None]  # b t m
layer = regard.MultiHead(32, heads=2, bias=False, positions=regard.Rotary(16))
with torch.no_grad():
    layer.to_k.weight.copy_(layer.to_q.weight)  # a key is what its own word would ask: equal words find each other
    layer.to_q.weight.mul_(2)
    layer.to_k.weight.mul_(2)

a = layer.attend(x, mask=regard.causal())
head = a.weights.with_names(words)[0, 0]
print(head)
for word, strongest in zip(words[-3:], head.top(3)[1][-3:].tolist()):
    print(f"{word!r} looks at", ", ".join(f"{words[k]!r} ({k})" for k in strongest))
head.draw(title="What each word looks at, causal", to=folder / "words.svg")
