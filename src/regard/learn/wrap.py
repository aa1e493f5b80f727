"""Text of a lesson as lines for a terminal: no markup, and no line wider than it may be, in Latin and in Chinese.

A wide character takes two columns and may stand at the end of any line; punctuation does not begin a line that it
closes, nor end one that it opens.
"""

import re
import unicodedata

from regard.tokens.visible import columns

CODE = re.compile(r"(`[^`]*`)")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
STRONG = re.compile(r"\*\*(\S|\S.*?\S)\*\*", re.DOTALL)
EMPHASIS = re.compile(r"\*(\S|\S[^*]*?\S)\*")
CLOSING = "，。、；：？！）》」』】〉…—’”%）,.;:?!)]}"
OPENING = "（《「『【〈‘“([{"


def is_wide(character: str) -> bool:
    """Whether it takes two columns, as Chinese characters and their punctuation do."""
    return unicodedata.east_asian_width(character) in "WF"


def is_wide_mark(character: str) -> bool:
    """Whether it is punctuation that brings its own space, as the marks of Chinese do."""
    return character in "“”‘’…—" or (is_wide(character) and unicodedata.category(character)[0] in "PS")


def strip_markup(text: str) -> str:
    """Without emphasis and links; code keeps its backticks. Also between Chinese characters, where Markdown's own rule
    sees no emphasis.

    >>> strip_markup("the *query*, a **key**, `a * b` and [more](x.md); 这就是**“注意力”**的意思")
    'the query, a key, `a * b` and more; 这就是“注意力”的意思'
    """
    parts = CODE.split(text)
    for at in range(0, len(parts), 2):
        parts[at] = EMPHASIS.sub(r"\1", STRONG.sub(r"\1", LINK.sub(r"\1", parts[at])))
    return "".join(parts)


def join_lines(text: str) -> str:
    """Lines of the source as one; no space comes between Chinese characters, nor beside their punctuation.

    >>> join_lines("one\\ntwo"), join_lines("注意\\n力"), join_lines("因此，\\nsoftmax"), join_lines("使用\\nsoftmax")
    ('one two', '注意力', '因此，softmax', '使用 softmax')
    """
    joined = ""
    for line in map(str.strip, text.split("\n")):
        if joined and line:
            left, right = joined[-1], line[0]
            tight = (is_wide(left) and is_wide(right)) or is_wide_mark(left) or is_wide_mark(right)
            tight = tight and (is_wide(left) or is_wide(right))
            joined += "" if tight else " "
        joined += line
    return joined


def split_units(text: str) -> list[tuple[str, bool]]:
    """What is never broken, each with whether a space comes before it.

    >>> split_units("看 key，再看")
    [('看', False), ('key，', True), ('再', False), ('看', False)]
    """
    units: list[tuple[str, bool]] = []
    for word in text.split():
        spaced = bool(units)
        held = ""
        for character in word:
            breaks = held != "" and (is_wide(character) or is_wide(held[-1]))
            if breaks and character not in CLOSING and held[-1] not in OPENING:
                units.append((held, spaced))
                held, spaced = "", False
            held += character
        units.append((held, spaced))
    return units


def wrap(text: str, width: int = 80, *, first: str = "", rest: str | None = None) -> list[str]:
    """Paragraph → lines of at most `width` columns; `first` stands before the first of them, `rest` before the others.

    >>> wrap("A row is a query, a column is a key.", 20, first="- ")
    ['- A row is a query,', '  a column is a key.']
    >>> wrap("一行是一个查询，一列是一个键。", 16)
    ['一行是一个查询，', '一列是一个键。']
    """
    rest = " " * columns(first) if rest is None else rest
    lines, line = list[str](), first
    empty = True
    for unit, spaced in split_units(join_lines(strip_markup(text))):
        gap = " " if spaced and not empty else ""
        if not empty and columns(line) + len(gap) + columns(unit) > width:
            lines.append(line)
            line, gap = rest, ""
        line += gap + unit
        empty = False
    return [*lines, line]
