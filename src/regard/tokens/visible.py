"""Text of any script with nothing hidden in it, and short enough for an axis."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

ZERO_WIDTH_JOINER = "\u200d"
JOINERS = {"\u200c", ZERO_WIDTH_JOINER}
JOINED = {"So", "Sk", "Lo", "Mn", "Mc"}  # what joiners really join: emoji, Persian, the scripts of India
HIDDEN = {"Cc", "Cf", "Co", "Cs", "Zs", "Zl", "Zp"}
# Marks, letters and symbols by their category, which draw nothing all the same.
BLANK = {*"\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0", *map(chr, range(0x180B, 0x1810))}
SELECTORS = {*map(chr, range(0xFE00, 0xFE10)), *map(chr, range(0xE0100, 0xE01F0))}
PICTURES = {" ": " ", "\n": "⏎", "\t": "⇥", "\x7f": "␡"}
UNIT = re.compile("⟨[^⟨⟩]*⟩|.", re.DOTALL)  # a mark of our own is never cut in two


@lru_cache(maxsize=1 << 14)  # the same tokens come again and again
def visible(text: str) -> str:
    """The text as it may stand on an axis, in a page or in a terminal: no character of it is hidden or acts.

    Spaces at either end are `·`, a newline `⏎`, a tab `⇥`, other control characters their pictures (`␀`); what
    has no width or turns the direction of writing is named, `⟨U+200F⟩`. A combining mark without a letter before
    it stands on `◌`. Spaces inside stay, and so do the joiners inside an emoji or a Persian word.

    >>> visible(" cat"), visible("two words\\n"), visible("\\u200fab"), visible("\\u0301")
    ('·cat', 'two words⏎', '⟨U+200F⟩ab', '◌́')
    """
    if text.isalnum() and text.isascii():  # by far the most tokens
        return text
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" ")) if inner else len(text)
    around = ["", *inner, ""]
    shown = [shown_as(here, left, around[at + 2]) for at, (left, here) in enumerate(pairwise(around[:-1]))]
    return "·" * before + "".join(shown) + "·" * (len(text) - len(inner) - before)


def shown_as(here: str, left: str, right: str) -> str:
    """One character, between its neighbours ("" at either end)."""
    if here in PICTURES:
        return PICTURES[here]
    if here < " ":
        return chr(0x2400 + ord(here))
    kind = unicodedata.category(here)
    if here in JOINERS and joins(left) and joins(right):
        return here
    if kind in HIDDEN or here in BLANK or (ord(here) & 0xFFFE) == 0xFFFE or 0xFDD0 <= ord(here) <= 0xFDEF:
        return name_character(here)
    if kind[0] == "M" and not carries(left):
        return name_character(here) if here in SELECTORS else f"◌{here}"
    return here


def joins(neighbour: str) -> bool:
    return neighbour != "" and unicodedata.category(neighbour) in JOINED and neighbour not in BLANK


def carries(left: str) -> bool:
    """Whether a combining mark has something to stand on."""
    return left != "" and (left in JOINERS or unicodedata.category(left)[0] not in "CZ") and left not in BLANK


def name_character(here: str) -> str:
    return f"⟨U+{ord(here):04X}⟩"


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns: too long a one loses its middle, never half a character.

    >>> cut("internationalisation", 9), cut("cat", 9), cut("人工智能研究所", 9)
    ('inte…tion', 'cat', '人工…究所')
    """
    if columns(text) <= width:
        return text
    units = list(clusters(text))
    head, tail = 0, len(units)
    left, right = width // 2, (width - 1) // 2
    while head < tail and columns(units[head]) <= left:
        left -= columns(units[head])
        head += 1
    while head < tail and columns(units[tail - 1]) <= right:
        tail -= 1
        right -= columns(units[tail])
    return "".join([*units[:head], "…", *units[tail:]])


def columns(text: str) -> int:
    """How many columns of a terminal the text takes: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def clusters(text: str) -> Iterator[str]:
    """What people take for one character each: a letter with its marks, an emoji with what is joined to it."""
    held = ""
    for unit in UNIT.findall(text):
        if held and (extends(unit) or held.endswith(ZERO_WIDTH_JOINER)):
            held += unit
            continue
        if held:
            yield held
        held = unit
    if held:
        yield held


def extends(character: str) -> bool:
    """Whether it belongs to the character before it: marks, selectors, joiners and skin tones do."""
    if len(character) != 1 or character.isascii():
        return False
    tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    return tone or character in JOINERS or unicodedata.category(character)[0] == "M"
