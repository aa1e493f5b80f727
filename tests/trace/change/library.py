"""Small models of the `transformers` library to edit, and what is asked of them again and again."""

import logging
from typing import Any

import pytest
import torch
from torch import Tensor

transformers = pytest.importorskip("transformers")
logging.getLogger("transformers").setLevel(logging.ERROR)

HEADS, LAYERS, LENGTH = 4, 2, 7
SMALL = {
    "GPT2LMHeadModel": transformers.GPT2Config(vocab_size=31, n_positions=16, n_embd=24, n_layer=LAYERS, n_head=HEADS),
    "LlamaForCausalLM": transformers.LlamaConfig(
        vocab_size=31,
        hidden_size=24,
        intermediate_size=20,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=2,
        max_position_embeddings=32,
    ),
    "BertModel": transformers.BertConfig(
        vocab_size=31,
        hidden_size=24,
        intermediate_size=20,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=16,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    ),
}
PATHS = {"GPT2LMHeadModel": "h.1", "LlamaForCausalLM": "layers.1", "BertModel": "encoder.layer.1"}
BOTH = pytest.mark.parametrize("how", ["sdpa", "eager"])
EACH = pytest.mark.parametrize("name", SMALL)


def built(name: str, how: str = "sdpa", config: Any = None, **more: Any) -> Any:
    torch.manual_seed(5)
    config = SMALL[name] if config is None else config
    config._attn_implementation = how
    model = getattr(transformers, name)(config, **more)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape) * 0.3)
    return model.double().eval()


def ids(batch: int = 2, length: int = LENGTH) -> Tensor:
    return torch.randint(1, 31, (batch, length), generator=torch.Generator().manual_seed(2))


def first(output: Any) -> Tensor:
    return output.logits if hasattr(output, "logits") else output[0]


def silence(model: Any, name: str, layer: int, head: int) -> None:
    """Zero what the output projection of a layer takes from one head."""
    width = 24 // HEADS
    columns = slice(head * width, (head + 1) * width)
    with torch.no_grad():
        if name.startswith("GPT2"):
            model.transformer.h[layer].attn.c_proj.weight[columns] = 0
        elif name.startswith("Llama"):
            model.model.layers[layer].self_attn.o_proj.weight[:, columns] = 0
        else:
            model.encoder.layer[layer].attention.output.dense.weight[:, columns] = 0
