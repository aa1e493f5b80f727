"""Patterns of questions: what, who, where, why, when, how many. Chinese leaves the words where they are."""

from regard.data.grammar import times
from regard.data.grammar.action import OBJECT_NOUNS, action, place_of, thing, time_of
from regard.data.grammar.adjectives import FEELINGS
from regard.data.grammar.clause import be, do, going_on, predicate, question
from regard.data.grammar.determiners import OWNERS, noun_phrase
from regard.data.grammar.draw import Draw
from regard.data.grammar.nouns import of_kind
from regard.data.grammar.people import JOBS, STRANGERS, Somebody, somebody, somebody_known
from regard.data.grammar.phrase import NOTHING, Phrase, weave
from regard.data.grammar.places import CITIES, GOALS, PLACES
from regard.data.grammar.states import LIKED_THINGS, SKILLS
from regard.data.grammar.things import lying
from regard.data.grammar.verbs import ON_OBJECTS


def somebody_asked(draw: Draw) -> Somebody:
    """Somebody one asks about; people seldom ask what they do themselves."""
    return draw.until(somebody, lambda who: who.person not in {"I", "we"})


_ORDER = "{s} {t} {p} {v}"
_OBJECT_VERBS = {verb.base: verb for verb in ON_OBJECTS}


def yes_no(draw: Draw) -> Phrase:
    """Did you buy the book yesterday? Does she drink coffee? Will they come? Is he sleeping?"""
    who = somebody_asked(draw)
    kind = draw.pick(("past", "past", "habit", "future", "now"))
    act = action(draw, who, kind)
    place = place_of(draw, act, 0.25)
    time = time_of(draw, act, kind) if kind == "habit" or (kind != "now" and draw.chance(0.5)) else NOTHING
    slots = {"s": who.phrase, "p": place, "t": time}
    if kind == "past":
        does = predicate(act.verb, act.what, "base", "了", definite=act.definite)
        return weave("did:1 {s} {v} {p} {t} ?:2", f"{_ORDER} 吗:1 ?:2", v=does, **slots)
    if kind == "now":
        does = predicate(act.verb, act.what, "ing")
        slots["t"] = going_on("", place)._replace(english=(), links=())
        return weave(f"{be(who)}:1 {{s}} {{v}} {{p}} {{t}} ?:2", "{s} {t} {p} {v} 吗:1 ?:2", v=does, **slots)
    word = do(who) if kind == "habit" else "will"
    does = predicate(act.verb, act.what, "base")
    will = "会:1" if kind == "future" else ""
    return weave(f"{word}:1 {{s}} {{v}} {{p}} {{t}} ?:2", f"{{s}} {{t}} {will} {{p}} {{v}} 吗:1 ?:2", v=does, **slots)


def may(draw: Draw) -> Phrase:
    """May I use your computer? Can you swim?"""
    if draw.chance(0.4):
        who = somebody_asked(draw)
        return weave(
            "can:1 {s} {v} ?:2", "{s} 会:1 {v} 吗:1 ?:2", s=who.phrase, v=predicate(draw.pick(SKILLS), NOTHING, "base")
        )
    we = draw.pick((weave("I:1", "我:1"), weave("we:1", "我们:1")))
    verb = _OBJECT_VERBS[draw.pick(("use", "borrow", "read", "eat", "drink", "open", "close"))]
    noun = draw.pick(OBJECT_NOUNS[verb.base])
    draw.pair(verb.base, noun.one)
    determiner = "the" if "shut" in noun.kinds else draw.pick(("this", "that", "your"))
    return weave(
        "may:1 {s} {v} ?:2",
        "{s} 可以:1 {v} 吗:1 ?:2",
        s=we,
        v=predicate(verb, thing(draw, noun, determiner, 0.1), "base"),
    )


def is_it(draw: Draw) -> Phrase:
    """Are you tired? Is there a bank near the station? Is she a nurse?"""
    kind = draw.pick(range(3))
    if kind == 0:
        who, (word, chinese) = somebody_asked(draw), draw.pick(FEELINGS)
        return weave(f"{be(who)}:1 {{s}} {word}:2 ?:3", f"{{s}} {chinese}:2 吗:1 ?:3", s=who.phrase)
    if kind == 1:
        public = [place for place in PLACES if "public" in place.kinds]
        one, two = draw.pick(public), draw.pick(public)
        while one == two:
            two = draw.pick(public)
        return weave(
            f"is:1 there:1 a {one.english}:2 near:3 the {two.english}:4 ?:5",
            f"{two.chinese}:4 附近:3 有:1 {one.chinese}:2 吗:1 ?:5",
        )
    who = draw.until(somebody_known, lambda found: found.person in {"he", "she", "you"})
    noun = draw.pick(JOBS)
    return weave(f"{be(who)}:1 {{s}} a {noun.one}:2 ?:3", f"{{s}} 是:1 {noun.chinese}:2 吗:1 ?:3", s=who.phrase)


