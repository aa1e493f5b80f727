"""The architectures of GGUF files that are models of ours: their keys and tensors as tables of `convert`."""

from collections.abc import Iterator

from regard.errors import ModelError
from regard.models.convert.operations import split
from regard.models.convert.table import ConfigKey, ConversionTable, TensorRule, rename
from regard.models.gpt2 import Gpt2Config
from regard.models.llama import LlamaConfig

OURS, THEIRS = "blocks.{layer}", "blk.{layer}"
PACKED = tuple(f"{OURS}.attention.to_{letter}" for letter in "qkv")

# Of a file itself, or of how it was made; `head_width`, `tied` and the like follow from tensors (`config.py`).
IGNORED = frozenset({"tensor_data_layout", "rope.scaling.finetuned"})
SCALINGS = {name: name for name in ("none", "linear", "llama3")}
SIZES = (
    ConfigKey("vocab_size", "vocab_size"),
    ConfigKey("embedding_length", "width"),
    ConfigKey("attention.head_count", "heads"),
    ConfigKey("block_count", "layers"),
    ConfigKey("context_length", "context"),
    ConfigKey("feed_forward_length", "hidden"),
    ConfigKey("tied", "tied"),
)
ENDS = (
    TensorRule(("embed.weight",), ("token_embd.weight",)),
    *rename("norm", "output_norm"),
    TensorRule(("head.weight",), ("output.weight",)),
)
NORMS = (*rename(f"{OURS}.around_attention.norm", f"{THEIRS}.attn_norm"),
         *rename(f"{OURS}.around_feed_forward.norm", f"{THEIRS}.ffn_norm"))  # fmt: skip


def rename_llama() -> Iterator[TensorRule]:
    """Rules for the blocks of Llama and those that are built like it."""
    yield from NORMS
    for ours, theirs in {"to_q": "q", "to_k": "k", "to_v": "v", "to_out": "output"}.items():
        yield from rename(f"{OURS}.attention.{ours}", f"{THEIRS}.attn_{theirs}")
    for norm in ("q_norm", "k_norm"):
        yield from rename(f"{OURS}.attention.{norm}", f"{THEIRS}.attn_{norm}")
    for ours, theirs in {"to_gate": "gate", "to_hidden": "up", "to_out": "down"}.items():
        yield from rename(f"{OURS}.feed_forward.{ours}", f"{THEIRS}.ffn_{theirs}")


def describe_llama(architecture: str, *derived: str, **always: bool) -> ConversionTable:
    """The table of an architecture that is built like Llama; `derived` fields follow from its tensors."""
    return ConversionTable(
        family=architecture,
        config=LlamaConfig,
        keys=(
            *SIZES,
            ConfigKey("attention.head_count_kv", "kv_heads", default=None),
            ConfigKey("attention.layer_norm_rms_epsilon", "norm_eps"),
            ConfigKey("attention.key_length", "head_width", default=None),
            ConfigKey("rope.freq_base", "rope_base", default=10000.0),
            ConfigKey("rope.scaling.type", "rope_scaling", "none", SCALINGS),
            ConfigKey("rope.scaling.factor", "rope_factor", default=1.0),
            ConfigKey("rope.scaling.original_context_length", "rope_original_context", default=8192),
            *(ConfigKey(name, name) for name in derived),
        ),
        always=always,
        fixed={"attention.causal": True, "use_parallel_residual": False, "expert_count": 0, "expert_used_count": 0},
        ignored=IGNORED,
        rules=(*ENDS, *rename_llama()),
    )  # fmt: skip


TABLES: dict[str, ConversionTable] = {
    "llama": describe_llama("llama", "qkv_bias", "out_bias", "mlp_bias", "window"),
    "qwen2": describe_llama("qwen2", qkv_bias=True),
    "qwen3": describe_llama("qwen3", qk_norm=True),
    "gpt2": ConversionTable(
        family="gpt2",
        config=Gpt2Config,
        keys=(*SIZES, ConfigKey("attention.layer_norm_epsilon", "norm_eps")),
        fixed={"attention.causal": True},
        ignored=IGNORED,
        rules=(
            *ENDS,
            TensorRule(("added.weight",), ("position_embd.weight",)),
            *NORMS,
            *(
                TensorRule(tuple(f"{name}.{end}" for name in PACKED), (f"{THEIRS}.attn_qkv.{end}",), (split(3),))
                for end in ("weight", "bias")
            ),
            *rename(f"{OURS}.attention.to_out", f"{THEIRS}.attn_output"),
            *rename(f"{OURS}.feed_forward.to_hidden", f"{THEIRS}.ffn_up"),
            *rename(f"{OURS}.feed_forward.to_out", f"{THEIRS}.ffn_down"),
        ),
    ),
}


def table_of(architecture: str, name: str) -> ConversionTable:
    """The table of an architecture; `name` is that of the file.

    >>> table_of("qwen2", "a.gguf").always
    {'qkv_bias': True}
    """
    if architecture not in TABLES:
        raise ModelError(
            f"{name} holds a model of the architecture {architecture!r}, which is not read here; "
            f"there are: {', '.join(TABLES)}"
        )
    return TABLES[architecture]
