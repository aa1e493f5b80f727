"""Patterns of going, giving, calling, helping, lasting: verbs that need more than one object or a word of their own."""

from regard.data.grammar import times
from regard.data.grammar.action import other, thing
from regard.data.grammar.clause import clause, have, predicate, present, says, statement
from regard.data.grammar.determiners import noun_phrase
from regard.data.grammar.draw import Draw
from regard.data.grammar.nouns import BY_NAME, of_kind
from regard.data.grammar.people import Somebody, friend, is_grown, somebody, somebody_known
from regard.data.grammar.phrase import NOTHING, Phrase, phrases, weave
from regard.data.grammar.places import CITIES, GOALS, SCHOOL, where
from regard.data.grammar.verbs import ACTIVITIES

VEHICLES = phrases("""
    by:1 bus:2     | 坐:1 公共汽车:2
    by:1 taxi:2    | 坐:1 出租车:2
    by:1 bicycle:2 | 骑:1 自行车:2
    on:1 foot:1    | 走路:1
    by:1 train:2   | 坐:1 火车:2
    by:1 plane:2   | 坐:1 飞机:2
""")
SHARED = tuple(
    verb for verb in ACTIVITIES if "now" in verb.flags and verb.base not in {"sleep", "take", "do", "rest", "drive"}
)


def went_clause(draw: Draw, who: Somebody, *, front: float = 0.15) -> Phrase:
    """A clause about going somewhere in the past: 去了."""
    far = draw.chance(0.25)
    time = draw.pick(times.LONG_AGO if far else times.PAST)
    to = draw.pick(CITIES if far else GOALS).to
    if not far and draw.chance(0.2):
        return clause(who, weave("went:1 home:2", "回:1 家:2 了:1"), time=time)
    does = weave("went:1 to:1 {p}", "去:1 了:1 {p}", p=to)
    if draw.chance(0.3):
        ride = draw.pick(VEHICLES[4:] if far else VEHICLES[:4])
        does = weave("{go} {ride}", "{ride} {go}", go=does, ride=ride)
    return clause(who, does, time=time, front=draw.chance(front))


def went(draw: Draw) -> Phrase:
    """They went to Shanghai by train last week."""
    return statement(went_clause(draw, somebody(draw)))


def goes(draw: Draw) -> Phrase:
    """She goes to school by bus every day; we will go to the zoo tomorrow."""
    who = somebody(draw)
    ride = draw.pick(VEHICLES[:4]) if draw.chance(0.6) else NOTHING
    if draw.chance(0.5):
        goal = draw.pick((weave("work:1", "上班:1") if is_grown(who) else SCHOOL.to, draw.pick(GOALS).to))
        word, aux, time = "goes" if present(who) == "third" else "go", NOTHING, draw.pick(times.HABITS[:5])
    else:
        goal, word, time = draw.pick(GOALS).to, "go", draw.pick(times.FUTURE)
        aux = draw.pick(
            (weave("will:1", "会:1"), weave(f"{says(who, 'want')}:1 to:1", "想:1"), weave("should:1", "应该:1"))
        )
    does = weave(f"{word}:1 to:1 {{p}} {{ride}}", "{ride} 去:1 {p}", p=goal, ride=ride)
    return statement(clause(who, does, aux=aux, time=time))


def with_friends(draw: Draw) -> tuple[Somebody, Somebody]:
    """Somebody, and friends whom another owner calls so or nobody does: I and my friend."""
    return draw.until(
        lambda d: (somebody_known(d), friend(d)),
        lambda two: "and" not in two[0].phrase.english and not {*two[0].phrase.english} & {*two[1].phrase.english},
    )


