"""Patterns of clauses that lean on each other: because, so, although, if, when, after, before."""

from regard.data.grammar import times
from regard.data.grammar.action import OBJECT_NOUNS, Action, action, anyone, place_of, thing
from regard.data.grammar.clause import SINGULAR, be, clause, have, predicate, present, was
from regard.data.grammar.draw import Draw
from regard.data.grammar.effects import ADVICE, AFTER_FEELING, AFTER_WEATHER, FEELING, FINISHED, IN_SPITE
from regard.data.grammar.events import going_event
from regard.data.grammar.people import PRONOUN, Somebody, is_grown, somebody, somebody_known
from regard.data.grammar.phrase import NOTHING, Phrase, weave
from regard.data.grammar.places import GOALS, HOME, where
from regard.data.grammar.verbs import ACTIVITIES, ON_OBJECTS, Verb

_VERBS = {verb.base: verb for verb in ON_OBJECTS}
SCHOOL = frozenset({"school", "homework"})
_STILL = tuple(verb for verb in ACTIVITIES if verb.base in {"study", "work", "exercise", "clean", "wash", "cook", "do"})


def bare(who: Somebody) -> Somebody:
    """The same person without the words, to make a clause that is only a predicate."""
    return Somebody(NOTHING, who.person)


def takes_up(who: Somebody) -> Phrase:
    """The pronoun that says the name again."""
    return PRONOUN[who.person].phrase


def unsaid(who: Somebody) -> Phrase:
    """The pronoun that says the name again in English only."""
    return Phrase(takes_up(who).english, ())


def cause(draw: Draw, who: Somebody) -> tuple[Phrase, Phrase]:
    """Why and what then, both without their subject: was tired, stayed at home."""
    state = draw.pick(tuple(FEELING))
    why = weave(f"{was(who)} {state}:1", FEELING[state])
    if state in {"hungry", "thirsty"}:
        verb = _VERBS["eat" if state == "hungry" else "drink"]
        noun = draw.pick(OBJECT_NOUNS[verb.base])
        draw.pair(verb.base, noun.one)
        return why, predicate(verb, thing(draw, noun, draw.pick(("a", "two", "some"))), "past", "了")
    options = AFTER_FEELING[state]
    return why, draw.until(lambda d: d.pick(options), lambda then: not (is_grown(who) and SCHOOL & {*then.english}))


def _weather(draw: Draw) -> tuple[Phrase, Phrase]:
    why, options = draw.pick(AFTER_WEATHER)
    return why, draw.pick(options)


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


def because_clause(draw: Draw, who: Somebody, *, first: bool = False, time: float = 0.35) -> Phrase:
    """A clause with its reason: 因为…所以; with `first` the reason comes first in English too."""
    when_ = draw.pick(times.PAST[:4]) if draw.chance(time) else NOTHING
    if draw.chance(0.6):
        why, then = cause(draw, who)
        english, chinese = draw.pick(_BECAUSE[::2] if first else _BECAUSE)
        return weave(english, chinese, s=who.phrase, p=takes_up(who), why=why, then=then, t=when_)
    why, then = _weather(draw)
    english, chinese = draw.pick(_BECAUSE_OF_WEATHER[::2] if first else _BECAUSE_OF_WEATHER)
    return weave(english, chinese, s=who.phrase, why=why, then=then, t=when_)


def because(draw: Draw) -> Phrase:
    """Tom stayed at home because he was ill. It was raining, so we did not play football."""
    return weave("{c} .:1", "{c} 。:1", c=because_clause(draw, somebody_known(draw)))


def although_clause(draw: Draw, who: Somebody) -> Phrase:
    """A clause against the odds: 虽然…但是."""
    verb = draw.until(lambda d: d.pick(_STILL), lambda one: not (is_grown(who) and one.base == "do"))
    place = draw.pick(where(*verb.places)) if verb.places and draw.chance(0.5) else NOTHING
    does = clause(bare(who), predicate(verb, NOTHING, "past", "了"), place=place)
    return weave(
        f"although:1 {{s}} {was(who)} {{why}} ,:4 {{p}} still:5 {{v}}",
        "虽然:1 {s} {why} ,:4 但是 {p} 还是:5 {v}",
        s=who.phrase,
        why=draw.pick(IN_SPITE),
        p=takes_up(who),
        v=does,
    )


def although(draw: Draw) -> Phrase:
    """Although she was tired, she still cooked dinner."""
    return weave("{c} .:1", "{c} 。:1", c=although_clause(draw, somebody_known(draw)))


FINE = tuple(
    verb for verb in ACTIVITIES if {"outdoor", "pitch"} & {*verb.places} and verb.base not in {"rest", "talk", "sing"}
)
WET = tuple(
    verb
    for verb in ACTIVITIES
    if verb.base not in {"talk", "sing", "dance"} and ("room" in verb.places or verb.base in {"clean", "study"})
)


SKY = (
    (WET, weave("it rains:2", "下雨:2")),
    (WET, weave("it snows:2", "下雪:2")),
    (FINE, weave("the weather:3 is good:2", "天气:3 好:2")),
)


def outside_place(draw: Draw, verb: Verb) -> Phrase:
    """Somewhere under the sky where this can be done."""
    return draw.pick(where("pitch" if "pitch" in verb.places else "outdoor"))


