"""Small decoder-only models of every family and field, far from where weights start; all sizes differ."""

import torch
from torch import nn

from regard.models import Gpt2Config, GPTConfig, LlamaConfig

V, M, H, LAYERS, T, HIDDEN = 29, 24, 6, 3, 40, 20
SIZES = {"vocab_size": V, "width": M, "heads": H, "layers": LAYERS, "context": T, "hidden": HIDDEN}
STRETCH = {"rope_factor": 4.0, "rope_original_context": 11, "rope_low_frequency": 0.2, "rope_high_frequency": 1.5}

CONFIGS = {
    **{
        f"gpt {positions}": GPTConfig(**SIZES, positions=positions)
        for positions in ("learned", "sinusoid", "rotary", "alibi", "none")
    },
    "gpt attention alone": GPTConfig(**{**SIZES, "hidden": 0}, positions="rotary"),
    "gpt rms": GPTConfig(**SIZES, positions="alibi", norm="rms", kv_heads=2, bias=False, activation="swiglu"),
    "gpt2": Gpt2Config(**SIZES),
    "gpt2 untied": Gpt2Config(**SIZES, tied=False, activation="relu", norm_eps=0.1),
    "llama": LlamaConfig(**SIZES, kv_heads=2),
    "llama scaled": LlamaConfig(**SIZES, kv_heads=3, rope_scaling="llama3", **STRETCH, tied=True),
    "llama biases": LlamaConfig(**SIZES, kv_heads=1, qkv_bias=True, out_bias=True, mlp_bias=True, norm_eps=0.1),
    "mistral": LlamaConfig(**SIZES, kv_heads=2, window=5, head_width=10),
    "qwen2": LlamaConfig(**SIZES, kv_heads=2, qkv_bias=True, window=4, window_from=1, rope_base=500.0),
    "qwen3": LlamaConfig(**SIZES, kv_heads=3, qk_norm=True, head_width=6, norm_eps=1e-3, tied=True),
}


def shaken(model: nn.Module, seed: int = 3) -> nn.Module:
    """Weights far from where they start, so that nothing hides behind a zero or a one; float64, in eval mode."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3, generator=generator)
    return model.double().eval()


def draw_ids(rows: int, length: int, seed: int = 5) -> torch.Tensor:
    return torch.randint(V, (rows, length), generator=torch.Generator().manual_seed(seed))
