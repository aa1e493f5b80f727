"""Two continuations of one prefix are two runs, and queries that serve a whole batch are those of each entry."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import regard

transformers = pytest.importorskip("transformers")


class Learned(nn.Module):
    """Three learned queries, of batch 1, look at five sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Parameter(torch.randn(1, 4, 3, 8))
        self.k, self.v = nn.Linear(32, 32), nn.Linear(32, 32)

    def keys(self, x: Tensor) -> Tensor:
        return self.k(x).unflatten(-1, (4, 8)).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        v = self.v(x).unflatten(-1, (4, 8)).transpose(1, 2)
        return nn.functional.scaled_dot_product_attention(self.q, self.keys(x), v)


def test_queries_of_one_entry_serve_a_batch() -> None:
    torch.manual_seed(0)
    model, x = Learned().double(), torch.randn(5, 7, 32, dtype=torch.float64)
    with torch.no_grad():
        plain = model(x)
        with regard.watch(model) as trace:
            found = model(x)
        right = (model.q @ model.keys(x).mT / 8**0.5).softmax(-1)
    assert torch.equal(plain, found)
    assert trace.layers[0].weights.shape == (5, 4, 3, 7)
    assert (trace.layers[0].weights.dense() - right).abs().max() < 1e-12
    assert trace.verify()
    with torch.no_grad(), regard.edit(model) as edit:
        edit.zero(key=2)
        changed = model(x)
    v = model.v(x).unflatten(-1, (4, 8)).transpose(1, 2)
    right[..., 2] = 0
    assert (changed - right @ v).abs().max() < 1e-12


@pytest.mark.parametrize("watched", [False, True])
def test_two_continuations_of_one_prefix(watched: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2,
    )  # fmt: skip
    model: Any = transformers.LlamaForCausalLM(config).double().eval()
    prefix, *texts = (torch.randint(1, 60, (3, n)) for n in (6, 4, 5))
    cache = transformers.DynamicCache()
    with torch.no_grad():
        if not watched:
            model(prefix, past_key_values=cache)
        with regard.watch(model) as trace:
            if watched:
                model(prefix, past_key_values=cache)
            model(texts[0], past_key_values=cache)
            cache.crop(-4)
            model(texts[1], past_key_values=cache)
        model.set_attn_implementation("eager")
        wholes = [model(torch.cat([prefix, text], 1), output_attentions=True).attentions for text in texts]
    assert len(trace.runs) == 2
    trace.save(tmp_path / "a.trace")
    loaded = regard.load(tmp_path / "a.trace")
    for one in (trace, loaded):
        for number, (run, text, whole) in enumerate(zip(one.runs, texts, wholes, strict=True)):
            for layer, right in zip(run.layers, whole, strict=True):
                rows = text.shape[1] + (6 if watched and not number else 0)
                assert layer.weights.shape == (3, 4, rows, 6 + text.shape[1])
                assert (layer.weights.dense() - right[:, :, -rows:]).abs().max() < 1e-6  # eager rounds to float32
                assert layer.queries is not None
                assert layer.queries[1].ids[-text.shape[1] :] == tuple(text[1].tolist())
    assert trace.verify()
