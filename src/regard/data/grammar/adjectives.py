"""What can be said of whom: adjectives with their Chinese, and the kinds of nouns that they fit."""

from functools import cache
from typing import NamedTuple

from regard.data.grammar.draw import Draw
from regard.data.grammar.nouns import Noun
from regard.data.grammar.phrase import NOTHING, Phrase, weave

_BEFORE_NOUNS = """
big         大      sized animal
small       小      sized animal
new         新      novelty
old         旧      novelty old
hot         热      hot
cold        冰      chilled
thick       厚      thick
dirty       脏      dirty washed
red         红色的   coloured
blue        蓝色的   coloured
white       白色的   coloured pet
black       黑色的   coloured pet
green       绿色的   coloured
yellow      黄色的   coloured
beautiful   漂亮的   beautiful lady
cute        可爱的   cute
clever      聪明的   clever someone
kind        善良的   someone
young       年轻的   grown
brave       勇敢的   someone
famous      有名的   known
strong      强壮的   strong
fresh       新鲜的   fresh fruit
sweet       甜的     sweet
delicious   好吃的   tasty
interesting 有趣的   interesting
important   重要的   important
clean       干净的   cleanable
warm        暖和的   warm
cheap       便宜的   novelty
"""

_GRADED = """
tall       taller          tallest          高      person plant
old        older           oldest           大      person
young      younger         youngest         年轻    person
strong     stronger        strongest        强壮    person
clever     cleverer        cleverest        聪明    person
busy       busier          busiest          忙      person
big        bigger          biggest          大      sized
small      smaller         smallest         小      sized
heavy      heavier         heaviest         重      heavy
thick      thicker         thickest         厚      thick
new        newer           newest           新      novelty
cheap      cheaper         cheapest         便宜    goods
expensive  more_expensive  most_expensive   贵      goods
beautiful  more_beautiful  most_beautiful   漂亮    beautiful
interesting more_interesting most_interesting 有趣  interesting
important  more_important  most_important   重要    important
fast       faster          fastest          快      vehicle
"""

_FEELINGS = """
tired    累
busy     忙
hungry   饿
thirsty  渴
happy    高兴
sad      难过
angry    生气
worried  担心
nervous  紧张
"""


class GradedAdjective(NamedTuple):
    """An adjective that compares."""

    plain: str
    more: Phrase
    most: Phrase
    chinese: str
    kinds: frozenset[str]


class AttributiveAdjective(NamedTuple):
    """An adjective before a noun; Chinese puts 的 between them unless the adjective is short."""

    word: str
    phrase: Phrase
    kinds: frozenset[str]


def _read_attributive(line: str) -> AttributiveAdjective:
    word, chinese, *kinds = line.split()
    stem = chinese.removesuffix("的")
    return AttributiveAdjective(
        word, weave(f"{word}:1", f"{stem}:1" + (" 的" if stem != chinese else "")), frozenset(kinds)
    )


def _read_graded(line: str) -> GradedAdjective:
    plain, more, most, chinese, *kinds = line.split()
    compared, superlative = (" ".join(f"{word}:1" for word in form.split("_")) for form in (more, most))
    return GradedAdjective(
        plain, weave(compared, f"{chinese}:1"), weave(superlative, f"最:1 {chinese}:1"), chinese, frozenset(kinds)
    )


DESCRIBED = tuple(map(_read_attributive, _BEFORE_NOUNS.strip().splitlines()))
GRADED = tuple(map(_read_graded, _GRADED.strip().splitlines()))
COLOURS = tuple(one.phrase for one in DESCRIBED if "coloured" in one.kinds)
FEELINGS = tuple((line.split()[0], line.split()[1]) for line in _FEELINGS.strip().splitlines())


@cache
def fitting(kinds: frozenset[str]) -> tuple[AttributiveAdjective, ...]:
    """The adjectives that may stand before a noun of these kinds."""
    return tuple(adjective for adjective in DESCRIBED if adjective.kinds & kinds)


@cache
def comparing(kinds: frozenset[str]) -> tuple[GradedAdjective, ...]:
    """The adjectives by which nouns of these kinds can be compared."""
    return tuple(adjective for adjective in GRADED if adjective.kinds & kinds)


def degree(draw: Draw, word: str) -> tuple[str, str]:
    """How much so, in both languages: 很 says no more than that an adjective follows."""
    options = (("", "很"), ("very:d", "非常:d"), ("not:d", "不:d"))
    return draw.pick(options[:2] if word == "interesting" else options)  # 不有趣 is not what people say


def describe(draw: Draw, noun: Noun, share: float, *, owned: bool = False) -> Phrase:
    """An adjective for the noun in this share of cases, otherwise nothing; what is owned has no second 的.

    >>> from regard.data.grammar.nouns import BY_NAME
    >>> describe(Draw("a key"), BY_NAME["umbrella"], 1.0).english[0] in {one.word for one in DESCRIBED}
    True
    """
    options = fitting(noun.kinds) if share and draw.chance(share) else ()
    if owned:
        options = tuple(
            one for one in options if len(one.phrase.chinese) == 1 or one.kinds & noun.kinds == {"coloured"}
        )
    if not options:
        return NOTHING
    chosen = draw.pick(options)
    draw.pair(chosen.word, noun.one)
    return chosen.phrase._replace(chinese=chosen.phrase.chinese[:1]) if owned else chosen.phrase
