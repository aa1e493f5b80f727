"""The families whose weights we can take over, by the name that `transformers` has for them (`model_type`)."""

from collections.abc import Mapping
from typing import Any

from regard.errors import ModelError
from regard.models.convert.bert import BERT
from regard.models.convert.configs import apply_keys, invert_keys
from regard.models.convert.distilbert import DISTILBERT
from regard.models.convert.electra import ELECTRA
from regard.models.convert.gpt2 import GPT2
from regard.models.convert.llama import LLAMA
from regard.models.convert.marian import MARIAN
from regard.models.convert.mistral import MISTRAL
from regard.models.convert.qwen import QWEN2, QWEN3
from regard.models.convert.roberta import ROBERTA
from regard.models.convert.swin import SWIN
from regard.models.convert.t5 import T5
from regard.models.convert.table import ConversionTable
from regard.models.convert.torch_transformer import TORCH_TRANSFORMER
from regard.models.convert.vit import DEIT, DINOV2, VIT

FAMILIES: dict[str, ConversionTable] = {
    table.family: table
    for table in (
        *(GPT2, LLAMA, MISTRAL, QWEN2, QWEN3, BERT, ROBERTA, ELECTRA, DISTILBERT, T5, MARIAN, TORCH_TRANSFORMER),
        *(VIT, DEIT, DINOV2, SWIN),
    )
}


def find_table(family: object) -> ConversionTable:
    """The table of a family.

    >>> find_table("gpt2").config.__name__
    'Gpt2Config'
    """
    if not isinstance(family, str) or family not in FAMILIES:
        raise ModelError(f"{family!r} is no family that has a table here; there are: {', '.join(FAMILIES)}")
    return FAMILIES[family]


def convert_config(family: str, config: Mapping[str, Any]) -> Any:
    """Our config from the foreign one: a dict as config.json holds it, or the arguments of `nn.Transformer`.

    What the foreign config says must be known, and be something that our model can be made with; each key that is not
    is an error that names it. Dropout of `transformers` is left out: ours has one rate for all places, theirs several.

    >>> sizes = {"vocab_size": 11, "n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 16}
    >>> convert_config("gpt2", {**sizes, "activation_function": "gelu"}).width
    8
    """
    table = find_table(family)
    kind = config.get("model_type", family)
    if kind != family:
        raise ModelError(f"the config has model_type={kind!r}, but the table of {family!r} came; take the other table")
    return apply_keys(table, config)


def export_config(family: str, config: Any) -> dict[str, Any]:
    """The foreign config from ours, with every key that decides a number.

    >>> from regard.models import Gpt2Config
    >>> export_config("gpt2", Gpt2Config(vocab_size=11, width=8, heads=2, layers=1, context=16))["n_embd"]
    8
    """
    table = find_table(family)
    if not isinstance(config, table.config):
        raise ModelError(
            f"a {type(config).__name__} came, but the table of {family!r} is for a {table.config.__name__}; "
            "take the table of its family"
        )
    return invert_keys(table, config)
