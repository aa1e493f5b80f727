"""Configurations of x-transformers: what its attention can do, one thing at a time."""

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from tests.trace.survey.inputs import BATCH, SOURCE, TARGET, Inputs, ids, noise
from tests.trace.survey.library import Attempt, Library
from tests.trace.survey.sizes import WORDS

Case = Callable[[], tuple[nn.Module, Inputs]]
SIZES: dict[str, Any] = {"dim": 64, "depth": 2, "heads": 4, "attn_dim_head": 16}


def text(decoder: bool, wrapped: dict[str, Any] | None = None, **how: Any) -> tuple[nn.Module, Inputs]:
    import x_transformers

    layers = (x_transformers.Decoder if decoder else x_transformers.Encoder)(**SIZES, **how)
    words = {"num_tokens": WORDS, "max_seq_len": 32, **(wrapped or {})}
    model = x_transformers.TransformerWrapper(attn_layers=layers, **words)
    inputs: Inputs = {"x": ids(BATCH, SOURCE, seed=1)}
    if how.get("cross_attend"):
        inputs |= {"context": noise(BATCH, 9, SIZES["dim"])}
    return model, inputs


def pair() -> tuple[nn.Module, Inputs]:
    import x_transformers

    sizes = {"num_tokens": WORDS, "depth": 2, "heads": 4, "max_seq_len": 32, "attn_dim_head": 16}
    both = {f"{side}_{name}": value for side in ("enc", "dec") for name, value in sizes.items()}
    model = x_transformers.XTransformer(dim=SIZES["dim"], **both)
    return model, {"src": ids(BATCH, SOURCE, seed=1), "tgt": ids(BATCH, TARGET, seed=2)}


def picture() -> tuple[nn.Module, Inputs]:
    import x_transformers

    layers = x_transformers.Encoder(**SIZES)
    model = x_transformers.ViTransformerWrapper(
        image_size=64, patch_size=16, num_classes=7, num_register_tokens=2, attn_layers=layers
    )
    return model, {"img": noise(BATCH, 3, 64, 64)}


def numbers(**how: Any) -> tuple[nn.Module, Inputs]:
    import x_transformers

    layers = x_transformers.Encoder(**SIZES, **how)
    model = x_transformers.ContinuousTransformerWrapper(dim_in=5, dim_out=5, max_seq_len=32, attn_layers=layers)
    return model, {"x": noise(BATCH, SOURCE, 5)}


DECODERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "flash": {"attn_flash": True},
    "grouped keys": {"attn_kv_heads": 2},
    "one key head": {"attn_one_kv_head": True},
    "rotary": {"rotary_pos_emb": True},
    "rotary xpos": {"rotary_xpos": True},
    "polar": {"polar_pos_emb": True},
    "alibi": {"alibi_pos_bias": True},
    "alibi from data": {"attn_data_dependent_alibi": True},
    "relative position bias": {"rel_pos_bias": True},
    "dynamic position bias": {"dynamic_pos_bias": True},
    "contextual positions": {"attn_use_cope": True},
    "memory keys": {"attn_num_mem_kv": 3},
    "memory keys, flash": {"attn_num_mem_kv": 3, "attn_flash": True},
    "a zero key": {"attn_add_zero_kv": True},
    "a learned sink": {"attn_head_learned_sink": True},
    "normed q and k": {"attn_qk_norm": True},
    "normed q and k, scaled": {"attn_qk_norm": True, "attn_qk_norm_dim_scale": True},
    "capped logits": {"attn_softclamp_logits": True},
    "talking heads before": {"attn_pre_talking_heads": True},
    "talking heads after": {"attn_post_talking_heads": True},
    "scaled talking heads": {"attn_pre_scale_post_talking_heads": True},
    "best three": {"attn_sparse_topk": 3},
    "hard": {"attn_hard": True},
    "sigmoid": {"attn_sigmoid": True},
    "signed": {"attn_cog_signed": True},
    "selective": {"attn_selective": True},
    "distances": {"attn_l2_distance": True},
    "gated values": {"attn_gate_values": True},
    "exponential values": {"attn_laser": True},
    "latent keys": {"attn_use_latent_kv": True, "attn_dim_latent_kv": 24},
    "residual attention": {"residual_attn": True},
    "residual values": {"add_value_residual": True},
    "macaron": {"macaron": True},
    "shared layers": {"weight_tie_layers": True},
    "several streams": {"num_residual_streams": 3},
    "cross": {"cross_attend": True},
    "cross, flash": {"cross_attend": True, "attn_flash": True},
    "shifted tokens": {"shift_tokens": 1},
    "short sight": {"attn_max_attend_past": 4},
}
CASES: dict[str, Case] = {
    **{f"decoder: {name}": lambda how=how: text(True, **how) for name, how in DECODERS.items()},
    "encoder": lambda: text(False),
    "encoder, flash": lambda: text(False, attn_flash=True),
    "encoder: memory tokens": lambda: text(False, {"num_memory_tokens": 3}),
    "encoder: a class token": lambda: text(False, {"use_cls_token": True}),
    "encoder: attention pool": lambda: text(False, {"attn_pool": True}),
    "encoder: inverted attention": lambda: text(False, attn_inverted_attention=True),
    "encoder and decoder": pair,
    "pictures": picture,
    "numbers": numbers,
    "numbers, flash": lambda: numbers(attn_flash=True),
}


def attempts(name: str) -> Iterator[Attempt | str]:
    torch.manual_seed(0)
    try:
        model, inputs = CASES[name]()
    except Exception as error:
        yield f"{type(error).__name__}: {str(error)[:200]}"
        return
    yield Attempt(model.eval(), [inputs])


X_TRANSFORMERS = Library(
    "x-transformers", "x_transformers", lambda: importlib.import_module("x_transformers"), lambda: [*CASES], attempts
)
