"""Text, pixels and numbers as tokens, and tokens as something that people can read."""

from regard.tokens.merge import groups, merge_tokens
from regard.tokens.patches import PatchGrid, patches, square
from regard.tokens.protocol import TextTokenizer, as_tokenizer
from regard.tokens.read import Reader, read
from regard.tokens.text import Tokens

__all__ = [
    "PatchGrid",
    "Reader",
    "TextTokenizer",
    "Tokens",
    "as_tokenizer",
    "groups",
    "merge_tokens",
    "patches",
    "read",
    "square",
]
