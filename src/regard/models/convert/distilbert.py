"""DistilBERT of `transformers` as our `Bert`: half the layers, no segments, no pooler, and names of its own."""

from collections.abc import Iterator
from typing import Any

from regard.models.bert_config import BertConfig
from regard.models.convert.bert import (
    ACTIVATIONS,
    FIXED,
    SUFFIXES,
    UNREAD,
    read_architecture,
    resolve_sizes,
    write_architecture,
)
from regard.models.convert.table import ConfigKey, ConversionTable, TensorRule, rename

HEADS = {f"DistilBert{end}": head for end, head in SUFFIXES.items()}


def flatten_distilbert(config: dict[str, Any]) -> dict[str, Any]:
    """No DistilBERT has a pooler."""
    return read_architecture()(config) | {"pooler": False}


def body_rules() -> Iterator[TensorRule]:
    """The tensors of embeddings and blocks."""
    ours, theirs = "blocks.{layer}", "distilbert.transformer.layer.{layer}"
    for mine, other in {"embed": "word_embeddings", "added": "position_embeddings"}.items():
        yield TensorRule((f"{mine}.weight",), (f"distilbert.embeddings.{other}.weight",))
    yield from rename("embed_norm", "distilbert.embeddings.LayerNorm")
    for letter in ("q", "k", "v", "out"):
        yield from rename(f"{ours}.attention.to_{letter}", f"{theirs}.attention.{letter}_lin")
    yield from rename(f"{ours}.around_attention.norm", f"{theirs}.sa_layer_norm")
    yield from rename(f"{ours}.feed_forward.to_hidden", f"{theirs}.ffn.lin1")
    yield from rename(f"{ours}.feed_forward.to_out", f"{theirs}.ffn.lin2")
    yield from rename(f"{ours}.around_feed_forward.norm", f"{theirs}.output_layer_norm")


def list_copies(config: BertConfig) -> dict[str, str]:
    """The second name of the embeddings."""
    tied = config.head == "masked_words" and config.tied
    return {"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"} if tied else {}


DISTILBERT = ConversionTable(
    family="distilbert",
    config=BertConfig,
    flatten=flatten_distilbert,
    resolve=resolve_sizes,
    nest=write_architecture,
    keys=(
        ConfigKey("vocab_size", "vocab_size"),
        ConfigKey("dim", "width"),
        ConfigKey("n_heads", "heads"),
        ConfigKey("n_layers", "layers"),
        ConfigKey("hidden_dim", "hidden"),
        ConfigKey("max_position_embeddings", "context", default=512),
        ConfigKey("activation", "activation", "gelu", ACTIVATIONS),
        ConfigKey("activation", "head_activation", "gelu", ACTIVATIONS),
        ConfigKey("pad_token_id", "pad", default=0),
        ConfigKey("tie_word_embeddings", "tied", default=True),
        ConfigKey("architecture", "head", "DistilBertModel", HEADS),
        ConfigKey("labels", "labels", default=2),
        ConfigKey("pooler", "pooler", default=False),
    ),
    always={
        "embed_width": None, "after_pad": False, "head_dense": True, "pool_activation": "relu", "token_types": 0,
        "norm_eps": 1e-12, "pooler": False,
    },
    fixed={name: value for name, value in FIXED.items() if name in ("pruned_heads", "tie_encoder_decoder")},
    ignored=UNREAD | {"attention_dropout", "dropout", "qa_dropout", "seq_classif_dropout", "sinusoidal_pos_embds"}
    | {"tie_weights_"},
    rules=(
        *body_rules(),
        *rename("words.dense", "vocab_transform"),
        *rename("words.norm", "vocab_layer_norm"),
        TensorRule(("words.bias",), ("vocab_projector.bias",)),
        TensorRule(("words.out.weight",), ("vocab_projector.weight",)),
        *rename("classifier.dense", "pre_classifier"),
        *rename("classifier.out", "classifier"),
        *rename("classifier", "classifier"),
        *rename("span", "qa_outputs"),
    ),
    prefix="distilbert.",
    headless=lambda config: config.head == "none",
    copies=list_copies,
    leftovers=("distilbert.embeddings.position_ids",),
)  # fmt: skip