def together(draw: Draw) -> Phrase:
    """He often plays football with his friends: 和…一起."""
    who, friends = with_friends(draw)
    verb = draw.pick(SHARED)
    place = draw.pick(where(*verb.places)) if verb.places and draw.chance(0.5) else NOTHING
    if draw.chance(0.5):
        adverb, time, form, aspect = draw.pick(times.ADVERBS[:5]), NOTHING, present(who), ""
    else:
        adverb, form, aspect = NOTHING, "past", "了"
        time = draw.pick(times.WHOLE_DAYS_AGO if "meal" in verb.flags else times.LONG_AGO[:2] + times.PAST[:2])
    slots = {
        "s": who.phrase,
        "adverb": adverb,
        "v": predicate(verb, NOTHING, form, aspect),
        "p": place,
        "t": time,
        "f": friends.phrase,
    }
    return weave("{s} {adverb} {v} with:1 {f} {p} {t} .:2", "{s} {t} {adverb} 和:1 {f} 一起:1 {p} {v} 。:2", **slots)


def clock(draw: Draw) -> Phrase:
    """My father gets up at six o'clock every morning."""
    who = somebody(draw)
    third = present(who) == "third"
    school = "work:1" if is_grown(who) else "school:2"
    get, go = ("gets", "goes") if third else ("get", "go")
    part, english, chinese = draw.pick(
        (
            ("morning", f"{get}:1 up:1", "起床:1"),
            ("morning", f"{go}:1 to:1 {school}", "去:1 上班:1" if is_grown(who) else "去:1 学校:2"),
            ("evening", f"{go}:1 to:1 bed:1", "睡觉:1"),
            ("evening", f"{go}:1 home:2", "回:1 家:2"),
            ("morning", f"{have(who)}:1 breakfast:2", "吃:1 早饭:2"),
        )
    )
    hour = draw.pick(times.CLOCK[:5] if part == "morning" else times.CLOCK[3:7])
    half = weave(f"every:1 {part}:2", "每天:1 早上:2" if part == "morning" else "每天:1 晚上:2")
    day = half if draw.chance(0.6) else weave("every:1 day:1", "每天:1")
    return weave(f"{{s}} {english} {{h}} {{d}} .:3", f"{{s}} {{d}} {{h}} {chinese} 。:3", s=who.phrase, h=hour, d=day)


_GIVING = (
    ("gave:1 {i} {o}", "给:1 了:1 {i} {o}", "gift"), ("sent:1 {i} {o}", "给 {i} 寄:1 了:1 {o}", "posted"),
    ("told:1 {i} {o}", "给 {i} 讲:1 了:1 {o}", "told"), ("showed:1 {i} {o}", "给 {i} 看:1 了:1 {o}", "shown"),
    ("bought:1 {o} for:2 {i}", "给:2 {i} 买:1 了:1 {o}", "gift"), ("lent:1 {i} {o}", "借:1 给:1 了:1 {i} {o}", "tool"),
    ("made:1 {o} for:2 {i}", "给:2 {i} 做:1 了:1 {o}", "baked"), ("gave:1 {o} to:1 {i}", "把 {o} 给:1 了:1 {i}", "the"),
)  # fmt: skip


def gave_clause(draw: Draw, who: Somebody) -> Phrase:
    """A clause in which somebody gives, sends, tells, shows or buys something to somebody."""
    english, chinese, kind = draw.pick(_GIVING)
    definite = kind == "the"
    noun = draw.pick([one for one in of_kind("gift" if definite else kind) if one.one != "email"])
    if english.startswith(("bought", "made")):
        draw.pair(english.partition(":")[0].replace("bought", "buy").replace("made", "make"), noun.one)
    what = thing(draw, noun, draw.pick(("the", "this", "that") if definite else ("a", "a", "a", "two", "some")), 0.3)
    time = draw.pick(times.PAST + times.DAYS) if draw.chance(0.5) else NOTHING
    return clause(who, weave(english, chinese, i=other(draw, who).phrase, o=what), time=time)


def gave(draw: Draw) -> Phrase:
    """My uncle gave me a camera."""
    return statement(gave_clause(draw, somebody(draw)))


