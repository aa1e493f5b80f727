"""Two translators at work: which word of the translation looks at which word of the sentence, and does it matter?

Both come with the package: a Transformer that learned everyday sentences, and a recurrent network that learned
sentences whose true alignment is known.

Run it: python examples/06_translate.py [folder for the picture]
"""

import sys
import tempfile
from pathlib import Path

import torch

import regard
from regard.data.special import BEGIN, END

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
sentence = "The girl drank a cup of tea in the kitchen."

for name in ("en-zh", "en-zh-grammar-recurrent"):
    found = regard.open_translator(name).translate([sentence])[0]
    written, read, weights = found.alignment()
    print(f"{name}: {found.text}")
    for row, token in enumerate(written):
        best = int(weights[row].argmax())
        print(f"  {token} looks at {read[best]} ({weights[row, best]:.2f})")

# The trace behind it: encoder, decoder and what looks across, every map computed from q and k, and verified.
translator = regard.open_translator("en-zh")
trace = translator.translate([sentence])[0].trace()
print(trace.verify())
cross = [layer.name for layer in trace.layers if layer.kind == "cross"]
trace.figure(cross[-1], to=folder / "heads.svg")
print(f"Every head of {cross[-1]}: {folder / 'heads.svg'}")

# Does the model need what it looks at? Hide the word "tea" from everything that looks across, and ask again.
source = [*translator.source.encode(sentence), END]
tea = translator.source.tokens(sentence).index("tea")
ids = torch.tensor([source])


def says() -> str:
    with torch.no_grad():
        best = regard.greedy(translator.model.begin(ids), 1, limits=regard.Limits(longest=30, begin=BEGIN, end=END))
    return translator.target.decode(best[0].ids)


print(f"\nwith tea:    {says()}")
with regard.edit(translator.model) as edit:
    for name in cross:
        edit.block(path=name, key=tea)
    print(f"tea hidden:  {says()}")
