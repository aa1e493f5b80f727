"""Verbs in their forms and clauses in their order.

English says who, aux, verb, object, place, time; Chinese says who, time, aux, place, verb, object. One pattern holds
both, whatever the tense.
"""

from regard.data.grammar.people import Somebody
from regard.data.grammar.phrase import NOTHING, Phrase, weave
from regard.data.grammar.verbs import Verb

BE = {"I": "am", "he": "is", "she": "is", "it": "is", "one": "is"}
WAS = {"I": "was", "he": "was", "she": "was", "it": "was", "one": "was"}
SINGULAR = frozenset({"he", "she", "it", "one"})


def be(who: Somebody) -> str:
    """Am, is or are."""
    return BE.get(who.person, "are")


def was(who: Somebody) -> str:
    """Was or were."""
    return WAS.get(who.person, "were")


def do(who: Somebody) -> str:
    """Does or do."""
    return "does" if who.person in SINGULAR else "do"


def have(who: Somebody) -> str:
    """Has or have."""
    return "has" if who.person in SINGULAR else "have"


def present(who: Somebody) -> str:
    """The form of a verb in the present: third or base."""
    return "third" if who.person in SINGULAR else "base"


def says(who: Somebody, base: str) -> str:
    """A regular verb in the present."""
    return base + "s" if who.person in SINGULAR else base


def predicate(verb: Verb, what: Phrase, form: str, aspect: str = "", *, definite: bool = False) -> Phrase:
    """A verb in an English form with what follows it, and in Chinese with an aspect: 了, 过, 着 or none.

    An activity takes 了 at its end (看电视了), a verb with an object takes it before the object (看了一本书). A
    definite object that is used up comes first, after 把 (把门打开了).

    >>> from regard.data.grammar.verbs import ACTIVITIES, ON_OBJECTS
    >>> "".join(predicate(ACTIVITIES[0], NOTHING, "past", "了").chinese)
    '游泳了'
    >>> "".join(predicate(ON_OBJECTS[0], weave("the cake:1", "蛋糕:1"), "past", "了", definite=True).chinese)
    '把蛋糕吃了'
    """
    head = " ".join(f"{word}:v" for word in (getattr(verb, form), verb.particle) if word)
    english = f"{head} {verb.after} {{o}}"
    if aspect == "了" and definite and verb.ba:
        chinese = f"把 {{o}} {verb.ba}:v 了:v"
    elif aspect == "了":
        said, early = verb.ba or verb.chinese, what.english or "long" in verb.flags
        chinese = f"{said}:v 了:v {{o}}" if early else f"{said}:v {{o}} 了:v"
    elif aspect == "过":
        chinese = f"{verb.ever}:v 过:v {{o}}"
    elif aspect:
        chinese = f"{verb.chinese}:v {aspect}:v {{o}}"
    else:
        chinese = f"{verb.chinese}:v {{o}}"
    return weave(english, chinese, o=what if what.english else verb.rest)


def clause(
    who: Somebody, does: Phrase, *, aux: Phrase = NOTHING, place: Phrase = NOTHING, time: Phrase = NOTHING,
    adverb: Phrase = NOTHING, front: bool = False,
) -> Phrase:  # fmt: skip
    """Who does what where and when, in the order of each language; `front` puts the time first in both.

    >>> words = clause(Somebody(weave("I:1", "我:1"), "I"), weave("ran:1", "跑步:1 了:1"),
    ...     place=weave("at:1 school:2", "在:1 学校:2"), time=weave("yesterday:1", "昨天:1"))
    >>> " ".join(words.english), "".join(words.chinese)
    ('I ran at school yesterday', '我昨天在学校跑步了')
    """
    slots = {"s": who.phrase, "does": does, "aux": aux, "place": place, "time": time, "adverb": adverb}
    if front and time.english:
        return weave("{time} , {s} {adverb} {aux} {does} {place}", "{time} {s} {adverb} {aux} {place} {does}", **slots)
    return weave("{s} {adverb} {aux} {does} {place} {time}", "{s} {time} {adverb} {aux} {place} {does}", **slots)


def going_on(word: str, place: Phrase) -> Phrase:
    """What says that something is going on: is … 正在; before a place that begins with 在, 正 alone."""
    return weave(f"{word}:1", "正:1" if place.chinese[:1] == ("在",) else "正在:1")


def statement(said: Phrase) -> Phrase:
    """A clause as a whole sentence."""
    return weave("{c} .:1", "{c} 。:1", c=said)


def question(said: Phrase) -> Phrase:
    """A clause as a whole question."""
    return weave("{c} ?:1", "{c} ?:1", c=said)
