"""BERT of `transformers` as our `Bert`: the body, and the head that `architectures` names.

What RoBERTa, ELECTRA and DistilBERT have in common with it stands here, too: keys, rules, and how heads are named.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from regard.models.bert_config import BertConfig
from regard.models.convert.configs import IGNORED
from regard.models.convert.table import ConfigKey, ConversionTable, Prepared, TensorRule, rename

ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}
SUFFIXES = {  # of the names of classes in that library → our heads
    "Model": "none",
    "ForMaskedLM": "masked_words",
    "ForSequenceClassification": "classify",
    "ForTokenClassification": "tags",
    "ForQuestionAnswering": "span",
}
OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}  # of norms, in files that once were TensorFlow's

FIXED = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "pruned_heads": {},
    "tie_encoder_decoder": False,
}
UNREAD = IGNORED | {
    "attention_probs_dropout_prob", "classifier_dropout", "gradient_checkpointing", "hidden_dropout_prob",
    "num_labels", "directionality",
    *(f"pooler_{end}" for end in ("fc_size", "num_attention_heads", "num_fc_layers", "size_per_head", "type")),
}  # fmt: skip


def encoder_keys(heads: Mapping[str, str], *, pad: int) -> tuple[ConfigKey, ...]:
    """The keys that the three families share; `heads` are the classes of one by our names of their heads."""
    first = next(iter(heads))
    return (
        ConfigKey("vocab_size", "vocab_size"),
        ConfigKey("hidden_size", "width"),
        ConfigKey("num_attention_heads", "heads"),
        ConfigKey("num_hidden_layers", "layers"),
        ConfigKey("intermediate_size", "hidden"),
        ConfigKey("max_position_embeddings", "context", default=512),
        ConfigKey("type_vocab_size", "token_types", default=2),
        ConfigKey("hidden_act", "activation", "gelu", ACTIVATIONS),
        ConfigKey("layer_norm_eps", "norm_eps", default=1e-12),
        ConfigKey("pad_token_id", "pad", default=pad),
        ConfigKey("tie_word_embeddings", "tied", default=True),
        ConfigKey("architecture", "head", first, heads),
        ConfigKey("labels", "labels", default=2),
        ConfigKey("pooler", "pooler", default=False),
    )


def read_architecture(*pooled: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A `flatten` that makes plain keys of `architectures` and `id2label`; `pooled` are the classes with a pooler."""

    def flatten(config: dict[str, Any]) -> dict[str, Any]:
        names = config.pop("architectures", None)
        if names:
            config["architecture"] = names[0] if isinstance(names, list) else names
        classes = config.get("id2label")
        config.setdefault("labels", len(classes) if isinstance(classes, Mapping) else config.get("num_labels", 2))
        return {"pooler": config.get("architecture") in (*pooled, None)} | config

    return flatten


def write_architecture(config: dict[str, Any]) -> dict[str, Any]:
    """The way back: the class as a list, and as many labels as its head has."""
    labels = config.pop("labels")
    labels = labels if config["architecture"].endswith("Classification") else 2
    names = {number: f"LABEL_{number}" for number in range(labels)}
    del config["pooler"]
    return config | {
        "architectures": [config.pop("architecture")],
        "id2label": names,
        "label2id": {name: number for number, name in names.items()},
    }


def resolve_sizes(config: BertConfig) -> BertConfig:
    """The config with the size of its feed-forward networks as a number."""
    return replace(config, hidden=config.block.hidden)


