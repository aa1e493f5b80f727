"""Text, pixels and numbers as tokens, and tokens as something that people can read."""

from regard.tokens.text import Tokens

__all__ = ["Tokens"]
