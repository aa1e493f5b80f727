"""Small models of transformers with random weights, and the same as the keys and tensors of a GGUF file."""

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from tests.models.convert.common import shaken

SIZES = {"vocab_size": 23, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 6}
SIZES |= {"num_key_value_heads": 2, "intermediate_size": 40, "max_position_embeddings": 64, "rms_norm_eps": 3e-5}
KEYS = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
}
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "model.layers": "blk",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "transformer.wte": "token_embd",
    "transformer.wpe": "position_embd",
    "transformer.ln_f": "output_norm",
    "transformer.h": "blk",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
    "ln_1": "attn_norm",
    "ln_2": "ffn_norm",
}


def make(family: str, **fields: Any) -> nn.Module:
    """A model of `transformers` in eval mode: "Llama", "Mistral", "Qwen2", "Qwen3" or "GPT2"."""
    import transformers

    torch.manual_seed(0)
    if family == "GPT2":
        sizes = {"vocab_size": 23, "n_embd": 24, "n_head": 6, "n_layer": 3, "n_positions": 64}
        return shaken(transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **fields)))
    config = getattr(transformers, f"{family}Config")(**{**SIZES, **fields})
    return shaken(getattr(transformers, f"{family}ForCausalLM")(config))


def to_gguf(model: Any) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """Architecture, metadata and tensors as llama.cpp would write them."""
    config = model.config
    kind = {"mistral": "llama"}.get(config.model_type, config.model_type)
    tied, state = config.tie_word_embeddings, model.state_dict()
    tensors = {gguf_name(name): tensor for name, tensor in state.items() if not (tied and name == "lm_head.weight")}
    if kind == "gpt2":
        keys = {"embedding_length": config.n_embd, "block_count": config.n_layer, "context_length": config.n_positions}
        keys |= {"feed_forward_length": 4 * config.n_embd, "attention.head_count": config.n_head}
        keys |= {"attention.layer_norm_epsilon": config.layer_norm_epsilon}
        turned = ("attn_qkv.weight", "attn_output.weight", "ffn_up.weight", "ffn_down.weight")  # Conv1D: (in, out)
        tensors = {name: one.T if name.endswith(turned) else one for name, one in tensors.items()}
    else:
        keys = {key: getattr(config, name) for key, name in KEYS.items()}
        keys |= {"rope.freq_base": float(config.rope_parameters["rope_theta"])}
    if kind == "llama":
        tensors = {name: permute(name, tensor, config) for name, tensor in tensors.items()}
        keys["rope.dimension_count"] = config.head_dim
    arrays = {name: tensor.contiguous().numpy() for name, tensor in tensors.items()}
    return kind, {f"{kind}.{key}": value for key, value in keys.items()}, arrays


def gguf_name(name: str) -> str:
    for theirs, ours in NAMES.items():
        name = name.replace(f"{theirs}.", f"{ours}.")
    return name


def permute(name: str, tensor: torch.Tensor, config: Any) -> torch.Tensor:
    """Rows of q and k in the order in which llama.cpp turns them."""
    if "attn_q." not in name and "attn_k." not in name:
        return tensor
    heads = config.num_attention_heads if "attn_q." in name else config.num_key_value_heads
    return tensor.reshape(heads, 2, -1, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape)


def llama3_factors(width: int, base: float, factor: float) -> np.ndarray:
    """What llama.cpp stores as `rope_freqs.weight` of a Llama 3, frequency by frequency."""
    result = []
    for index in range(0, width, 2):
        wavelength = 2 * math.pi * base ** (index / width)
        smooth = (8192 / wavelength - 1) / (4 - 1)
        within = 1 / ((1 - smooth) / factor + smooth)
        result.append(1 if wavelength < 8192 / 4 else factor if wavelength > 8192 / 1 else within)
    return np.array(result, np.float32)
