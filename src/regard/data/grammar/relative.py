"""Patterns with a clause inside a noun phrase: the man who is reading a book, 正在看书的男人."""

from regard.data.grammar import times
from regard.data.grammar.action import OBJECT_NOUNS, action, place_of
from regard.data.grammar.adjectives import COLOURS, FEELINGS, comparing, degree
from regard.data.grammar.clause import clause, going_on, predicate, says, statement
from regard.data.grammar.determiners import OWNERS, noun_phrase
from regard.data.grammar.draw import Draw
from regard.data.grammar.nouns import Noun, of_kind
from regard.data.grammar.people import CLOSE, FAMILY, STRANGERS, Somebody, somebody
from regard.data.grammar.phrase import NOTHING, Phrase, weave
from regard.data.grammar.places import CITIES, spots
from regard.data.grammar.states import likes_clause
from regard.data.grammar.things import garment
from regard.data.grammar.verbs import ON_OBJECTS

_GOT = tuple(
    verb for verb in ON_OBJECTS if verb.base in {"buy", "borrow", "find", "draw", "write", "make", "see", "read"}
)


def person_who(draw: Draw, *, now: bool = True) -> Somebody:
    """Somebody by what they are doing: the girl who is singing, 正在唱歌的女孩; without `now`, by home or clothes."""
    noun, person = draw.pick(STRANGERS)
    kind = draw.random() if now else 0.6 + 0.4 * draw.random()
    if kind < 0.6:
        act = action(draw, Somebody(Phrase((noun.one,), ()), "one"), "now", 0.0)
        place = place_of(draw, act, 0.45)
        does = clause(
            Somebody(NOTHING, "one"), predicate(act.verb, act.what, "ing"), aux=going_on("is", place), place=place
        )
    elif kind < 0.8:
        worn = garment(draw, person)
        colour = NOTHING
        if draw.chance(0.7):
            colour = draw.pick(COLOURS)
            draw.pair(colour.english[0], worn.one)
            colour = colour._replace(chinese=colour.chinese[:1])  # two 的 in a row would be heavy
        wear = "戴" if "donned" in worn.kinds else "穿"
        does = weave("is:1 wearing:1 {o}", f"{wear}:1 着:1 {{o}}", o=noun_phrase(worn, "a", colour))
    else:
        does = weave("lives:1 {p}", "住:1 {p}", p=draw.pick(CITIES).where)
    who = weave(f"the {noun.one}:1 who:2 {{v}}", f"{{v}} 的:2 {noun.chinese}:1", v=does)
    return Somebody(who, person)


def thing_that(draw: Draw, who: Somebody) -> tuple[Phrase, Noun]:
    """Something by what was done to it: the book that I bought yesterday, 我昨天买的书."""
    verb = draw.pick(_GOT)
    noun = draw.pick([one for one in OBJECT_NOUNS[verb.base] if not one.measured])
    draw.pair(verb.base, noun.one)
    time = draw.pick(times.PAST + times.LONG_AGO[:3]) if draw.chance(0.6) or verb.base == "read" else NOTHING
    english, chinese = (
        f"the {noun.one}:1 that:2 {{s}} {verb.past}:3 {{t}}",
        f"{{s}} {{t}} {verb.chinese}:3 的:2 {noun.chinese}:1",
    )
    return weave(english, chinese, s=who.phrase, t=time), noun


def who_is(draw: Draw) -> Phrase:
    """The man who is reading a book is my teacher."""
    who = person_who(draw)
    kind = draw.pick(range(4))
    if kind == 0:
        noun, owner = draw.pick(CLOSE), draw.pick(tuple(OWNERS))
        is_ = weave("is:1 {n}", "是:1 {n}", n=noun_phrase(noun, owner, NOTHING))
    elif kind == 1:
        is_ = weave(
            "is:1 {n}",
            "是:1 {n}",
            n=draw.until(lambda d: d.pick(FAMILY), lambda one: who.person in {one.person, "one"}).phrase,
        )
    elif kind == 2:
        word, chinese = draw.pick(FEELINGS)
        much, zh = draw.pick((("", "很"), ("very:2", "非常:2")))
        is_ = weave(f"is {much} {word}:1", f"{zh} {chinese}:1")
    else:
        return statement(likes_clause(draw, who))
    return weave("{s} {is} .:1", "{s} {is} 。:1", s=who.phrase, **{"is": is_})


def that_is(draw: Draw) -> Phrase:
    """The book that he bought yesterday is very interesting."""
    what, noun = thing_that(draw, somebody(draw))
    options = comparing(noun.kinds)
    if not options or draw.chance(0.25):
        who = somebody(draw)
        verb, chinese = draw.pick((("like", "喜欢:1"), ("love", "非常:1 喜欢:1")))
        return weave(f"{{s}} {says(who, verb)}:1 {{o}} .:2", f"{{s}} {chinese} {{o}} 。:2", s=who.phrase, o=what)
    adjective = draw.pick(options)
    draw.pair(adjective.plain, noun.one)
    much, zh = degree(draw, adjective.plain)
    return weave(f"{{s}} is {much} {adjective.plain}:1 .:3", f"{{s}} {zh} {adjective.chinese}:1 。:3", s=what)


def knows_who(draw: Draw) -> Phrase:
    """I know the woman who is singing in the garden."""
    who = somebody(draw)
    verb, chinese = draw.pick((("know", "认识"), ("like", "喜欢")))
    return weave(
        f"{{s}} {says(who, verb)}:1 {{o}} .:2", f"{{s}} {chinese}:1 {{o}} 。:2", s=who.phrase, o=person_who(draw).phrase
    )


def animal_that(draw: Draw) -> Phrase:
    """The cat that is sleeping on the sofa is very cute."""
    noun = draw.pick(of_kind("pet"))
    posture, chinese = draw.pick((("sleeping", "睡"), ("lying", "躺"), ("sitting", "坐")))
    spot = draw.pick(
        spots("on sofa mat bed chair grass, under table tree chair, in box, next_to bed, in_front_of door")
    ).at
    what = weave(f"the {noun.one}:1 that:2 is {posture}:3 {{p}}", f"{chinese}:3 {{p}} 的:2 {noun.chinese}:1", p=spot)
    kind = draw.pick(range(3))
    if kind == 0:
        word, said = draw.pick((("cute", "可爱"), ("big", "大"), ("small", "小"), ("clever", "聪明"), ("old", "老")))
        draw.pair(word, noun.one)
        return weave(f"{{s}} is very:3 {word}:1 .:2", f"{{s}} 非常:3 {said}:1 。:2", s=what)
    if kind == 1:
        owner, said = draw.pick((("mine", "我"), ("yours", "你"), ("his", "他"), ("hers", "她"), ("ours", "我们")))
        return weave(f"{{s}} is:1 {owner}:3 .:2", f"{{s}} 是:1 {said}:3 的:3 。:2", s=what)
    who = somebody(draw)
    return weave(f"{{s}} {says(who, 'like')}:1 {{o}} .:2", "{s} 喜欢:1 {o} 。:2", s=who.phrase, o=what)
