"""Patterns of what is: feelings, qualities, comparison, belonging, liking, weather."""

from regard.data.grammar.action import thing
from regard.data.grammar.adjectives import FEELINGS, GRADED, comparing, degree
from regard.data.grammar.clause import be, do, have, predicate, says, statement, was
from regard.data.grammar.determiners import NUMBERS, OWNERS, noun_phrase
from regard.data.grammar.draw import Draw
from regard.data.grammar.nouns import Noun, of_kind
from regard.data.grammar.people import FAMILY, JOBS, NAMES, PRONOUNS, TITLED, Somebody, is_grown, somebody
from regard.data.grammar.phrase import NOTHING, Phrase, weave
from regard.data.grammar.places import CITIES, PLACES
from regard.data.grammar.times import PAST
from regard.data.grammar.verbs import ACTIVITIES

COMPARED = tuple(
    noun for noun in of_kind("goods", "sized", "readable", "vehicle", "watched", "heavy") if not noun.measured
)
YOUNG = tuple(
    one
    for one in (*PRONOUNS, *NAMES, *FAMILY)
    if {"he", "she", "brother", "sister"} & {*one.phrase.english} or one in NAMES
)
SINGLES = tuple(one for one in (*PRONOUNS, *NAMES, *TITLED[:4], *FAMILY) if one.person in {"he", "she"})
NAMED = (*NAMES, *TITLED)
OF_PEOPLE = tuple(adjective for adjective in GRADED if "person" in adjective.kinds)
SKILLS = tuple(verb for verb in ACTIVITIES if "skill" in verb.flags)
LIKED = tuple(verb for verb in ACTIVITIES if verb.base not in {"have", "wash", "clean", "do", "rest", "work"})
LIKED_THINGS = of_kind("pet", "wild", "fruit", "drink", "tasty", "interesting", "beautiful", "clothes", "sweet")
ABSTRACT = (
    ("music", "音乐"),
    ("football", "足球"),
    ("winter", "冬天"),
    ("spring", "春天"),
    ("summer", "夏天"),
    ("animals", "动物"),
)
PRICES = (("twelve", "十二"), ("twenty", "二十"), ("thirty", "三十"), ("fifty", "五十"), ("one hundred", "一百"))
LIKING = (("like", "喜欢:1"), ("love", "非常:1 喜欢:1"), ("hate", "讨厌:1"))


def feels(draw: Draw, who: Somebody) -> Phrase:
    """A clause about how somebody feels: 很, 非常, 太…了, 不."""
    word, chinese = draw.pick(FEELINGS)
    choice = draw.random()
    if choice < 0.3:
        return weave(f"{{s}} {be(who)} {word}:1", f"{{s}} 很 {chinese}:1", s=who.phrase)
    if choice < 0.55:
        return weave(f"{{s}} {be(who)} very:2 {word}:1", f"{{s}} 非常:2 {chinese}:1", s=who.phrase)
    if choice < 0.65:
        return weave(f"{{s}} {be(who)} too:2 {word}:1", f"{{s}} 太:2 {chinese}:1 了:2", s=who.phrase)
    if choice < 0.8:
        return weave(f"{{s}} {be(who)} not:2 {word}:1", f"{{s}} 不:2 {chinese}:1", s=who.phrase)
    return weave(f"{{s}} {was(who)} {word}:1 {{t}}", f"{{s}} {{t}} 很 {chinese}:1", s=who.phrase, t=draw.pick(PAST))


def feeling(draw: Draw) -> Phrase:
    """My brother is very tired."""
    return statement(feels(draw, somebody(draw)))


def quality(draw: Draw) -> Phrase:
    """This book is very interesting."""
    noun = draw.pick(COMPARED)
    adjective = draw.pick(comparing(noun.kinds))
    draw.pair(adjective.plain, noun.one)
    determiner = draw.pick(("the", "this", "that", "that", draw.pick(tuple(OWNERS))))
    what = noun_phrase(noun, determiner, NOTHING)
    if draw.chance(0.2):
        return weave(f"{{n}} is too:2 {adjective.plain}:1 .:3", f"{{n}} 太:2 {adjective.chinese}:1 了:2 。:3", n=what)
    much, chinese = degree(draw, adjective.plain)
    return weave(f"{{n}} is {much} {adjective.plain}:1 .:3", f"{{n}} {chinese} {adjective.chinese}:1 。:3", n=what)


def job(draw: Draw) -> Phrase:
    """Her mother is a doctor."""
    who = draw.pick(SINGLES)
    noun = draw.pick([one for one in JOBS if one.one != "student" or not is_grown(who)])
    return weave(f"{{s}} {be(who)}:1 {{n}} .:2", "{s} 是:1 {n} 。:2", s=who.phrase, n=thing(draw, noun, "a", 0.4))


