"""Phrases in two languages at once, and how small ones are woven into larger ones.

A pattern is written twice, once per language. `word:1` on both sides means that the two mean each other, `{slot}` is
where a smaller phrase goes, with whatever its own words mean:

>>> cat = weave("the cat:1", "猫:1")
>>> weave("{who} sat:1 on:2 the mat:3", "{who} 坐:1 在:2 垫子:3 上:2", who=cat)
Phrase(english=('the', 'cat', 'sat', 'on', 'the', 'mat'), chinese=('猫', '坐', '在', '垫子', '上'),
    links=((0, 1), (1, 2), (2, 3), (3, 5), (4, 3)))
"""

import re
from functools import lru_cache
from typing import NamedTuple


class Phrase(NamedTuple):
    """Words of both languages in order, and which (Chinese, English) of them mean each other."""

    english: tuple[str, ...]
    chinese: tuple[str, ...]
    links: tuple[tuple[int, int], ...] = ()


NOTHING = Phrase((), ())


class Part(NamedTuple):
    """One word of a pattern, or a slot of it."""

    text: str
    mark: str
    is_slot: bool


def weave(english: str, chinese: str, **slots: Phrase) -> Phrase:
    """The phrase that a pattern gives when its slots are filled; every slot stands once in both languages."""
    left, right = _pattern(english, chinese)
    words: list[str] = []
    begins: dict[str, int] = {}
    marked: dict[str, list[int]] = {}
    for text, mark, is_slot in left:
        if is_slot:
            begins[text] = len(words)
            words += slots[text].english
        else:
            if mark:
                marked.setdefault(mark, []).append(len(words))
            words.append(text)
    characters: list[str] = []
    links: list[tuple[int, int]] = []
    for text, mark, is_slot in right:
        here = len(characters)
        if is_slot:
            slot, there = slots[text], begins[text]
            links += [(target + here, source + there) for target, source in slot.links]
            characters += slot.chinese
        else:
            if mark:
                links += [(here, source) for source in marked[mark]]
            characters.append(text)
    return Phrase(tuple(words), tuple(characters), tuple(links))


@lru_cache(maxsize=None)
def _pattern(english: str, chinese: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    left, right = (tuple(_part(text) for text in side.split()) for side in (english, chinese))
    for wanted, of in ((True, "slots"), (False, "marks")):
        names = [sorted({p.text if wanted else p.mark for p in side if p.is_slot == wanted}) for side in (left, right)]
        if [name for name in names[0] if name] != [name for name in names[1] if name]:
            raise ValueError(f"the {of} of {english!r} and {chinese!r} differ; write the same ones in both")
    return left, right


def _part(text: str) -> Part:
    if slot := re.fullmatch(r"\{(\w+)\}", text):
        return Part(slot[1], "", True)
    word, _, mark = text.partition(":")
    return Part(word, mark, False)
