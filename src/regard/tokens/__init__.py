"""Text, pixels and numbers as tokens, and tokens as something that people can read."""

from regard.tokens.merge import groups, merge_tokens, merge_weights
from regard.tokens.patches import Grid, patches, square
from regard.tokens.read import Reader, read
from regard.tokens.text import Tokens

__all__ = ["Grid", "Reader", "Tokens", "groups", "merge_tokens", "merge_weights", "patches", "read", "square"]
