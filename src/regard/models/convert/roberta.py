"""RoBERTa of `transformers` as our `Bert`: positions count from the padding id on, heads have names of their own."""

from regard.models.bert_config import BertConfig
from regard.models.convert.bert import (
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
from regard.models.convert.table import ConversionTable, TensorRule, rename


def list_copies(config: BertConfig) -> dict[str, str]:
    """The second names of what the masked words are told by."""
    if config.head != "masked_words":
        return {}
    tied = {"lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight"} if config.tied else {}
    return {"lm_head.decoder.bias": "lm_head.bias"} | tied


ROBERTA = ConversionTable(
    family="roberta",
    config=BertConfig,
    flatten=read_architecture("RobertaModel"),
    resolve=resolve_sizes,
    nest=write_architecture,
    prepare=prepare_encoder("roberta", "lm_head.bias", "lm_head.decoder"),
    keys=encoder_keys({f"Roberta{end}": head for end, head in SUFFIXES.items()}, pad=1),
    always={
        "embed_width": None, "after_pad": True, "head_dense": True, "pool_activation": "tanh",
        "head_activation": "gelu",
    },
    fixed=FIXED,
    ignored=UNREAD,
    rules=(
        *encoder_rules("roberta"),
        *rename("words.dense", "lm_head.dense"),
        *rename("words.norm", "lm_head.layer_norm"),
        TensorRule(("words.bias",), ("lm_head.bias",)),
        TensorRule(("words.out.weight",), ("lm_head.decoder.weight",)),
        *rename("classifier.dense", "classifier.dense"),
        *rename("classifier.out", "classifier.out_proj"),
        *rename("classifier", "classifier"),
        *rename("span", "qa_outputs"),
    ),
    prefix="roberta.",
    headless=lambda config: config.head == "none",
    copies=list_copies,
    leftovers=("roberta.embeddings.position_ids", "roberta.embeddings.token_type_ids"),
)  # fmt: skip
