"""Where a word begins, in any script, for tokenizers that do not say it."""

import unicodedata

from regard.tokens.visible import ZERO_WIDTH_JOINER, extends

APOSTROPHES = {"'", "’", "ʼ"}
BETWEEN_DIGITS = {".", ",", ":", "٫", "٬"}
# Scripts without spaces, where a token is the best word there is: Thai and Lao, Burmese, Khmer, Chinese, Japanese.
UNSPACED = [
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3040, 0x312F)),
    *((0x31A0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x20000, 0x3FFFF)),
]
FIRST_REGION, LAST_REGION = "\U0001f1e6", "\U0001f1ff"  # two of these letters make a flag


def starts_word(text: str, at: int, previous: str) -> bool:
    """Whether a token that starts at character `at` starts a word; `previous` is what the token before it covers.

    Letters and digits go together, with an apostrophe inside (`don't`) or a point (`3.14`); a mark of punctuation
    stands alone, or with its like (`...`); a token of spaces belongs to what follows.

    >>> [starts_word("the cat's", at, "…") for at in (2, 3, 7)]
    [False, True, False]
    """
    if not 0 < at < len(text):
        return True
    before, after = text[at - 1], text[at]
    if extends(after) or before == ZERO_WIDTH_JOINER:
        return False
    if after.isspace():
        return True
    if before.isspace():
        return previous.strip(" ") != ""
    if is_unspaced(before) or is_unspaced(after):
        return True
    if in_word(before) and in_word(after):
        return False
    if FIRST_REGION <= before <= LAST_REGION and FIRST_REGION <= after <= LAST_REGION:
        first = at
        while first and FIRST_REGION <= text[first - 1] <= LAST_REGION:
            first -= 1
        return (at - first) % 2 == 0
    if in_between(text, at) or in_between(text, at - 1):
        return False
    return before != after or unicodedata.category(after)[0] != "P"


def in_between(text: str, at: int) -> bool:
    """Whether the mark at `at` stands inside a word or a number."""
    if not 0 < at < len(text) - 1:
        return False
    mark, left, right = text[at], text[at - 1], text[at + 1]
    if mark in APOSTROPHES:
        return left.isalpha() and right.isalpha()
    return mark in BETWEEN_DIGITS and left.isdecimal() and right.isdecimal()


def in_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in "LNM"


def is_unspaced(character: str) -> bool:
    code = ord(character)
    return code >= UNSPACED[0][0] and any(low <= code <= high for low, high in UNSPACED)