def called(draw: Draw) -> Phrase:
    """She called her mother last night: 给…打电话."""
    who = somebody_known(draw)
    to = other(draw, who).phrase
    if draw.chance(0.5):
        return weave(
            "{s} called:1 {o} {t} .:2",
            "{s} {t} 给:1 {o} 打:1 了:1 电话:1 。:2",
            s=who.phrase,
            o=to,
            t=draw.pick(times.PAST),
        )
    return weave(
        "{s} will:3 call:1 {o} {t} .:2",
        "{s} {t} 会:3 给:1 {o} 打:1 电话:1 。:2",
        s=who.phrase,
        o=to,
        t=draw.pick(times.FUTURE),
    )


def borrowed(draw: Draw) -> Phrase:
    """I borrowed two books from the library: 从."""
    who = somebody(draw)
    noun = draw.pick([one for one in of_kind("printed") if one.kinds & {"novelty", "interesting"}])
    draw.pair("borrow", noun.one)
    what = thing(draw, noun, draw.pick(("a", "a", "two", "three", "some")), 0.3)
    place = (
        weave("from:1 the library:2", "从:1 图书馆:2")
        if draw.chance(0.5)
        else weave("from:1 {f}", "从:1 {f} 那里:1", f=other(draw, who).phrase)
    )
    does = weave("borrowed:1 {o} {p}", "{p} 借:1 了:1 {o}", o=what, p=place)
    return statement(clause(who, does, time=draw.pick(times.PAST) if draw.chance(0.5) else NOTHING))


def helps(draw: Draw) -> Phrase:
    """He often helps his mother wash the dishes: 帮."""
    who = somebody_known(draw)
    verb = draw.pick(
        [
            one
            for one in ACTIVITIES
            if one.base in {"wash", "clean", "cook"} or one.rest.english[:1] in {("Chinese",), ("English",)}
        ]
    )
    help_, chinese = draw.pick(
        (
            ("often:3 {h}", "经常:3 帮:1"),
            ("sometimes:3 {h}", "有时候:3 帮:1"),
            ("will:3 help:1", "会:3 帮:1"),
            ("should:3 help:1", "应该:3 帮:1"),
        )
    )
    english = help_.replace("{h}", says(who, "help") + ":1")
    return weave(
        f"{{s}} {english} {{o}} {{v}} .:2",
        f"{{s}} {chinese} {{o}} {{v}} 。:2",
        s=who.phrase,
        o=other(draw, who).phrase,
        v=predicate(verb, NOTHING, "base"),
    )


_MANNER = (
    ("run", "跑", (("fast", "快"), ("slowly", "慢"))), ("sing", "唱", (("well", "好"), ("beautifully", "好听"))),
    ("swim", "游", (("fast", "快"), ("well", "好"))),
    ("speak", "说", (("fast", "快"), ("slowly", "慢"), ("clearly", "清楚"))),
    ("dance", "跳", (("well", "好"), ("beautifully", "漂亮"))), ("walk", "走", (("fast", "快"), ("slowly", "慢"))),
    ("eat", "吃", (("fast", "快"), ("slowly", "慢"))), ("write", "写", (("well", "好"), ("clearly", "清楚"))),
    ("work", "工作", (("well", "好"),)),
)  # fmt: skip


def manner(draw: Draw) -> Phrase:
    """The boy runs very fast: 跑得很快."""
    who = somebody(draw)
    word, chinese, ways = draw.pick(_MANNER)
    way, said = draw.pick(ways)
    degree, zh = draw.pick((("", "很"), ("very:3", "非常:3"), ("too:3", "太:3")))
    end = "了:3" if "太" in zh else ""
    if way in {"well", "beautifully"} and end:
        degree, zh, end = "", "很", ""
    return weave(
        f"{{s}} {says(who, word)}:1 {degree} {way}:2 .:4",
        f"{{s}} {chinese}:1 得 {zh} {said}:2 {end} 。:4",
        s=who.phrase,
    )


