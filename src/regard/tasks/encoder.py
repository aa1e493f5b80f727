"""Encoders that learn a task of texts: from first weights, or on from a model that has read much (fine-tuning)."""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from pydantic import Field
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from torch import Tensor

from regard.data.byte_level import LEAST, MASK_TOKEN, reserve_token, train_byte_level
from regard.data.pieces import train_words
from regard.data.special import BEGIN, END, SPECIAL
from regard.errors import ConfigError, ModelError
from regard.files import put
from regard.models import store
from regard.models.bert import Bert
from regard.models.bert_config import BertConfig
from regard.models.config import ModelConfig
from regard.models.kinds import kind_named
from regard.models.open.load_model import load_model
from regard.models.read_tokenizer import TOKENIZER, read_tokenizer
from regard.tasks.encoder_tokens import EncoderTokenizer
from regard.tasks.model_settings import Hyperparameter, fill_config, with_hyperparameters
from regard.training.settings import Settings

C = TypeVar("C", bound=ModelConfig)
TokenKind = Literal["bpe", "words"]
KEPT = {  # of the config of a model that is fine-tuned; what is not here is the task's own or a setting
    *("vocab_size", "width", "heads", "layers", "context", "hidden", "embed_width", "token_types", "activation"),
    *("norm_eps", "pad", "after_pad", "tied", "head_activation"),
}
BODY = ("embed", "types", "added", "embed_norm", "project", "blocks", "words")  # of a Bert; the rest are heads


@with_hyperparameters(
    BertConfig,
    width=Hyperparameter("model width (hidden size); a pretrained model has its own", 128),
    heads=Hyperparameter("attention heads per layer; a pretrained model has its own", 4),
    layers=Hyperparameter("number of layers; a pretrained model has its own", 2),
    hidden=Hyperparameter("feed-forward size; a pretrained model has its own", 256),
    dropout=Hyperparameter("dropout probability", 0.1),
)
class EncoderSettings(Settings):
    """The settings of every task that an encoder learns."""

    pretrained: str = Field(
        "", description="model to fine-tune: a run, a folder, an embedded model; none: train from scratch"
    )
    vocab_size: int = Field(8000, ge=LEAST, description="vocabulary size, unless pretrained")
    kind: TokenKind = Field(
        "bpe",
        description="tokenization, unless pretrained: byte-level BPE, or whole words, of which rare ones are unknown",
    )
    lowercase: bool = Field(False, description="lowercase the text, unless pretrained")
    max_length: int = Field(256, ge=8, description="max tokens per row, special tokens included")
    batch_tokens: int = Field(4096, ge=1, description="tokens per batch, padding included, summed over all processes")


class MadeEncoder(NamedTuple):
    """A model with what it reads by."""

    tokens: EncoderTokenizer
    config: Any
    model: Any


def make_encoder(
    config_class: type[C],
    settings: EncoderSettings,
    folder: Path,
    texts: Iterable[str],
    *,
    segments: int = 1,
    prefix_space: bool = False,
    **more: Any,
) -> MadeEncoder:
    """The encoder of a task: `config_class` with the sizes of the settings, or of the model that is fine-tuned.

    `texts` are what a vocabulary is learned from, unless there is one: in `folder`, or beside the pretrained model.
    `segments` are the sorts of texts in a row that it tells apart, `prefix_space` is that of `train_tokenizer` for a
    vocabulary that is learned here, and `more` are fields of the config, such as its
    head. In the folder of a finished model its own config is taken, and its weights are not read here.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     settings = EncoderSettings(pretrained="filler", max_length=32)
    ...     made = make_encoder(BertConfig, settings, Path(folder), [], segments=2, head="span")
    >>> made.config.width, made.config.token_types, made.model.span
    (160, 2, Linear(in_features=160, out_features=2, bias=True))
    """
    if (folder / store.MANIFEST).exists():
        told = store.describe(folder)
        config = kind_named(told["kind"]).config_class(**told["config"])
        return MadeEncoder(EncoderTokenizer.wrap(read_tokenizer(folder)), config, config.build())
    if settings.pretrained:
        if not issubclass(config_class, BertConfig):
            raise ConfigError(
                f"model is 'recurrent', but {settings.pretrained} is to be fine-tuned; leave pretrained or model out"
            )
        return continue_encoder(config_class, settings, folder, segments, more)
    place = folder / TOKENIZER
    if not place.exists():
        learned = train_tokenizer(
            texts, settings.vocab_size, lowercase=settings.lowercase, prefix_space=prefix_space, kind=settings.kind
        )
        put(place, learned.to_str().encode())
    tokens = EncoderTokenizer.wrap(Tokenizer.from_str(place.read_text(encoding="utf-8")))
    sizes = {"vocab_size": tokens.tokenizer.get_vocab_size(), "context": settings.max_length, "token_types": segments}
    made = fill_config(config_class, settings, **known_fields(config_class, sizes), **more)
    return MadeEncoder(tokens, made, made.build())