def compare(draw: Draw) -> Phrase:
    """Tom is taller than his brother; this box is as heavy as that box."""
    if draw.chance(0.55):
        adjective = draw.pick(OF_PEOPLE)
        options = NAMED if adjective.plain in {"old", "young"} else SINGLES[2:]  # no son is older than a father
        first = draw.pick(options).phrase
        second = draw.until(
            lambda d: d.pick(options).phrase,
            lambda one: one.english[-1] != first.english[-1] and one.english[0] != first.english[0],
        )
    else:
        noun = draw.pick(COMPARED)
        adjective = draw.pick(comparing(noun.kinds))
        draw.pair(adjective.plain, noun.one)
        owners = draw.pick((("this", "that"), ("my", "your"), ("his", "my"), ("her", "his"), ("our", "their")))
        first, second = (noun_phrase(noun, owner, NOTHING) for owner in owners)
    if draw.chance(0.65):
        return weave("{a} is {more} than:1 {b} .:2", "{a} 比:1 {b} {more} 。:2", a=first, b=second, more=adjective.more)
    return weave(
        f"{{a}} is as:2 {adjective.plain}:1 as:3 {{b}} .:4",
        f"{{a}} 和:3 {{b}} 一样:2 {adjective.chinese}:1 。:4",
        a=first,
        b=second,
    )


def most(draw: Draw) -> Phrase:
    """Mary is the tallest student in the class; this is the cheapest hat."""
    if draw.chance(0.5):
        who, adjective = draw.pick(YOUNG), draw.pick(OF_PEOPLE)
        return weave(
            f"{{s}} {be(who)}:1 the {{most}} student:2 in:3 the class:4 .:5",
            "{s} 是:1 班:4 里:3 {most} 的 学生:2 。:5",
            s=who.phrase,
            most=adjective.most,
        )
    noun = draw.pick(COMPARED)
    adjective = draw.pick(comparing(noun.kinds))
    draw.pair(adjective.plain, noun.one)
    return weave(
        f"this:1 is:2 the {{most}} {noun.one}:3 .:4",
        f"这:1 是:2 {{most}} 的 {noun.chinese}:3 。:4",
        most=adjective.most,
    )


def likes_clause(draw: Draw, who: Somebody) -> Phrase:
    """A clause about what somebody likes, loves or does not like."""
    if draw.chance(0.3):
        word, chinese = draw.pick(ABSTRACT)
        what = weave(f"{word}:1", f"{chinese}:1")
    else:
        noun = draw.pick(LIKED_THINGS)
        what = thing(draw, noun, draw.pick(("", "", "", "this", "that", "these")))
    verb, chinese = draw.pick(LIKING)
    if draw.chance(0.3) and verb == "like":
        return weave(f"{{s}} {do(who)}:2 not:2 like:1 {{o}}", "{s} 不:2 喜欢:1 {o}", s=who.phrase, o=what)
    return weave(f"{{s}} {says(who, verb)}:1 {{o}}", f"{{s}} {chinese} {{o}}", s=who.phrase, o=what)


def likes(draw: Draw) -> Phrase:
    """The girl likes red apples."""
    return statement(likes_clause(draw, somebody(draw)))


def likes_doing(draw: Draw) -> Phrase:
    """They like to play football; he does not like to get up early."""
    who, verb = somebody(draw), draw.pick(LIKED)
    does = predicate(verb, NOTHING, "base")
    if draw.chance(0.25):
        return weave(f"{{s}} {do(who)}:2 not:2 like:1 to:1 {{v}} .:3", "{s} 不:2 喜欢:1 {v} 。:3", s=who.phrase, v=does)
    return weave(f"{{s}} {says(who, 'like')}:1 to:1 {{v}} .:3", "{s} 喜欢:1 {v} 。:3", s=who.phrase, v=does)


def skill_clause(draw: Draw, who: Somebody) -> Phrase:
    """A clause about what somebody can do, or cannot: 会, 不会."""
    does = predicate(draw.pick(SKILLS), NOTHING, "base")
    if draw.chance(0.3):
        return weave("{s} cannot:1 {v}", "{s} 不:1 会:1 {v}", s=who.phrase, v=does)
    return weave("{s} can:1 {v}", "{s} 会:1 {v}", s=who.phrase, v=does)


def skill(draw: Draw) -> Phrase:
    """My sister can play the piano."""
    return statement(skill_clause(draw, somebody(draw)))


