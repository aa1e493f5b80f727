"""Patterns of clauses that lean on each other: because, so, although, if, when, after, before."""

from collections.abc import Callable

from regard.data.grammar import times
from regard.data.grammar.action import OBJECT_NOUNS, action, other, place_of, thing
from regard.data.grammar.clause import SINGULAR, be, clause, do, going_on, have, predicate, present, says, was
from regard.data.grammar.draw import Draw
from regard.data.grammar.events import going_event, past_event
from regard.data.grammar.people import PRONOUN, Somebody, known, somebody
from regard.data.grammar.phrase import NOTHING, Phrase, weave
from regard.data.grammar.places import GOALS, where
from regard.data.grammar.verbs import ACTIVITIES, ON_OBJECTS

_VERBS = {verb.base: verb for verb in ON_OBJECTS}
_REST = (
    ("stayed:1 at:2 home:3", "待:1 在:2 家:3 里:2"), ("went:1 to:1 bed:1 at:2 eight:3 o'clock:2", "八:3 点:2 就 睡觉:1 了:1"),
    ("rested:1 at:2 home:3", "在:2 家:3 里:2 休息:1 了:1"), ("did:2 not:2 go:1 to:1 school:3", "没:2 去:1 学校:3"),
    ("did:2 not:2 go:1 to:1 work:1", "没:2 上班:1"), ("did:2 not:2 do:1 homework:3", "没:2 做:1 作业:3"),
    ("did:2 not:2 play:1 basketball:3", "没:2 打:1 篮球:3"), ("did:2 not:2 clean:1 the room:3", "没:2 打扫:1 房间:3"),
)  # fmt: skip
_EFFECTS = {
    "tired": _REST + (("slept:1 for ten:2 hours:3", "睡:1 了:1 十:2 个 小时:3"),),
    "ill": _REST + (("went:1 to:1 the hospital:2", "去:1 了:1 医院:2"), ("did:2 not:2 have:1 dinner:3", "没:2 吃:1 晚饭:3"),
                    ("drank:1 a:2 glass:3 of hot:4 water:5", "喝:1 了:1 一:2 杯:3 热:4 水:5")),
    "busy": (("did:2 not:2 have:1 lunch:3", "没:2 吃:1 午饭:3"), ("did:2 not:2 watch:1 television:3", "没:2 看:1 电视:3"),
             ("did:2 not:2 go:1 home:3", "没:2 回:1 家:3"), ("did:2 not:2 come:1 back:1", "没:2 回来:1"),
             ("did:2 not:2 go:1 to:1 the park:3", "没:2 去:1 公园:3"), ("did:2 not:2 cook:1 dinner:3", "没:2 做:1 晚饭:3")),
    "happy": (("sang:1 a:2 song:3", "唱:1 了:1 一:2 首 歌:3"), ("laughed:1", "笑:1 了:1"), ("danced:1 in:2 the garden:3", "在:2 花园:3 里:2 跳舞:1 了:1"),
              ("bought:1 some:2 flowers:3", "买:1 了:1 一些:2 花:3")),
    "sad": (("cried:1", "哭:1 了:1"), ("did:2 not:2 want:1 to:1 have:3 dinner:4", "不:2 想:1 吃:3 晚饭:4"), ("went:1 home:2", "回:1 家:2 了:1"),
            ("did:2 not:2 talk:1", "没:2 说话:1")),
}  # fmt: skip
_STATES = {"tired": "很 累:1", "ill": "生病:1 了:2", "busy": "很 忙:1", "happy": "很 高兴:1", "sad": "很 难过:1", "hungry": "很 饿:1", "thirsty": "很 渴:1"}
_INDOORS = (
    ("stayed:1 at:2 home:3", "待:1 在:2 家:3 里:2"), ("went:1 home:2 by:3 taxi:4", "坐:3 出租车:4 回:1 家:2 了:1"),
    ("watched:1 television:2 at:3 home:4", "在:3 家:4 里:3 看:1 电视:2 了:1"), ("closed:1 the window:2", "把 窗户:2 关上:1 了:1"),
    ("did:2 not:2 play:1 football:3", "没:2 踢:1 足球:3"), ("did:2 not:2 go:1 to:1 the park:3", "没:2 去:1 公园:3"),
    ("played:1 chess:2 at:3 home:4", "在:3 家:4 里:3 下:1 棋:2 了:1"),
)  # fmt: skip
_WEATHER = (
    ("it was:2 raining:1", "下雨:1 了:2", _INDOORS), ("it was:2 snowing:1", "下雪:1 了:2", _INDOORS),
    ("it was very:2 cold:1", "天气 非常:2 冷:1", _INDOORS + (("drank:1 a:2 cup:3 of hot:4 tea:5", "喝:1 了:1 一:2 杯:3 热:4 茶:5"),)),
    ("it was very:2 hot:1", "天气 非常:2 热:1", (
        ("opened:1 the window:2", "把 窗户:2 打开:1 了:1"), ("swam:1 in:2 the lake:3", "在:2 湖:3 里:2 游泳:1 了:1"),
        ("drank:1 a:2 glass:3 of cold:4 water:5", "喝:1 了:1 一:2 杯:3 冰:4 水:5"), ("rested:1 under:2 the tree:3", "在:2 树:3 下面:2 休息:1 了:1"))),
    ("the weather:1 was good:2", "天气:1 很 好:2", (
        ("took:1 a walk:1 in:2 the park:3", "在:2 公园:3 里:2 散步:1 了:1"), ("flew:1 kites:2 in:3 the park:4", "在:3 公园:4 里:3 放:1 风筝:2 了:1"),
        ("took:1 photos:2 by:3 the lake:4", "在:3 湖:4 边:3 拍:1 照片:2 了:1"), ("went:1 to:1 the beach:2", "去:1 了:1 海滩:2"))),
)  # fmt: skip
_STILL = tuple(verb for verb in ACTIVITIES if verb.base in {"study", "work", "exercise", "clean", "wash", "cook", "do"})