def known_fields(config_class: type[ModelConfig], sizes: dict[str, Any]) -> dict[str, Any]:
    """Those of the sizes that this config has a field for: a recurrent network has no segments, a head has no norm."""
    known = {field.name for field in fields(config_class)}
    return {name: value for name, value in sizes.items() if name in known}


def train_tokenizer(
    texts: Iterable[str], size: int, *, lowercase: bool, prefix_space: bool = False, kind: TokenKind = "bpe"
) -> Tokenizer:
    """A tokenizer that frames one text, or two, for an encoder.

    `kind` "bpe" spells any text in byte-level pieces; "words" are the most frequent words and signs, and what
    is not among them is unknown: of few texts, rare words say little but are learned by heart.
    With `prefix_space` a text is read as if a space stood before it, so that its first word is the token that it is
    elsewhere: of short texts every word stands first now and then. Words are always read so.

    >>> tokenizer = train_tokenizer(["The cat", "the cats"] * 3, 280, lowercase=True)
    >>> tokenizer.encode("The", "cat").tokens
    ['<bos>', 'the', '<eos>', 'cat', '<eos>']
    >>> train_tokenizer(["The cat", "the cats"], 280, lowercase=True, kind="words").encode("the dog").tokens
    ['<bos>', '▁the', '<unk>', '<eos>']
    """
    if kind == "words":
        tokenizer = train_words(texts, size - 1, lowercase, byte_fallback=False, around_special=True)
        tokenizer.add_special_tokens([reserve_token(MASK_TOKEN)])
    else:
        tokenizer = train_pieces(texts, size, lowercase=lowercase, prefix_space=prefix_space)
    first, last = SPECIAL[BEGIN], SPECIAL[END]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B:1 {last}:1",
        special_tokens=[(first, BEGIN), (last, END)],
    )
    return tokenizer


def train_pieces(texts: Iterable[str], size: int, *, lowercase: bool, prefix_space: bool) -> Tokenizer:
    """Byte-level pieces of these texts."""
    folded = (text.lower() for text in texts) if lowercase else texts
    tokenizer = train_byte_level((f" {text}" for text in folded) if prefix_space else folded, size)
    if prefix_space:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    if lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    return tokenizer


def continue_encoder(
    config_class: type[BertConfig], settings: EncoderSettings, folder: Path, segments: int, more: dict[str, Any]
) -> MadeEncoder:
    """A model of this class with the weights of a pretrained one; only its head, if any, is new."""
    loaded = load_model(settings.pretrained)
    if not isinstance(loaded.model, Bert):
        raise ModelError(
            f"{settings.pretrained} is a {type(loaded.model).__name__}, but an encoder such as a BERT was wanted; "
            "name one"
        )
    if settings.max_length > loaded.model.longest:
        raise ConfigError(
            f"max_length is {settings.max_length}, but {settings.pretrained} reads at most {loaded.model.longest} "
            f"tokens; give --max-length {loaded.model.longest} or less"
        )
    tokens = EncoderTokenizer.wrap(loaded.tokenizer)
    old = loaded.model.config
    sizes = {name: getattr(old, name) for name in KEPT}
    sizes["token_types"] = max(segments, old.token_types) if old.token_types else 0
    dropout = settings.dropout  # type: ignore[attr-defined]
    model = config_class(**known_fields(config_class, sizes) | {"dropout": dropout} | more).build()
    put_encoder(model, loaded.model.state_dict())
    put(folder / TOKENIZER, tokens.tokenizer.to_str().encode())
    return MadeEncoder(tokens, model.config, model)


@torch.no_grad()
def put_encoder(model: Bert, weights: dict[str, Tensor]) -> None:
    """Write what both models have into the first: all but the heads. A new sort of text begins like the first sort."""
    own = model.state_dict()
    common = [name for name in own if name.partition(".")[0] in BODY]
    lost = next((name for name in common if name not in weights), None)
    if lost is not None:
        raise ModelError(f"the pretrained model has no {lost}; name one with the same layers")
    for name in common:
        value = weights[name]
        if name == "types.weight" and len(value) < len(own[name]):
            value = torch.cat([value, value[:1].expand(len(own[name]) - len(value), -1)])
        own[name].copy_(value)
    if "pooler.weight" in own and "pooler.weight" in weights:
        for name in ("pooler.weight", "pooler.bias"):
            own[name].copy_(weights[name])