def lives(draw: Draw) -> Phrase:
    """He lives in Beijing; her father works in a bank."""
    who = somebody(draw)
    if draw.chance(0.5):
        options = [place.where for place in (*CITIES, *PLACES) if place.kinds & {"far", "settled"}]
        return weave(f"{{s}} {says(who, 'live')}:1 {{p}} .:2", "{s} 住:1 {p} 。:2", s=who.phrase, p=draw.pick(options))
    options = [place.where for place in (*CITIES, *PLACES) if place.kinds & {"far", "working"}]
    return weave(f"{{s}} {says(who, 'work')}:1 {{p}} .:2", "{s} {p} 工作:1 。:2", s=who.phrase, p=draw.pick(options))


def has_clause(draw: Draw, who: Somebody) -> Phrase:
    """A clause about what somebody has, or has not: 有, 没有."""
    noun: Noun = draw.pick(of_kind("owned", "pet"))
    if draw.chance(0.25) and not noun.measured:
        return weave(f"{{s}} {have(who)}:1 no:1 {noun.one}:2", f"{{s}} 没有:1 {noun.chinese}:2", s=who.phrase)
    what = thing(draw, noun, draw.pick(("a", "a", "a", "two", "three", "many")), 0.5)
    return weave(f"{{s}} {have(who)}:1 {{o}}", "{s} 有:1 {o}", s=who.phrase, o=what)


def has(draw: Draw) -> Phrase:
    """She has two black cats."""
    return statement(has_clause(draw, somebody(draw)))


def mine(draw: Draw) -> Phrase:
    """This umbrella is mine."""
    noun = draw.pick([one for one in of_kind("owned") if not one.measured])
    owner, chinese = draw.pick(
        (("mine", "我"), ("yours", "你"), ("his", "他"), ("hers", "她"), ("ours", "我们"), ("theirs", "他们"))
    )
    word, zh = draw.pick((("is:1", "是:1"), ("is:1 not:3", "不:3 是:1")))
    return weave(
        f"{{n}} {word} {owner}:2 .:4",
        f"{{n}} {zh} {chinese}:2 的:2 。:4",
        n=thing(draw, noun, draw.pick(("this", "that"))),
    )


def age(draw: Draw) -> Phrase:
    """His daughter is twelve years old."""
    who, (number, chinese) = draw.pick(YOUNG), draw.pick(tuple(NUMBERS.items()))
    time = draw.pick((NOTHING, NOTHING, weave("this:1 year:1", "今年:1")))
    return weave(
        f"{{s}} {be(who)} {number}:1 years:2 old:2 {{t}} .:3",
        f"{{s}} {{t}} {chinese}:1 岁:2 。:3",
        s=who.phrase,
        t=time,
    )


def price(draw: Draw) -> Phrase:
    """This hat costs twenty yuan."""
    noun = draw.pick([one for one in of_kind("fruit", "clothes", "donned", "printed", "baked") if not one.measured])
    small = noun.kinds & {"fruit", "baked"}
    number, chinese = draw.pick(tuple(NUMBERS.items())[:9] if small else PRICES)
    number, chinese = (" ".join(f"{word}:1" for word in text.split()) for text in (number, chinese))
    return weave(
        f"{{n}} costs {number} yuan:2 .:3",
        f"{{n}} {chinese} 元:2 。:3",
        n=thing(draw, noun, draw.pick(("this", "that"))),
    )


def easy(draw: Draw) -> Phrase:
    """It is difficult to learn Chinese."""
    word, chinese = draw.pick((("easy", "容易"), ("difficult", "难"), ("interesting", "有趣"), ("important", "重要")))
    does = predicate(
        draw.pick([verb for verb in SKILLS + LIKED if verb.base in {"learn", "swim", "play", "cook", "drive"}]),
        NOTHING,
        "base",
    )
    much, zh = degree(draw, word)
    return weave(f"it is {much} {word}:1 to {{v}} .:2", f"{{v}} {zh} {chinese}:1 。:2", v=does)


def everyone(draw: Draw) -> Phrase:
    """Every student likes music: 每个…都."""
    noun = draw.pick(JOBS[:4])
    every = (
        noun_phrase(noun, "every", NOTHING)
        if draw.chance(0.6)
        else weave(f"all:1 the {noun.more}:2", f"所有:1 的 {noun.chinese}:2")
    )
    who = Somebody(every, "one" if every.english[0] == "every" else "they")
    if draw.chance(0.4):
        does = weave("can:1 {v}", "会:1 {v}", v=predicate(draw.pick(SKILLS), NOTHING, "base"))
    else:
        word, chinese = draw.pick(ABSTRACT)
        does = weave(f"{says(who, 'like')}:1 {word}:2", f"喜欢:1 {chinese}:2")
    return weave("{s} {v} .:1", "{s} 都 {v} 。:1", s=who.phrase, v=does)
