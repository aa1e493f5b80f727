"""How texts are cut before byte pairs are merged, by the names that GGUF files have for it (`tokenizer.ggml.pre`)."""

from typing import Any

from regard.errors import ModelError

ENDINGS = "'s|'t|'re|'ve|'m|'ll|'d"  # of English words
GPT2 = rf"{ENDINGS}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+"
WORDS, REST = r"[^\r\n\p{L}\p{N}]?\p{L}+", r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = rf"(?i:{ENDINGS})|{WORDS}|\p{{N}}{{1,3}}|{REST}"
QWEN2 = rf"(?i:{ENDINGS})|{WORDS}|\p{{N}}|{REST}"
DEFAULT = (r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]")
DIGITS = (r"\p{N}", GPT2)  # one by one
SPLITS: dict[str, tuple[str, ...]] = {  # patterns, each of which cuts the pieces that the one before left
    "default": DEFAULT,
    "gpt-2": (GPT2,),
    "smollm": DIGITS,
    "starcoder": DIGITS,
    "llama-bpe": (LLAMA3,),
    "llama3": (LLAMA3,),
    "llama-v3": (LLAMA3,),
    "qwen2": (QWEN2,),
    "deepseek-r1-qwen": (QWEN2,),
}
WHOLE_FIRST = ("llama-bpe", "llama3", "llama-v3")  # a piece that is a token is one, whatever its merges would give
COMPOSED = ("qwen2", "deepseek-r1-qwen")  # whose makers compose characters first (NFC)


def make_splitter(name: str) -> Any:
    """The pre-tokenizer of this name, of the package `tokenizers`: cut, then spell bytes."""
    from tokenizers import Regex, pre_tokenizers

    if name not in SPLITS:
        raise ModelError(f"texts are cut in the way {name!r}, which is not known here; there are: {', '.join(SPLITS)}")
    cuts = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in SPLITS[name]]
    return pre_tokenizers.Sequence([*cuts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