def bare(who: Somebody) -> Somebody:
    """The same person without the words, to make a clause that is only a predicate."""
    return Somebody(NOTHING, who.person)


def takes_up(who: Somebody) -> Phrase:
    """The pronoun that says the name again."""
    return PRONOUN[who.person].phrase


def cause(draw: Draw, who: Somebody) -> tuple[Phrase, Phrase]:
    """Why and what then, both without their subject: was tired, stayed at home."""
    state = draw.pick(tuple(_STATES))
    why = weave(f"{was(who)}:2 {state}:1", _STATES[state]) if ":2" in _STATES[state] else weave(f"{was(who)} {state}:1", _STATES[state])
    if state in {"hungry", "thirsty"}:
        verb = _VERBS["eat" if state == "hungry" else "drink"]
        noun = draw.pick(OBJECT_NOUNS[verb.base])
        draw.pair(verb.base, noun.one)
        return why, predicate(verb, thing(draw, noun, draw.pick(("a", "two", "some"))), "past", "了")
    return why, weave(*draw.pick(_EFFECTS[state]))


def _weather(draw: Draw) -> tuple[Phrase, Phrase]:
    english, chinese, effects = draw.pick(_WEATHER)
    return weave(english, chinese), weave(*draw.pick(effects))


_BECAUSE = (
    ("because:1 {s} {why} {t} ,:2 {p} {then}", "因为:1 {s} {t} {why} ,:2 所以 {p} {then}"),
    ("{s} {then} {t} because:1 {p} {why}", "因为:1 {s} {t} {why} , 所以 {p} {then}"),
    ("{s} {why} {t} ,:2 so:1 {p} {then}", "{s} {t} {why} ,:2 所以:1 {p} {then}"),
)
_BECAUSE_OF_WEATHER = (
    ("because:1 {why} {t} ,:2 {s} {then}", "因为:1 {t} {why} ,:2 所以 {s} {then}"),
    ("{s} {then} {t} because:1 {why}", "因为:1 {t} {why} , 所以 {s} {then}"),
    ("{why} {t} ,:2 so:1 {s} {then}", "{t} {why} ,:2 所以:1 {s} {then}"),
)


def because_clause(draw: Draw, who: Somebody, *, first: bool = False) -> Phrase:
    """A clause with its reason: 因为…所以; with `first` the reason comes first in English too."""
    time = draw.pick(times.PAST[:4]) if draw.chance(0.35) else NOTHING
    if draw.chance(0.6):
        why, then = cause(draw, who)
        english, chinese = draw.pick(_BECAUSE[::2] if first else _BECAUSE)
        return weave(english, chinese, s=who.phrase, p=takes_up(who), why=why, then=then, t=time)
    why, then = _weather(draw)
    english, chinese = draw.pick(_BECAUSE_OF_WEATHER[::2] if first else _BECAUSE_OF_WEATHER)
    return weave(english, chinese, s=who.phrase, why=why, then=then, t=time)