def lasted(draw: Draw) -> Phrase:
    """She slept for eight hours; he has lived in Paris for ten years."""
    who = somebody(draw)
    if draw.chance(0.4):
        city, years = draw.pick(CITIES), draw.pick(times.YEARS)
        word, chinese = draw.pick((("lived", "住"), ("worked", "工作"), ("studied", "学习")))
        return weave(
            f"{{s}} {have(who)}:4 {word}:1 {{p}} {{d}} .:2",
            f"{{s}} {{p}} {chinese}:1 了:4 {{d}} 。:2",
            s=who.phrase,
            p=city.where,
            d=years,
        )
    if draw.chance(0.3):
        language, chinese = draw.pick((("Chinese", "中文"), ("English", "英语")))
        return weave(
            f"{{s}} {have(who)}:4 learned:1 {language}:3 {{d}} .:2",
            f"{{s}} 学:1 了:4 {{d}} {chinese}:3 。:2",
            s=who.phrase,
            d=draw.pick(times.YEARS),
        )
    word, chinese = draw.pick(
        (("slept", "睡"), ("waited", "等"), ("worked", "工作"), ("swam", "游"), ("rested", "休息"), ("talked", "聊"))
    )
    time = draw.pick(times.PAST) if draw.chance(0.6) else NOTHING
    hours = draw.pick(times.DURATIONS if word in {"slept", "worked"} else times.DURATIONS[:2] + times.DURATIONS[3:])
    return weave(
        f"{{s}} {word}:1 {{d}} {{t}} .:2", f"{{s}} {{t}} {chinese}:1 了:1 {{d}} 。:2", s=who.phrase, d=hours, t=time
    )


def visited(draw: Draw) -> Phrase:
    """I have been to Beijing twice: 去过; never: 从来没去过."""
    who = somebody(draw)
    city = draw.pick(CITIES + tuple(place for place in GOALS if "sight" in place.kinds)).to
    many, chinese = draw.pick(
        (
            ("once:1", "一:1 次:1"),
            ("twice:1", "两:1 次:1"),
            ("three:1 times:2", "三:1 次:2"),
            ("many:1 times:2", "很多:1 次:2"),
        )
    )
    if draw.chance(0.35):
        return weave(
            f"{{s}} {have(who)} never:1 been:2 to:2 {{p}} .:3",
            "{s} 从来:1 没:1 去:2 过:2 {p} 。:3",
            s=who.phrase,
            p=city,
        )
    many, chinese = (many.replace(":1", ":5").replace(":2", ":6"), chinese.replace(":1", ":5").replace(":2", ":6"))
    return weave(
        f"{{s}} {have(who)} been:2 to:2 {{p}} {many} .:3", f"{{s}} 去:2 过:2 {{p}} {chinese} 。:3", s=who.phrase, p=city
    )


def travels(draw: Draw) -> Phrase:
    """The train goes from Beijing to Shanghai; he walked from the park to the museum: 从…到."""
    if draw.chance(0.4):
        vehicle, go, said = draw.pick((("train", "goes", "开"), ("plane", "flies", "飞"), ("plane", "flew", "飞")))
        near = CITIES[:2] if draw.chance(0.5) else CITIES[2:4]
        start, goal = draw.different(near if vehicle == "train" else CITIES[:4], 2)
        which = noun_phrase(BY_NAME[vehicle], draw.pick(("the", "this", "that")), NOTHING)
        return weave(
            f"{{v}} {go}:2 from:3 {{a}} to:4 {{b}} .:5",
            f"{{v}} 从:3 {{a}} {said}:2 到:4 {{b}} 。:5",
            v=which,
            a=start.to,
            b=goal.to,
        )
    start, goal = draw.different(GOALS, 2)
    word, chinese = draw.pick((("walked", "走"), ("ran", "跑")))
    return weave(
        f"{{s}} {word}:2 from:3 {{a}} to:4 {{b}} .:5",
        f"{{s}} 从:3 {{a}} {chinese}:2 到:4 {{b}} 。:5",
        s=somebody(draw).phrase,
        a=start.to,
        b=goal.to,
    )
