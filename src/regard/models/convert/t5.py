"""T5 of `transformers` (`T5ForConditionalGeneration`) as our `T5`: versions 1.0 and 1.1, and those trained further."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.models.convert.configs import IGNORED
from regard.models.convert.table import ConfigKey, ConversionTable, Prepared, TensorRule, rename
from regard.models.t5 import T5Config

PROJECTIONS = {
    "relu": "relu", "gated-gelu": "geglu_tanh", "gated-silu": "swiglu", "gelu": "gelu", "gelu_new": "gelu_tanh",
}  # fmt: skip
HEAD, EMBED = "lm_head.weight", "shared.weight"


def prepare_t5(config: dict[str, Any], state: Mapping[str, Tensor]) -> Prepared:
    """Whether the head is the embeddings is what the tensors say; the config says by the same key whether it scales."""
    config = split_tying(config)
    if HEAD in state and EMBED in state:
        same = state[HEAD].shape == state[EMBED].shape and torch.equal(state[HEAD], state[EMBED])
        config["tie_word_embeddings"] = same
    return config, state


def split_tying(config: dict[str, Any]) -> dict[str, Any]:
    """The config with `scale_decoder_outputs`, which older ones say by `tie_word_embeddings`."""
    layers = {"num_decoder_layers": config["num_layers"]} if "num_layers" in config else {}
    scaled = {"scale_decoder_outputs": config.get("tie_word_embeddings", True)}
    given = {name: value for name, value in config.items() if (name, value) != ("num_decoder_layers", None)}
    return layers | scaled | given


def resolve_sizes(config: T5Config) -> T5Config:
    """The config with every size as a number."""
    layers = config.layers if config.decoder_layers is None else config.decoder_layers
    head_width = config.width // config.heads if config.head_width is None else config.head_width
    return replace(config, decoder_layers=layers, hidden=config.block.hidden, head_width=head_width)


def rename_stack(side: str, attentions: dict[str, str]) -> Iterator[TensorRule]:
    """Rules for one stack; `attentions` are the names of ours and theirs, in the order of their layers."""
    ours, theirs = f"{side}.blocks.{{layer}}", f"{side}.block.{{layer}}.layer"
    for number, (mine, other) in enumerate(attentions.items()):
        for end, letter in (("q", "q"), ("k", "k"), ("v", "v"), ("out", "o")):
            yield from rename(f"{ours}.{mine}.to_{end}", f"{theirs}.{number}.{other}.{letter}")
        yield from rename(f"{ours}.around_{mine}.norm", f"{theirs}.{number}.layer_norm")
    last = f"{theirs}.{len(attentions)}"
    yield from rename(f"{ours}.around_feed_forward.norm", f"{last}.layer_norm")
    yield from rename(f"{ours}.feed_forward.to_out", f"{last}.DenseReluDense.wo")
    gate, hidden = (f"{ours}.feed_forward.{name}.weight" for name in ("to_gate", "to_hidden"))
    yield TensorRule((gate, hidden), tuple(f"{last}.DenseReluDense.wi_{i}.weight" for i in (0, 1)))
    yield TensorRule((hidden,), (f"{last}.DenseReluDense.wi.weight",), unless=gate)
    yield from rename(f"{side}.norm", f"{side}.final_layer_norm")
    bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    yield TensorRule((f"{side}_bias.embedding.weight",), (bias,))


def list_copies(config: T5Config) -> dict[str, str]:
    """The names under which the embeddings stand once more."""
    tied = {HEAD: EMBED} if config.tied else {}
    return {f"{side}.embed_tokens.weight": EMBED for side in ("encoder", "decoder")} | tied


T5 = ConversionTable(
    family="t5",
    config=T5Config,
    flatten=split_tying,
    resolve=resolve_sizes,
    prepare=prepare_t5,
    keys=(
        ConfigKey("vocab_size", "vocab_size"),
        ConfigKey("d_model", "width"),
        ConfigKey("num_heads", "heads"),
        ConfigKey("num_layers", "layers"),
        ConfigKey("num_decoder_layers", "decoder_layers"),
        ConfigKey("d_ff", "hidden"),
        ConfigKey("d_kv", "head_width"),
        ConfigKey("relative_attention_num_buckets", "buckets", default=32),
        ConfigKey("relative_attention_max_distance", "furthest", default=128),
        ConfigKey("feed_forward_proj", "activation", "relu", PROJECTIONS),
        ConfigKey("layer_norm_epsilon", "norm_eps", default=1e-6),
        ConfigKey("tie_word_embeddings", "tied", default=True),
        ConfigKey("scale_decoder_outputs", "scaled", default=True),
        ConfigKey("pad_token_id", "pad", default=0),
        ConfigKey("decoder_start_token_id", "begin", default=0),
        ConfigKey("eos_token_id", "end", default=1),
    ),
    fixed={"is_decoder": False, "is_encoder_decoder": True, "pruned_heads": {}, "tie_encoder_decoder": False},
    ignored=IGNORED
    | {"classifier_dropout", "dense_act_fn", "dropout_rate", "gradient_checkpointing", "initializer_factor"}
    | {"is_gated_act", "n_positions", "output_past", "num_labels"},
    rules=(
        TensorRule(("source_embed.weight",), (EMBED,)),
        *rename_stack("encoder", {"attention": "SelfAttention"}),
        *rename_stack("decoder", {"self_attention": "SelfAttention", "cross_attention": "EncDecAttention"}),
        TensorRule(("head.weight",), (HEAD,)),
    ),
    copies=list_copies,
    architecture=lambda config: "T5ForConditionalGeneration",
    # T5 of Google kept biases of distances in its attention to the source, which nothing reads.
    leftovers=("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",),
)
