"""Watch models that nobody here wrote: one of torch, and one of the transformers library if it is installed.

Run it: python examples/04_watch_any_model.py [folder for the picture]
"""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import torch
from tokenizers import Tokenizer, models
from torch import nn

import regard

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
torch.manual_seed(0)
words = ["the", "cat", "sat", "on", "the", "mat"]

# torch's own encoder. Nothing tells `watch` what model this is; in eval mode it even runs as one native operator.
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2).eval()
x = torch.randn(1, len(words), 32)
with torch.no_grad():
    plain = encoder(x)
    with regard.watch(encoder, words) as trace:
        watched = encoder(x)
assert torch.equal(plain, watched)  # the watched model is the same model, bit for bit

print(trace)
proofs = trace.verify()
print(proofs)
assert proofs  # every map is verified: it is what the model used
trace.print("layers.1", head=2)
trace.figure("layers.1", to=folder / "encoder.svg")
print(f"\nAll heads of that layer: {folder / 'encoder.svg'}\n")

# A decoder of the transformers library, small and with random weights. `generate` becomes one map per layer.
if find_spec("transformers") is None:
    print("For a model of transformers: pip install 'regard[hf]'")
else:
    from transformers import LlamaConfig, LlamaForCausalLM

    vocabulary = {word: i for i, word in enumerate([*dict.fromkeys(words), "dog", "ran", "."])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary))
    sizes = {"vocab_size": len(vocabulary), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    llama = LlamaForCausalLM(LlamaConfig(**sizes, **heads, eos_token_id=None)).eval()
    prompt = torch.tensor([[vocabulary[word] for word in words]])
    with regard.watch(llama, tokenizer) as trace:
        said = llama.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=4, do_sample=False)

    print(trace)
    proofs = trace.verify()
    print(proofs)
    assert proofs
    layer = trace["layers.1"]
    print("written:", tokenizer.decode(said[0].tolist()))
    print("rows:   ", " ".join(layer.queries[0].shown))  # the last token was written, never read: it has no row
    print("what the last row of head 0 looks at:", layer.weights[0, 0, -1])
