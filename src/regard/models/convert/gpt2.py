"""GPT-2 of `transformers` (`GPT2LMHeadModel`) as our `Gpt2`."""

from regard.models.convert.configs import IGNORED
from regard.models.convert.operations import split, transpose
from regard.models.convert.table import ConfigKey, ConversionTable, TensorRule, rename
from regard.models.gpt2 import Gpt2Config

OURS, THEIRS = "blocks.{layer}", "transformer.h.{layer}"
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu"}
PACKED = tuple(f"{OURS}.attention.to_{letter}" for letter in "qkv")

GPT2 = ConversionTable(
    family="gpt2",
    config=Gpt2Config,
    architecture=lambda config: "GPT2LMHeadModel",
    keys=(
        ConfigKey("vocab_size", "vocab_size"),
        ConfigKey("n_embd", "width"),
        ConfigKey("n_head", "heads"),
        ConfigKey("n_layer", "layers"),
        ConfigKey("n_positions", "context"),
        ConfigKey("n_inner", "hidden", default=None),
        ConfigKey("activation_function", "activation", "gelu_new", ACTIVATIONS),
        ConfigKey("layer_norm_epsilon", "norm_eps", default=1e-5),
        ConfigKey("tie_word_embeddings", "tied", default=True),
    ),
    fixed={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "reorder_and_upcast_attn": False,
        "add_cross_attention": False,
        "pruned_heads": {},
        "tie_encoder_decoder": False,
    },
    ignored=IGNORED
    | {"attn_pdrop", "embd_pdrop", "resid_pdrop", "n_ctx"}
    | {f"summary_{end}" for end in ("activation", "first_dropout", "proj_to_labels", "type", "use_proj")},
    rules=(
        TensorRule(("embed.weight",), ("transformer.wte.weight",)),
        TensorRule(("added.weight",), ("transformer.wpe.weight",)),
        *rename(f"{OURS}.around_attention.norm", f"{THEIRS}.ln_1"),
        TensorRule(
            tuple(f"{name}.weight" for name in PACKED), (f"{THEIRS}.attn.c_attn.weight",), (transpose(), split(3))
        ),
        TensorRule(tuple(f"{name}.bias" for name in PACKED), (f"{THEIRS}.attn.c_attn.bias",), (split(3),)),
        *rename(f"{OURS}.attention.to_out", f"{THEIRS}.attn.c_proj", transpose()),
        *rename(f"{OURS}.around_feed_forward.norm", f"{THEIRS}.ln_2"),
        *rename(f"{OURS}.feed_forward.to_hidden", f"{THEIRS}.mlp.c_fc", transpose()),
        *rename(f"{OURS}.feed_forward.to_out", f"{THEIRS}.mlp.c_proj", transpose()),
        *rename("norm", "transformer.ln_f"),
        TensorRule(("head.weight",), ("lm_head.weight",)),
    ),
    prefix="transformer.",
    copies=lambda config: {"lm_head.weight": "transformer.wte.weight"} if config.tied else {},
    leftovers=(f"{THEIRS}.attn.bias", f"{THEIRS}.attn.masked_bias"),  # the causal mask
)
