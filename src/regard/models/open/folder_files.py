"""What lies beside the weights in a folder of `transformers`: tokenizer, chat template, the tokens that end a text."""

import json
from pathlib import Path
from typing import Any

from regard.errors import ModelError
from regard.models.chat_template import ChatTemplate
from regard.models.failure import failure_of
from regard.models.open.library import has_tokenizer, import_transformers, load_tokenizer

FAST, SETTINGS, TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"
NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def read_folder_tokenizer(folder: Path) -> Any:
    """A `tokenizers.Tokenizer` where there is a tokenizer.json, else what `transformers` makes; None without any.

    It neither cuts nor pads, whatever its file says: some were saved with the settings of a training.
    """
    if not (folder / FAST).is_file():
        if not has_tokenizer(folder):
            return None
        return load_tokenizer(import_transformers(), str(folder), local_files_only=True)
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / FAST))
        tokenizer.no_truncation()
        tokenizer.no_padding()
    except BaseException as error:
        raise failure_of(f"the tokenizer of {folder}", error) from error
    return tokenizer


def read_folder_template(folder: Path) -> ChatTemplate | None:
    """The chat template of a folder, from a file of its own or the settings of its tokenizer; None without one."""
    settings = read_optional(folder / SETTINGS)
    file = folder / TEMPLATE
    source = settings.get("chat_template")
    if file.is_file():
        try:
            source = file.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise ModelError(f"{file} cannot be read ({error}); save the tokenizer again") from error
    if isinstance(source, list):  # several, by their names
        source = {one.get("name"): one.get("template") for one in source if isinstance(one, dict)}.get("default")
    if not isinstance(source, str):
        return None
    given = {name: content_of(settings.get(name)) for name in NAMED}
    return ChatTemplate(source, {name: token for name, token in given.items() if token is not None})


def read_folder_ends(folder: Path, tokenizer: Any) -> tuple[int, ...]:
    """The ids that end a text: as the generation config says, the config, or the tokenizer."""
    for name in ("generation_config.json", "config.json"):
        ids = read_optional(folder / name).get("eos_token_id")
        ids = ids if isinstance(ids, list) else [ids]
        if ids and all(type(one) is int for one in ids):
            return tuple(ids)
    token = content_of(read_optional(folder / SETTINGS).get("eos_token"))
    find = getattr(tokenizer, "token_to_id", None)
    number = find(token) if callable(find) and token is not None else None
    return () if number is None else (number,)


def content_of(token: Any) -> str | None:
    """The text of a token, which settings give as such or with what else is known of it."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def read_optional(path: Path) -> dict[str, Any]:
    """A file of JSON; nothing where it is not there or holds something else."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
