"""Phrases in two languages at once, and how small ones are woven into larger ones.

A pattern is written twice, once per language. `word:1` on both sides means that the two mean each other, `{slot}` is
where a smaller phrase goes, with whatever its own words mean:

>>> cat = weave("the cat:1", "猫:1")
>>> weave("{who} sat:1 on:2 the mat:3", "{who} 坐:1 在:2 垫子:3 上:2", who=cat)
Phrase(english=('the', 'cat', 'sat', 'on', 'the', 'mat'), chinese=('猫', '坐', '在', '垫子', '上'),
    links=((0, 1), (1, 2), (2, 3), (3, 5), (4, 3)))
"""

import re
from functools import cache
from typing import NamedTuple


class Phrase(NamedTuple):
    """Words of both languages in order, and which (Chinese, English) of them mean each other."""

    english: tuple[str, ...]
    chinese: tuple[str, ...]
    links: tuple[tuple[int, int], ...] = ()


NOTHING = Phrase((), ())


class EnglishStretch(NamedTuple):
    """A stretch of the English pattern: a slot, or plain words."""

    slot: str
    words: tuple[str, ...]


class ChineseStretch(NamedTuple):
    """A stretch of the Chinese pattern, and for each link its word here, the English stretch, and the word there."""

    slot: str
    words: tuple[str, ...]
    links: tuple[tuple[int, int, int], ...]
    """Of a slot, only the English stretch where the same slot stands."""


def weave(english: str, chinese: str, **slots: Phrase) -> Phrase:
    """The phrase that a pattern gives when its slots are filled; every slot stands once in both languages."""
    if not slots:
        return _static(english, chinese)
    left, right = _pattern(english, chinese)
    words: list[str] = []
    begins: list[int] = []
    for slot, some in left:
        begins.append(len(words))
        words += slots[slot].english if slot else some
    characters: list[str] = []
    links: list[tuple[int, int]] = []
    for slot, some, inner in right:
        here = len(characters)
        if slot:
            phrase, there = slots[slot], begins[inner[0][1]]
            links += [(target + here, source + there) for target, source in phrase.links]
            characters += phrase.chinese
        else:
            links += [(here + word, begins[stretch] + offset) for word, stretch, offset in inner]
            characters += some
    return Phrase(tuple(words), tuple(characters), tuple(links))


def phrases(text: str) -> tuple[Phrase, ...]:
    """Phrases without slots, one per line: English | Chinese.

    >>> [phrase.chinese for phrase in phrases("yesterday:1 | 昨天:1 \\n last:1 night:2 | 昨天:1 晚上:2")]
    [('昨天',), ('昨天', '晚上')]
    """
    return tuple(weave(*line.split("|")) for line in text.splitlines() if line.strip())


@cache
def _static(english: str, chinese: str) -> Phrase:
    left, right = _pattern(english, chinese)
    words, characters = (sum((stretch.words for stretch in side), ()) for side in (left, right))
    return Phrase(words, characters, tuple((word, offset) for stretch in right for word, _, offset in stretch.links))


@cache
def _pattern(english: str, chinese: str) -> tuple[tuple[EnglishStretch, ...], tuple[ChineseStretch, ...]]:
    """A pattern cut into stretches, so that weaving copies them whole."""
    left, right = _stretches(english), _stretches(chinese)
    slots = {slot: index for index, (slot, _) in enumerate(left) if slot}
    marks: dict[str, list[tuple[int, int]]] = {}
    for index, (_, some) in enumerate(left):
        for offset, (_, mark) in enumerate(some):
            if mark:
                marks.setdefault(mark, []).append((index, offset))
    said = {mark for _, some in right for _, mark in some if mark}
    if said != set(marks) or {slot for slot, _ in right if slot} != set(slots):
        raise ValueError(f"the slots or marks of {english!r} and {chinese!r} differ; write the same ones in both")
    return (
        tuple(EnglishStretch(slot, tuple(word for word, _ in some)) for slot, some in left),
        tuple(
            ChineseStretch(slot, (), ((0, slots[slot], 0),)) if slot else ChineseStretch(
                "", tuple(word for word, _ in some),
                tuple((at, *there) for at, (_, mark) in enumerate(some) if mark for there in marks[mark]),
            )
            for slot, some in right
        ),
    )  # fmt: skip


def _stretches(text: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Slots, and words with their marks, each run of words together."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for part in text.split():
        if slot := re.fullmatch(r"\{(\w+)\}", part):
            found.append((slot[1], []))
            continue
        if not found or found[-1][0]:
            found.append(("", []))
        word, _, mark = part.partition(":")
        found[-1][1].append((word, mark))
    return found