def because(draw: Draw) -> Phrase:
    """Tom stayed at home because he was ill. It was raining, so we did not play football."""
    return weave("{c} .:1", "{c} 。:1", c=because_clause(draw, known(draw)))


def although_clause(draw: Draw, who: Somebody) -> Phrase:
    """A clause against the odds: 虽然…但是."""
    state, chinese = draw.pick((("tired:2", "很 累:2"), ("very:3 tired:2", "非常:3 累:2"), ("busy:2", "很 忙:2"), ("ill:2", "生病:2 了:2"), ("hungry:2", "很 饿:2")))
    verb = draw.pick(_STILL)
    place = draw.pick(where(*verb.places)) if verb.places and draw.chance(0.5) else NOTHING
    does = clause(bare(who), predicate(verb, NOTHING, "past", "了"), place=place)
    return weave(f"although:1 {{s}} {was(who)} {state} ,:4 {{p}} still:5 {{v}}", f"虽然:1 {{s}} {chinese} ,:4 但是 {{p}} 还是:5 {{v}}",
                 s=who.phrase, p=takes_up(who), v=does)  # fmt: skip


def although(draw: Draw) -> Phrase:
    """Although she was tired, she still cooked dinner."""
    return weave("{c} .:1", "{c} 。:1", c=although_clause(draw, known(draw)))


_FINE = tuple(verb for verb in ACTIVITIES if "outdoor" in verb.places and verb.base not in {"rest", "talk", "sing"})
_WET = tuple(verb for verb in ACTIVITIES if "room" in verb.places or verb.base in {"clean", "study"})


def if_clause(draw: Draw, who: Somebody) -> Phrase:
    """A condition and what follows: 如果…就."""
    kind = draw.pick(range(4))
    if kind < 2:
        rains, english, chinese = draw.pick(((True, "it rains:2", "下雨:2"), (True, "it snows:2", "下雪:2"), (False, "the weather:3 is good:2", "天气:3 好:2")))
        verb = draw.pick(_WET if rains else _FINE)
        place = weave("at:1 home:2", "在:1 家:2 里:1") if rains else draw.pick(where("outdoor"))
        does = clause(bare(who), predicate(verb, NOTHING, "base"), place=place)
        return weave(f"if:1 {english} tomorrow:4 ,:5 {{s}} will:6 {{v}}", f"如果:1 明天:4 {chinese} ,:5 {{s}} 就 会:6 {{v}}", s=who.phrase, v=does)
    if kind == 2:
        act = action(draw, who, "future")
        does = clause(bare(who), predicate(act.verb, act.what, "base"), place=place_of(draw, act, 0.3))
        return weave(f"if:1 {{s}} {have(who)}:2 time:3 {{t}} ,:5 {{p}} will:6 {{v}}", "如果:1 {s} {t} 有:2 时间:3 ,:5 {p} 就 会:6 {v}",
                     s=who.phrase, p=takes_up(who), v=does, t=draw.pick(times.FUTURE[:1] + times.FUTURE[4:]))  # fmt: skip
    word, chinese, advice = draw.pick((
        ("tired", "累 了", (("rest:1", "休息:1"), ("go:1 to:1 bed:1", "睡觉:1"), ("drink:1 a:2 cup:3 of tea:4", "喝:1 一:2 杯:3 茶:4"))),
        ("hungry", "饿 了", (("eat:1 a:2 bowl:3 of rice:4", "吃:1 一:2 碗:3 米饭:4"), ("have:1 lunch:2", "吃:1 午饭:2"), ("eat:1 some:2 bread:3", "吃:1 一些:2 面包:3"))),
        ("thirsty", "渴 了", (("drink:1 some:2 water:3", "喝:1 一些:2 水:3"), ("drink:1 a:2 glass:3 of milk:4", "喝:1 一:2 杯:3 牛奶:4"))),
        ("ill", "生病 了", (("go:1 to:1 the hospital:2", "去:1 医院:2"), ("stay:1 at:2 home:3", "待:1 在:2 家:3 里:2"), ("rest:1 at:2 home:3", "在:2 家:3 里:2 休息:1"))),
    ))  # fmt: skip
    feels = " ".join(f"{part}:2" for part in chinese.split())
    return weave(f"if:1 {{s}} {be(who)}:2 {word}:2 ,:5 {{p}} should:6 {{v}}", f"如果:1 {{s}} {feels} ,:5 {{p}} 就 应该:6 {{v}}",
                 s=who.phrase, p=takes_up(who), v=weave(*draw.pick(advice)))  # fmt: skip