def what(draw: Draw) -> Phrase:
    """What are you doing? What did he buy yesterday? What does she like to eat?"""
    who = somebody_asked(draw)
    kind = draw.pick(range(4))
    if kind == 0:
        place = (
            draw.pick([place.where for place in PLACES if place.kinds & {"quiet", "outdoor", "room"}])
            if draw.chance(0.4)
            else NOTHING
        )
        zheng = "正:1" if place.chinese else "正在:1"
        return weave(
            f"what:2 {be(who)}:1 {{s}} doing:3 {{p}} ?:4", f"{{s}} {zheng} {{p}} 做:3 什么:2 ?:4", s=who.phrase, p=place
        )
    verb = _OBJECT_VERBS[draw.pick(("eat", "drink", "buy", "read", "write", "draw", "make"))]
    if kind == 1:
        time = draw.pick(times.PAST)
        does = weave(f"{verb.base}:1", f"{verb.chinese}:1 了:1")
        return weave("what:2 did {s} {v} {t} ?:3", "{s} {t} {v} 什么:2 ?:3", s=who.phrase, v=does, t=time)
    does = weave(f"{verb.base}:1", f"{verb.chinese}:1")
    if kind == 2:
        aux, chinese = draw.pick((("like:4 to:4", "喜欢:4"), ("want:4 to:4", "想:4")))
        return weave(
            f"what:2 {do(who)} {{s}} {aux} {{v}} ?:3", f"{{s}} {chinese} {{v}} 什么:2 ?:3", s=who.phrase, v=does
        )
    return weave(
        "what:2 will:4 {s} {v} {t} ?:3", "{s} {t} 会:4 {v} 什么:2 ?:3", s=who.phrase, v=does, t=draw.pick(times.FUTURE)
    )


def who_did(draw: Draw) -> Phrase:
    """Who ate the cake? Who is singing in the garden? Who is that woman?"""
    someone = Somebody(weave("who:1", "谁:1"), "one")
    kind = draw.pick(range(4))
    if kind == 0:
        act = action(draw, someone, "past")
        return question(
            weave(
                "{s} {v} {t}",
                "{s} {t} {v}",
                s=someone.phrase,
                t=time_of(draw, act, "past") if draw.chance(0.4) else NOTHING,
                v=predicate(act.verb, act.what, "past", "了", definite=act.definite),
            )
        )
    if kind == 1:
        act = action(draw, someone, "now")
        place = place_of(draw, act, 0.6)
        return question(
            weave(
                "{s} {is} {v} {p}",
                "{s} {is} {p} {v}",
                s=someone.phrase,
                p=place,
                v=predicate(act.verb, act.what, "ing"),
                **{"is": going_on("is", place)},
            )
        )
    if kind == 2:
        noun, _ = draw.pick(STRANGERS)
        return weave("who:1 is:2 {n} ?:3", "{n} 是:2 谁:1 ?:3", n=thing(draw, noun, draw.pick(("this", "that")), 0.4))
    act = action(draw, someone, "future")
    return question(
        weave(
            "{s} wants:1 to:1 {v} {t}",
            "{s} {t} 想:1 {v}",
            s=someone.phrase,
            v=predicate(act.verb, act.what, "base"),
            t=time_of(draw, act, "future") if draw.chance(0.4) else NOTHING,
        )
    )


