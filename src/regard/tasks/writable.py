"""What a model must be to write, what ends its texts, and how many tokens it takes."""

from collections.abc import Iterable, Sequence
from typing import Any

from torch import nn

from regard.errors import ModelError
from regard.models.chat_template import ChatTemplate
from regard.models.context import max_tokens
from regard.models.decoder_state import DecoderState
from regard.models.kinds import kind_of
from regard.tasks.generation import GenerationSettings
from regard.tasks.library_state import LibraryState

END_TOKENS = ("<eos>", "</s>", "<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "[EOS]")


def begin(model: Any, rows: Sequence[Sequence[int]], settings: GenerationSettings, engine: str | None) -> DecoderState:
    """A model that is ready to write after each of these rows of ids."""
    if hasattr(model, "begin"):
        by = {"engine": engine} if isinstance(model, nn.Module) else {}  # codes of a GGUF file have but one
        state: DecoderState = model.begin(rows, window=settings.window, sinks=settings.sinks, **by)
        return state
    return LibraryState(model, rows, window=settings.window)


def check_writes(name: str, model: Any) -> None:
    """Refuse a model that does not go on with a text."""
    kind = kind_of(model) if isinstance(model, nn.Module) else None
    if kind is not None and "generate" not in kind.tasks:
        ways = {
            "translate": f'translate with: regard translate -m {name} "…"',
            "summarise": f'summarise with: regard summarise "…" --model {name}',
        }
        advice = next((ways[task] for task in kind.tasks if task in ways), "take a causal model")
        raise ModelError(f"{name} is a {kind.name}, which does not go on with a text; {advice}")
    if hasattr(model, "begin"):
        return
    config = getattr(model, "config", None)
    writes = callable(getattr(model, "can_generate", None)) and model.can_generate()
    if not writes or getattr(config, "is_encoder_decoder", False):
        raise ModelError(
            f"{name} is a {type(model).__name__}, which does not go on with a text; "
            "take a causal language model, such as GPT-2 or Llama"
        )


def check_tokenizer(name: str, model: Any, tokenizer: Any) -> None:
    """Refuse a tokenizer with ids that the model does not know."""
    known = getattr(getattr(model, "config", None), "vocab_size", None)
    size = count_tokens(tokenizer)
    if isinstance(known, int) and size is not None and size > known:
        raise ModelError(
            f"the tokenizer has {size:,} tokens, but {name} knows {known:,}; it is the tokenizer of another model"
        )


def count_tokens(tokenizer: Any) -> int | None:
    """How many tokens a tokenizer knows; None where it does not say."""
    if callable(getattr(tokenizer, "get_vocab_size", None)):
        return int(tokenizer.get_vocab_size())
    return len(tokenizer) if hasattr(tokenizer, "__len__") else None


def find_context(model: Any, tokenizer: Any) -> int | None:
    """How many tokens a model was made to read; None where nothing says so."""
    own = getattr(getattr(model, "config", None), "context", None)
    return own if isinstance(own, int) else max_tokens(model, tokenizer)


def find_ends(model: Any, tokenizer: Any) -> list[int]:
    """The ids that end a text: as the generation config says, the tokenizer, or the names of its tokens."""
    for one in (getattr(model, "generation_config", None), tokenizer):
        given = getattr(one, "eos_token_id", None)
        if given is not None:
            return [int(each) for each in (given if isinstance(given, Iterable) else [given])]
    find = getattr(tokenizer, "token_to_id", None)
    ids = [find(name) for name in END_TOKENS] if callable(find) else []
    return [number for number in ids if number is not None]


def find_template(tokenizer: Any) -> ChatTemplate | None:
    """The chat template that a tokenizer of `transformers` brings along; None without."""
    source = getattr(tokenizer, "chat_template", None)
    if not isinstance(source, str):
        return None
    names = getattr(tokenizer, "special_tokens_map", {})
    return ChatTemplate(source, {name: token for name, token in names.items() if isinstance(token, str)})
