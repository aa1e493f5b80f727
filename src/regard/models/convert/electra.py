"""ELECTRA of `transformers` as our `Bert`: embeddings of their own width, a generator or a discriminator on top."""

from dataclasses import replace
from typing import Any

from regard.models.bert_config import BertConfig
from regard.models.convert.bert import (
    ACTIVATIONS,
    FIXED,
    SUFFIXES,
    UNREAD,
    encoder_keys,
    encoder_rules,
    prepare_encoder,
    read_architecture,
    resolve_sizes,
    write_architecture,
)
from regard.models.convert.table import ConfigKey, ConversionTable, TensorRule, rename

DISCRIMINATOR = "ElectraForPreTraining"
HEADS = {f"Electra{end}": head for end, head in SUFFIXES.items()} | {DISCRIMINATOR: "discriminate"}


def flatten_electra(config: dict[str, Any]) -> dict[str, Any]:
    """Their generator bends by gelu whatever the config says, their discriminator as the blocks do."""
    config = read_architecture()(config) | {"pooler": False}
    ours = config.get("architecture") == DISCRIMINATOR
    return {"embedding_size": 128, "head_act": config.get("hidden_act", "gelu") if ours else "gelu"} | config


def resolve_electra(config: BertConfig) -> BertConfig:
    """The config with the sizes of its feed-forward networks and of its embeddings as numbers."""
    return replace(resolve_sizes(config), embed_width=config.embed_width or config.width)


def nest_electra(config: dict[str, Any]) -> dict[str, Any]:
    """The way back."""
    del config["head_act"]
    return write_architecture(config)


def list_copies(config: BertConfig) -> dict[str, str]:
    """The second name of the embeddings."""
    tied = config.head == "masked_words" and config.tied
    return {"generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"} if tied else {}


ELECTRA = ConversionTable(
    family="electra",
    config=BertConfig,
    flatten=flatten_electra,
    resolve=resolve_electra,
    nest=nest_electra,
    prepare=prepare_encoder("electra", "generator_lm_head.bias", "generator_lm_head"),
    keys=(
        *encoder_keys(HEADS, pad=0),
        ConfigKey("embedding_size", "embed_width"),
        ConfigKey("head_act", "head_activation", "gelu", ACTIVATIONS),
    ),
    always={"after_pad": False, "head_dense": True, "pool_activation": "gelu"},
    fixed=FIXED,
    ignored=UNREAD | {f"summary_{end}" for end in ("activation", "last_dropout", "type", "use_proj")},
    rules=(
        *encoder_rules("electra"),
        *rename("project", "electra.embeddings_project"),
        *rename("words.dense", "generator_predictions.dense"),
        *rename("words.norm", "generator_predictions.LayerNorm"),
        TensorRule(("words.bias",), ("generator_lm_head.bias",)),
        TensorRule(("words.out.weight",), ("generator_lm_head.weight",)),
        *rename("discriminator.dense", "discriminator_predictions.dense"),
        *rename("discriminator.out", "discriminator_predictions.dense_prediction"),
        *rename("classifier.dense", "classifier.dense"),
        *rename("classifier.out", "classifier.out_proj"),
        *rename("classifier", "classifier"),
        *rename("span", "qa_outputs"),
    ),
    prefix="electra.",
    headless=lambda config: config.head == "none",
    copies=list_copies,
    leftovers=("electra.embeddings.position_ids", "electra.embeddings.token_type_ids"),
)
