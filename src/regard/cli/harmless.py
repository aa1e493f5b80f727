"""Text of a model for a terminal: it reads as it is, and none of it acts."""

import json
import unicodedata
from typing import Any

from regard.tokens.visible import JOINERS, SELECTORS, shown_as

KEPT = {"\n", "\t", *JOINERS, *SELECTORS}
ACTING = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def make_harmless(text: str) -> str:
    """The text with its lines, and control characters as their pictures: no escape sequence reaches the terminal.

    >>> make_harmless("two\\nlines \\x1b[31m\\u202e")
    'two\\nlines ␛[31m⟨U+202E⟩'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(one if not acts(one) else shown_as(one, "", "") for one in text)


def format_json(value: Any, *, indent: int | None = None) -> str:
    """What a command prints with --json: letters of any script as they are, and no character that acts.

    >>> print(format_json({"text": "猫\x9b[31m"}))
    {"text": "猫\\u009b[31m"}
    """
    return escape_json(json.dumps(value, ensure_ascii=False, indent=indent))


def escape_json(text: str) -> str:
    """JSON text in which every character that acts is escaped; it is read back as what it was.

    >>> print(escape_json('"猫\\x9b[31m"'))
    "猫\\u009b[31m"
    """
    if text.isascii() and "\x7f" not in text:  # what acts below that, JSON escapes by itself
        return text
    return "".join(f"\\u{ord(one):04x}" if acts(one) and ord(one) < 0x10000 else one for one in text)


def acts(character: str) -> bool:
    """Whether a character does something else than being drawn."""
    return character not in KEPT and unicodedata.category(character) in ACTING