def encoder_rules(body: str) -> Iterator[TensorRule]:
    """The tensors of embeddings and blocks, whose names begin with that of the body."""
    ours, theirs = "blocks.{layer}", f"{body}.encoder.layer.{{layer}}"
    tables = {"embed": "word_embeddings", "types": "token_type_embeddings", "added": "position_embeddings"}
    for mine, other in tables.items():
        yield TensorRule((f"{mine}.weight",), (f"{body}.embeddings.{other}.weight",))
    yield from rename("embed_norm", f"{body}.embeddings.LayerNorm")
    for mine, other in {"q": "self.query", "k": "self.key", "v": "self.value", "out": "output.dense"}.items():
        yield from rename(f"{ours}.attention.to_{mine}", f"{theirs}.attention.{other}")
    yield from rename(f"{ours}.around_attention.norm", f"{theirs}.attention.output.LayerNorm")
    yield from rename(f"{ours}.feed_forward.to_hidden", f"{theirs}.intermediate.dense")
    yield from rename(f"{ours}.feed_forward.to_out", f"{theirs}.output.dense")
    yield from rename(f"{ours}.around_feed_forward.norm", f"{theirs}.output.LayerNorm")
    yield from rename("pooler", f"{body}.pooler.dense")


def prepare_encoder(body: str, bias: str, decoder: str) -> Callable[[dict[str, Any], Mapping[str, Tensor]], Prepared]:
    """A `prepare` for the families that look like BERT.

    The tensors say whether there is a pooler, which no config does. Norms of old files get their new names. A head
    that is not tied reads the bias of its decoder alone; the other one, which nobody reads, is left out.
    """

    def prepare(config: dict[str, Any], state: Mapping[str, Tensor]) -> Prepared:
        named = {}
        for name, tensor in state.items():
            old = next((end for end in OLD_NAMES if name.endswith(f"LayerNorm{end}")), None)
            named[name if old is None else name.removesuffix(old) + OLD_NAMES[old]] = tensor
        if config.get("tie_word_embeddings") is False and f"{decoder}.bias" in named:
            named[bias] = named[f"{decoder}.bias"]
        pooler = any(name in named for name in (f"{body}.pooler.dense.weight", "pooler.dense.weight"))
        return config | {"pooler": pooler}, named

    return prepare


def prepare_bert(config: dict[str, Any], state: Mapping[str, Tensor]) -> Prepared:
    """A file with both heads of pre-training is a model with both, whichever of them its config names."""
    config, state = prepare_encoder("bert", "cls.predictions.bias", "cls.predictions.decoder")(config, state)
    names = config.get("architectures") or [None]
    if names[0] in ("BertForMaskedLM", "BertForNextSentencePrediction") and state.keys() >= {
        "cls.predictions.bias",
        "cls.seq_relationship.weight",
    }:
        config["architectures"] = ["BertForPreTraining"]
    return config, state


def list_copies(config: BertConfig) -> dict[str, str]:
    """The second names of what the masked words are told by."""
    if config.head not in ("masked_words", "pretrain"):
        return {}
    tied = {"cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight"} if config.tied else {}
    return {"cls.predictions.decoder.bias": "cls.predictions.bias"} | tied


BERT = ConversionTable(
    family="bert",
    config=BertConfig,
    flatten=read_architecture(
        "BertModel", "BertForPreTraining", "BertForNextSentencePrediction", "BertForSequenceClassification"
    ),
    resolve=resolve_sizes,
    nest=write_architecture,
    prepare=prepare_bert,
    keys=(
        *encoder_keys(
            {f"Bert{end}": head for end, head in SUFFIXES.items()}
            | {"BertForPreTraining": "pretrain", "BertForNextSentencePrediction": "next_sentence"},
            pad=0,
        ),
        ConfigKey("hidden_act", "head_activation", "gelu", ACTIVATIONS),
    ),
    always={"embed_width": None, "after_pad": False, "head_dense": False, "pool_activation": "tanh"},
    fixed=FIXED,
    ignored=UNREAD,
    rules=(
        *encoder_rules("bert"),
        *rename("words.dense", "cls.predictions.transform.dense"),
        *rename("words.norm", "cls.predictions.transform.LayerNorm"),
        TensorRule(("words.bias",), ("cls.predictions.bias",)),
        TensorRule(("words.out.weight",), ("cls.predictions.decoder.weight",)),
        *rename("order", "cls.seq_relationship"),
        *rename("classifier", "classifier"),
        *rename("span", "qa_outputs"),
    ),
    prefix="bert.",
    headless=lambda config: config.head == "none",
    copies=list_copies,
    leftovers=("bert.embeddings.position_ids", "bert.embeddings.token_type_ids"),
)
