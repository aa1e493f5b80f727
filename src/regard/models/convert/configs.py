"""The config of another library as ours, and ours as theirs, as a table says."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from regard.errors import ModelError
from regard.models.config import as_field, is_field
from regard.models.convert.table import REQUIRED, ConfigKey, ConversionTable

# What every config of transformers may hold and no forward pass in eval mode reads; generation among it.
IGNORED = frozenset({
    "_attn_implementation", "_attn_implementation_autoset", "_name_or_path", "architectures", "attn_implementation",
    "bad_words_ids", "begin_suppress_tokens", "bos_token_id", "chunk_size_feed_forward",
    "cross_attention_hidden_size", "decoder_start_token_id", "diversity_penalty", "do_sample", "dtype",
    "early_stopping", "encoder_no_repeat_ngram_size", "eos_token_id", "exponential_decay_length_penalty",
    "finetuning_task", "forced_bos_token_id", "forced_eos_token_id", "id2label", "initializer_range", "is_decoder",
    "is_encoder_decoder", "label2id", "length_penalty", "max_length", "min_length", "model_type",
    "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_return_sequences", "output_attentions",
    "output_hidden_states", "output_scores", "pad_token_id", "prefix", "problem_type", "remove_invalid_values",
    "repetition_penalty", "return_dict", "return_dict_in_generate", "sep_token_id", "suppress_tokens",
    "task_specific_params", "temperature", "tf_legacy_loss", "tokenizer_class", "top_k", "top_p", "torch_dtype",
    "torchscript", "transformers_version", "typical_p", "use_bfloat16", "use_cache",
})  # fmt: skip


def apply_keys(table: ConversionTable, given: Mapping[str, Any]) -> Any:
    """Our config from theirs; a key that is not known, is missing or has a value we cannot express is an error."""
    theirs = table.flatten(dict(given))
    known = {key.theirs for key in table.keys} | table.fixed.keys() | table.ignored
    unknown = sorted(theirs.keys() - known)
    if unknown:
        raise ModelError(
            f"the config has {unknown[0]}={theirs[unknown[0]]!r}, which the table of {table.family!r} does not know; "
            "if it changes no number, list it there as ignored"
        )
    for name, wanted in table.fixed.items():
        if name in theirs and theirs[name] != wanted:
            raise ModelError(
                f"the config has {name}={theirs[name]!r}, but our model of the family {table.family!r} can only be "
                f"made with {wanted!r}; keep the model of that library"
            )
    ours: dict[str, Any] = dict(table.always)
    origin: dict[str, str] = {}
    for key in table.keys:
        value = convert_value(table, key, theirs)
        if key.ours in origin and ours[key.ours] != value:
            raise ModelError(
                f"the config has different {origin[key.ours]} and {key.theirs} ({ours[key.ours]!r} and {value!r}), "
                f"but our model has one {key.ours} for both; keep the model of that library"
            )
        ours[key.ours], origin[key.ours] = value, key.theirs
    return table.config(**ours)


def convert_value(table: ConversionTable, key: ConfigKey, theirs: Mapping[str, Any]) -> Any:
    """Our value of one key, of the type that its field has."""
    value = theirs.get(key.theirs, key.default)
    if value is REQUIRED:
        raise ModelError(f"the config has no {key.theirs}, which every config of the family {table.family!r} has")
    if key.values is not None:
        if not isinstance(value, str | bool | int) or value not in key.values:
            raise ModelError(
                f"the config has {key.theirs}={value!r}, but our model of the family {table.family!r} can only be made "
                f"with {', '.join(map(repr, key.values))}; keep the model of that library"
            )
        return key.values[value]
    kind = next(field.type for field in fields(table.config) if field.name == key.ours)
    value = as_field(value, kind)
    if not is_field(value, kind):
        raise ModelError(f"the config has {key.theirs}={value!r}, wanted {getattr(kind, '__name__', kind)}; correct it")
    return value


def invert_keys(table: ConversionTable, config: Any) -> dict[str, Any]:
    """Their config from ours, refused where their library has no word for what ours is."""
    config = table.resolve(config)
    for name, wanted in table.always.items():
        if getattr(config, name) != wanted:
            raise ModelError(
                f"the config has {name}={getattr(config, name)!r}, but every {table.family!r} has {wanted!r}; "
                "save the model in the layout of regard"
            )
    given: dict[str, Any] = {}
    for key in table.keys:
        value = getattr(config, key.ours)
        if key.values is not None:
            names = [theirs for theirs, ours in key.values.items() if ours == value]
            if not names:
                raise ModelError(
                    f"the config has {key.ours}={value!r}, which no {key.theirs} of the family {table.family!r} is; "
                    "save the model in the layout of regard"
                )
            value = names[0]
        value = key.unset if value is None else value
        if value is None and key.default is not None:
            raise ModelError(
                f"the config leaves {key.ours} open, but {key.theirs} of a {table.family!r} is a number; give one"
            )
        if key.theirs in given and given[key.theirs] != value:
            raise ModelError(
                f"the config has {key.ours}={value!r}, but every {table.family!r} has one {key.theirs} for it and for "
                f"what is {given[key.theirs]!r}; save the model in the layout of regard"
            )
        given[key.theirs] = value
    return table.nest(dict(table.fixed) | given)