def if_clause(draw: Draw, who: Somebody) -> Phrase:
    """A condition and what follows: 如果…就."""
    kind = draw.pick(range(4))
    if kind < 2:
        verbs, sky = draw.pick(SKY)
        verb = draw.pick(verbs)
        place = outside_place(draw, verb) if verbs is FINE else HOME
        does = clause(bare(who), predicate(verb, NOTHING, "base"), place=place)
        return weave(
            "if:1 {sky} tomorrow:4 ,:5 {s} will:6 {v}",
            "如果:1 明天:4 {sky} ,:5 {s} 就 会:6 {v}",
            s=who.phrase,
            v=does,
            sky=sky,
        )
    if kind == 2:
        act = action(draw, who, "future")
        does = clause(bare(who), predicate(act.verb, act.what, "base"), place=place_of(draw, act, 0.3))
        time = draw.pick(times.FUTURE[:1] + times.FUTURE[4:])
        return weave(
            f"if:1 {{s}} {have(who)}:2 time:3 {{t}} ,:5 {{p}} will:6 {{v}}",
            "如果:1 {s} {t} 有:2 时间:3 ,:5 {p} 就 会:6 {v}",
            s=who.phrase,
            p=takes_up(who),
            v=does,
            t=time,
        )
    (word, chinese), advice = draw.pick(tuple(ADVICE.items()))
    return weave(
        f"if:1 {{s}} {be(who)}:2 {word}:2 ,:5 {{p}} should:6 {{v}}",
        f"如果:1 {{s}} {chinese}:2 了:2 ,:5 {{p}} 就 应该:6 {{v}}",
        s=who.phrase,
        p=takes_up(who),
        v=draw.pick(advice),
    )


def if_(draw: Draw) -> Phrase:
    """If it rains tomorrow, we will play chess at home."""
    return weave("{c} .:1", "{c} 。:1", c=if_clause(draw, somebody_known(draw)))


_ARRIVING = (
    ("came:1 home:2", "回:1 家:2"), ("got:1 up:1", "起床:1"), ("came:1 back:1", "回来:1"),
    ("arrived:1 at:1 {p}", "到:1 {p}"),
)  # fmt: skip


def when_part(draw: Draw, who: Somebody) -> Phrase:
    """When somebody arrived: …的时候."""
    english, chinese = draw.pick(_ARRIVING)
    does = weave(english, chinese, p=draw.pick(GOALS).to) if "{p}" in english else weave(english, chinese)
    time = draw.pick(times.PAST[:1] + times.PAST[2:]) if draw.chance(0.3) and "up:1" not in english else NOTHING
    return weave("when:1 {s} {v} {t}", "{s} {t} {v} 的:1 时候:1", s=who.phrase, v=does, t=time)


def when(draw: Draw) -> Phrase:
    """When I came home, my mother was cooking dinner."""
    who = somebody(draw)
    first = when_part(draw, who)
    if draw.chance(0.15):
        falling, chinese = draw.pick((("raining", "下雨"), ("snowing", "下雪")))
        said = weave(f"it was:1 {falling}:2", f"外面 正在:1 {chinese}:2")
    else:
        said = going_event(draw, anyone(draw, who), before=True)
    return weave("{w} ,:1 {c} .:2", "{w} ,:1 {c} 。:2", w=first, c=said)


def _soon(act: Action) -> bool:
    verb = act.verb
    return not verb.flags & {"meal", "long"} and verb.base not in {verb.past, "sleep", "take"}


def after_clause(draw: Draw, who: Somebody) -> Phrase:
    """What came after something else: …以后."""
    done = draw.until(lambda d: d.pick(FINISHED), lambda one: not (is_grown(who) and SCHOOL & {*one.english}))
    act = draw.until(lambda d: action(d, who, "past"), _soon)
    does = clause(
        bare(who), predicate(act.verb, act.what, "past", "了", definite=act.definite), place=place_of(draw, act, 0.3)
    )
    return weave(
        "after:1 {s} {d} ,:2 {p} {v}", "{s} {d} 以后:1 ,:2 {p} {v}", s=who.phrase, d=done, p=unsaid(who), v=does
    )


def after(draw: Draw) -> Phrase:
    """After he had dinner, he washed the dishes."""
    return weave("{c} .:1", "{c} 。:1", c=after_clause(draw, somebody_known(draw)))


_HOBBIES = tuple(
    verb
    for verb in ACTIVITIES
    if {"music", "television", "Chinese", "English"} & {*verb.rest.english}
    or verb.base in {"study", "exercise"}
    or "walk" in verb.after
)


def before(draw: Draw) -> Phrase:
    """She always listens to music before she goes to bed: …以前."""
    who, verb, adverb = somebody_known(draw), draw.pick(_HOBBIES), draw.pick(times.ADVERBS[:4])
    go, has = ("goes", "has") if who.person in SINGULAR else ("go", "have")
    leaving = (f"{go}:2 to:2 work:2", "上班:2") if is_grown(who) else (f"{go}:2 to:2 school:3", "去:2 学校:3")
    english, chinese = draw.pick(((f"{go}:2 to:2 bed:2", "睡觉:2"), leaving, (f"{has}:2 dinner:3", "吃:2 晚饭:3")))
    return weave(
        f"{{s}} {{a}} {{v}} before:1 {{p}} {english} .:4",
        f"{{s}} {{p}} {chinese} 以前:1 {{a}} {{v}} 。:4",
        s=who.phrase,
        a=adverb,
        v=predicate(verb, NOTHING, present(who)),
        p=unsaid(who),
    )