def where_is(draw: Draw) -> Phrase:
    """Where is my key? Where does he live? Where did you go yesterday?"""
    kind = draw.pick(range(5))
    who = somebody_asked(draw)
    if kind == 0:
        _, noun = lying(draw)
        determiner = draw.pick(("the", draw.pick(tuple(OWNERS))))
        return weave("where:1 is:2 {n} ?:3", "{n} 在:2 哪里:1 ?:3", n=thing(draw, noun, determiner))
    if kind == 1:
        word, chinese = draw.pick((("live:2", "{s} 住:2 在:1 哪里:1 ?:3"), ("work:2", "{s} 在:1 哪里:1 工作:2 ?:3")))
        return weave(f"where:1 {do(who)} {{s}} {word} ?:3", chinese, s=who.phrase)
    if kind == 2:
        return weave(
            "where:1 did:4 {s} go:2 {t} ?:3",
            "{s} {t} 去:2 了:4 哪里:1 ?:3",
            s=who.phrase,
            t=draw.pick(times.PAST + times.LONG_AGO),
        )
    if kind == 3:
        return weave(f"where:1 {be(who)} {{s}} ?:3", "{s} 在 哪里:1 ?:3", s=who.phrase)
    noun = draw.pick(of_kind("goods"))
    draw.pair("buy", noun.one)
    return weave(
        "where:1 did:5 {s} buy:2 {n} ?:3",
        "{s} 在:1 哪里:1 买:2 的:5 {n} ?:3",
        s=who.phrase,
        n=thing(draw, noun, draw.pick(("this", "that"))),
    )


def why(draw: Draw) -> Phrase:
    """Why is she crying? Why did they not come? Why do you like cats?"""
    who = somebody_asked(draw)
    kind = draw.pick(range(4))
    if kind == 0:
        act = action(draw, who, "not")
        time = time_of(draw, act, "not") if draw.chance(0.5) else NOTHING
        return weave(
            "why:1 did:2 {s} not:2 {v} {t} ?:3",
            "{s} {t} 为什么:1 没:2 {v} ?:3",
            s=who.phrase,
            v=predicate(act.verb, act.what, "base"),
            t=time,
        )
    if kind == 1:
        word, chinese = draw.pick(FEELINGS)
        return weave(f"why:1 {be(who)} {{s}} so:4 {word}:2 ?:3", f"{{s}} 为什么:1 这么:4 {chinese}:2 ?:3", s=who.phrase)
    if kind == 2:
        noun = draw.pick(LIKED_THINGS)
        negative, chinese = draw.pick((("", ""), ("not:5", "不:5")))
        return weave(
            f"why:1 {do(who)} {{s}} {negative} like:2 {{n}} ?:3",
            f"{{s}} 为什么:1 {chinese} 喜欢:2 {{n}} ?:3",
            s=who.phrase,
            n=thing(draw, noun, draw.pick(("", "this"))),
        )
    word, chinese = draw.pick((("crying", "哭"), ("laughing", "笑"), ("running", "跑")))
    return weave(f"why:1 {be(who)}:4 {{s}} {word}:2 ?:3", f"{{s}} 为什么:1 在:4 {chinese}:2 ?:3", s=who.phrase)


_MOVES = (
    ("go:1 to:1 {p}", "去:1 {p}"),
    ("go:1 home:2", "回:1 家:2"),
    ("come:1 back:1", "回来:1"),
    ("get:1 up:1", "起床:1"),
    ("leave:1", "离开:1"),
)


def when(draw: Draw) -> Phrase:
    """When will you come back? When does the shop open?"""
    who = somebody_asked(draw)
    english, chinese = draw.pick(_MOVES)
    does = weave(english, chinese, p=draw.pick(GOALS).to) if "{p}" in english else weave(english, chinese)
    aux, zh = draw.pick((("will:4", "会:4"), (do(who), ""), (f"{do(who)} {{s}} want:4 to:4", "想:4")))
    if "{s}" in aux:
        return weave(f"when:1 {aux} {{v}} ?:3", f"{{s}} {zh} 什么时候:1 {{v}} ?:3", s=who.phrase, v=does)
    return weave(f"when:1 {aux} {{s}} {{v}} ?:3", f"{{s}} 什么时候:1 {zh} {{v}} ?:3", s=who.phrase, v=does)


def how(draw: Draw) -> Phrase:
    """How do you go to school every day? How did she go to Beijing?"""
    who = somebody_asked(draw)
    if draw.chance(0.5):
        return weave(
            f"how:1 {do(who)} {{s}} go:2 to:2 {{p}} {{t}} ?:3",
            "{s} {t} 怎么:1 去:2 {p} ?:3",
            s=who.phrase,
            p=draw.pick(GOALS).to,
            t=draw.pick((NOTHING, times.HABITS[0], times.HABITS[3])),
        )
    return weave(
        "how:1 did:4 {s} go:2 to:2 {p} {t} ?:3",
        "{s} {t} 是:4 怎么:1 去:2 {p} 的:4 ?:3",
        s=who.phrase,
        p=draw.pick(CITIES + GOALS).to,
        t=draw.pick((NOTHING, *times.LONG_AGO[:3])),
    )


