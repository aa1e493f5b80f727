"""Nouns with what stands before them: the cat 猫, a cat 一只猫, two cups of tea 两杯茶, my books 我的书.

A definite noun is bare in Chinese, and so are plurals in general. Numbers, `this` and `that` are followed
by the classifier of the noun.
"""

from functools import cache

from regard.data.grammar.nouns import Noun
from regard.data.grammar.phrase import Phrase, weave

NUMBERS = {
    "two": "两", "three": "三", "four": "四", "five": "五", "six": "六", "seven": "七", "eight": "八", "nine": "九",
    "ten": "十", "twelve": "十二", "twenty": "二十",
}  # fmt: skip
OWNERS = {"my": "我", "your": "你", "his": "他", "her": "她", "our": "我们", "their": "他们"}
SINGLE = {
    "the": ("the {a} {n}", "{a} {n}"),
    "a": ("a:1 {c} {a} {n}", "一:1 {c} {a} {n}"),
    "this": ("this:1 {c} {a} {n}", "这:1 {c} {a} {n}"),
    "that": ("that:1 {c} {a} {n}", "那:1 {c} {a} {n}"),
    "which": ("which:1 {c} {a} {n}", "哪:1 {c} {a} {n}"),
    "every": ("every:1 {c} {a} {n}", "每:1 {c} {a} {n}"),
}
SEVERAL = {
    "": ("{a} {n}", "{a} {n}"),
    "some": ("some:1 {a} {n}", "一些:1 {a} {n}"),
    "many": ("many:1 {a} {n}", "很多:1 {a} {n}"),
    "these": ("these:1 {a} {n}", "这些:1 {a} {n}"),
    "those": ("those:1 {a} {n}", "那些:1 {a} {n}"),
    "several": ("several:1 {c} {a} {n}", "几:1 {c} {a} {n}"),
}
COUNTED = {word: (f"{word}:1 {{c}} {{a}} {{n}}", f"{number}:1 {{c}} {{a}} {{n}}") for word, number in NUMBERS.items()}
OWNED = {word: (f"{word}:1 {{a}} {{n}}", f"{owner}:1 的:1 {{a}} {{n}}") for word, owner in OWNERS.items()}
DETERMINERS = SINGLE | SEVERAL | COUNTED | OWNED
MORE = frozenset(SEVERAL) | frozenset(COUNTED)


@cache
def noun_phrase(noun: Noun, determiner: str, adjective: Phrase) -> Phrase:
    """The noun with its determiner and adjective.

    >>> from regard.data.grammar.nouns import BY_NAME
    >>> from regard.data.grammar.phrase import NOTHING
    >>> "".join(noun_phrase(BY_NAME["horse"], "two", NOTHING).chinese)
    '两匹马'
    >>> " ".join(noun_phrase(BY_NAME["tea"], "two", NOTHING).english)
    'two cups of tea'
    """
    more = determiner in MORE
    name = weave(f"{noun.more if more else noun.one}:1", f"{noun.chinese}:1")
    english, chinese = DETERMINERS[determiner]
    slots = {"a": adjective, "n": name}
    if "{c}" in english:
        slots["c"] = noun.counters if more else noun.counter
    return weave(english, chinese, **slots)