def if_(draw: Draw) -> Phrase:
    """If it rains tomorrow, we will play chess at home."""
    return weave("{c} .:1", "{c} 。:1", c=if_clause(draw, known(draw)))


_ARRIVING = (
    ("came:1 home:2", "回:1 家:2"), ("got:1 up:1", "起床:1"), ("came:1 back:1", "回来:1"), ("arrived:1 at:1 {p}", "到:1 {p}"),
)  # fmt: skip


def when_part(draw: Draw, who: Somebody) -> Phrase:
    """When somebody arrived: …的时候."""
    english, chinese = draw.pick(_ARRIVING)
    does = weave(english, chinese, p=draw.pick(GOALS).to) if "{p}" in english else weave(english, chinese)
    time = draw.pick(times.PAST[:1] + times.PAST[2:]) if draw.chance(0.3) else NOTHING
    return weave("when:1 {s} {v} {t}", "{s} {t} {v} 的:1 时候:1", s=who.phrase, v=does, t=time)


def when(draw: Draw) -> Phrase:
    """When I came home, my mother was cooking dinner."""
    who = somebody(draw)
    first = when_part(draw, who)
    others = other(draw, who)
    if others.phrase.english in {("me",), ("him",), ("us",), ("them",)} or others.phrase.english == ("her",):
        others = PRONOUN[others.person]
    said = going_event(draw, others, before=True)
    if draw.chance(0.15):
        falling, chinese = draw.pick((("raining", "下雨"), ("snowing", "下雪")))
        said = weave(f"it was:1 {falling}:2", f"外面 正在:1 {chinese}:2")
    return weave("{w} ,:1 {c} .:2", "{w} ,:1 {c} 。:2", w=first, c=said)


_FINISHED = (
    ("had:1 breakfast:2", "吃:1 早饭:2"), ("had:1 lunch:2", "吃:1 午饭:2"), ("had:1 dinner:2", "吃:1 晚饭:2"), ("finished:1 the homework:2", "做完:1 作业:2"),
    ("got:1 up:1", "起床:1"), ("came:1 home:2", "回:1 家:2"), ("finished:1 the work:2", "做完:1 工作:2"),
)  # fmt: skip


def after_clause(draw: Draw, who: Somebody) -> Phrase:
    """What came after something else: …以后."""
    done = weave(*draw.pick(_FINISHED))
    act = action(draw, who, "past")
    while "meal" in act.verb.flags or act.verb.base == act.verb.past or "long" in act.verb.flags or act.verb.base == "sleep":
        act = action(draw, who, "past")
    does = clause(bare(who), predicate(act.verb, act.what, "past", "了", definite=act.definite), place=place_of(draw, act, 0.3))
    return weave("after:1 {s} {d} ,:2 {p} {v}", "{s} {d} 以后:1 ,:2 {p} {v}", s=who.phrase, d=done, p=takes_up(who), v=does)


def after(draw: Draw) -> Phrase:
    """After he had dinner, he washed the dishes."""
    return weave("{c} .:1", "{c} 。:1", c=after_clause(draw, known(draw)))


def before(draw: Draw) -> Phrase:
    """She always reads books before she goes to bed: …以前."""
    who = known(draw)
    go, come = ("goes", "has") if who.person in SINGULAR else ("go", "have")
    english, chinese = draw.pick(((f"{go}:2 to:2 bed:2", "睡觉:2"), (f"{go}:2 to:2 work:2", "上班:2"), (f"{go}:2 to:2 school:3", "去:2 学校:3"), (f"{come}:2 dinner:3", "吃:2 晚饭:3")))
    verb = draw.pick([one for one in ACTIVITIES if one.rest.english[:1] in {("music",), ("television",), ("Chinese",), ("English",)} or one.base in {"study", "exercise"} or one.after == "a walk:v"])
    adverb = draw.pick(times.ADVERBS[:4])
    again = Phrase(takes_up(who).english, ())  # Chinese does not say it again
    return weave(f"{{s}} {{a}} {{v}} before:1 {{p}} {english} .:4", f"{{s}} {{p}} {chinese} 以前:1 {{a}} {{v}} 。:4",
                 s=who.phrase, a=adverb, v=predicate(verb, NOTHING, present(who)), p=again)  # fmt: skip