def how_many(draw: Draw) -> Phrase:
    """How many books do you have? How many students are there in the classroom? How much is this hat?"""
    kind = draw.pick(range(3))
    if kind == 0:
        who, noun = somebody_asked(draw), draw.pick([one for one in of_kind("owned", "pet") if not one.measured])
        verb, chinese = draw.pick(((f"{do(who)} {{s}} have:3", "有:3"), ("did:5 {s} buy:3", "买:3 了:5")))
        if verb.startswith("did"):
            draw.pair("buy", noun.one)
        return weave(
            f"how:1 many:1 {noun.more}:2 {verb} ?:4",
            f"{{s}} {chinese} 几:1 {noun.counter.chinese[0]} {noun.chinese}:2 ?:4",
            s=who.phrase,
        )
    if kind == 1:
        if draw.chance(0.5):
            noun, place = (
                draw.pick(STRANGERS[:7])[0],
                draw.pick(
                    [p for p in PLACES if p.kinds & {"public", "room", "working"} and p.where.chinese[-1] == "里"]
                ),
            )
            spot = Phrase(
                place.where.english, place.where.chinese[1:], tuple((a - 1, b) for a, b in place.where.links if a)
            )
        else:
            found, noun = lying(draw)
            spot = found.bare
        return weave(
            f"how:1 many:1 {noun.more}:2 are:3 there:3 {{p}} ?:4",
            f"{{p}} 有:3 多少:1 {noun.counter.chinese[0]} {noun.chinese}:2 ?:4",
            p=spot,
        )
    noun = draw.pick([one for one in of_kind("goods") if not one.measured])
    return weave(
        "how:1 much:1 is {n} ?:2", "{n} 多少:1 钱:1 ?:2", n=thing(draw, noun, draw.pick(("this", "that")), 0.3)
    )


def whose(draw: Draw) -> Phrase:
    """Whose umbrella is this? Which hat do you like?"""
    noun = draw.pick(
        [one for one in of_kind("owned", "clothes", "donned") if not one.measured and "goods" in one.kinds]
    )
    if draw.chance(0.4):
        here, chinese = draw.pick((("this", "这"), ("that", "那")))
        return weave(f"whose:1 {noun.one}:2 is:3 {here}:4 ?:5", f"{chinese}:4 是:3 谁:1 的:1 {noun.chinese}:2 ?:5")
    who = somebody_asked(draw)
    verb, chinese = draw.pick((("like:1", "喜欢:1"), ("want:1 to:1 buy:2", "想:1 买:2"), ("need:1", "需要:1")))
    if "buy" in verb:
        draw.pair("buy", noun.one)
    return weave(
        f"{{n}} {do(who)} {{s}} {verb} ?:5",
        f"{{s}} {chinese} {{n}} ?:5",
        n=noun_phrase(noun, "which", NOTHING),
        s=who.phrase,
    )


def either(draw: Draw) -> Phrase:
    """Do you like tea or coffee? 还是."""
    who = somebody_asked(draw)
    options, verb, chinese = draw.pick(
        (
            (of_kind("drink")[:6], "want:1 to:1 drink:2", "想:1 喝:2"),
            (of_kind("fruit"), "want:1 to:1 eat:2", "想:1 吃:2"),
            (of_kind("pet"), "like:1", "喜欢:1"),
            (of_kind("fruit"), "like:1", "喜欢:1"),
            (of_kind("drink")[:6], "like:1", "喜欢:1"),
        )
    )
    one, two = draw.pick(options), draw.pick(options)
    while one == two:
        two = draw.pick(options)
    for noun in (one, two):
        draw.pair("drink" if "drink" in verb else "eat" if "eat" in verb else "", noun.one)
    return weave(
        f"{do(who)} {{s}} {verb} {{a}} or:3 {{b}} ?:4",
        f"{{s}} {chinese} {{a}} 还是:3 {{b}} ?:4",
        s=who.phrase,
        a=noun_phrase(one, "", NOTHING),
        b=noun_phrase(two, "", NOTHING),
    )
