"""Patterns of what happens: past, going on, habit, future, experience, and their negations."""

from regard.data.grammar import times
from regard.data.grammar.action import action, place_of, time_of
from regard.data.grammar.clause import (
    be,
    clause,
    do,
    going_on,
    have,
    predicate,
    present,
    says,
    statement,
    was,
)  # fmt: skip
from regard.data.grammar.draw import Draw
from regard.data.grammar.people import Somebody, animal, somebody
from regard.data.grammar.phrase import NOTHING, Phrase, phrases, weave
from regard.data.grammar.places import spots, where
from regard.data.grammar.verbs import OF_ANIMALS, Verb, verb

SIT, STAND, LIE, SLEEP = (
    verb(f"{forms} | {chinese} | | |")
    for forms, chinese in (
        ("sit sat sat sitting", "坐"),
        ("stand stood stood", "站"),
        ("lie lay lain lying", "躺"),
        ("sleep slept slept", "睡"),
    )
)
PEOPLE_REST = (
    (SIT, spots("on chair sofa bed grass floor mat, under tree, next_to bed window, in_front_of window door")),
    (STAND, spots("in_front_of door house window, next_to window table door, under tree, behind door")),
    (LIE, spots("on bed sofa grass floor mat, under tree")),
)
ANIMALS_REST = (
    (
        SIT,
        spots(
            "on mat chair sofa bed grass floor table roof, under table chair tree, in_front_of door, next_to bed window"
        ),
    ),
    (LIE, spots("on mat sofa bed grass floor, under table bed tree, in box, in_front_of house, behind door sofa")),
    (
        SLEEP,
        spots("on mat sofa bed grass floor roof, under table bed chair tree, in box basket, behind sofa, next_to bed"),
    ),
)
MODALS = (
    ("should:1", "应该:1"), ("should:1 not:2", "不:2 应该:1"), ("must:1", "必须:1"), ("will:1", "会:1"),
    ("will:1 not:2", "不:2 会:1"), ("wanted:1 to:1", "想:1"), ("did:2 not:2 want:1 to:1", "不:2 想:1"),
)  # fmt: skip
LEISURE = frozenset({"play", "dance", "sing", "travel", "fly", "take", "listen", "watch", "swim", "talk"})
PRESENT_MODALS = (("want", "想"), ("plan", "打算"), ("need", "需要"), ("hope", "希望"))


def past_event(draw: Draw, who: Somebody, *, place: float = 0.35, time: float = 0.6, front: float = 0.15) -> Phrase:
    """A clause in the simple past."""
    act = action(draw, who, "past")
    when = NOTHING
    vague = act.verb.base == act.verb.past or not act.what.english  # `they read` alone would be of no certain tense
    if vague or draw.chance(time):
        when = time_of(draw, act, "past")
    does = predicate(act.verb, act.what, "past", "了", definite=act.definite)
    return clause(who, does, place=place_of(draw, act, place), time=when, front=draw.chance(front))


def going_event(draw: Draw, who: Somebody, *, place: float = 0.5, time: float = 0.15, before: bool = False) -> Phrase:
    """A clause about what is going on, or with `before` what was."""
    act = action(draw, who, "now")
    where_ = place_of(draw, act, place)
    aux = going_on(was(who) if before else be(who), where_)
    when = times.NOW if draw.chance(time) and not before else NOTHING
    return clause(who, predicate(act.verb, act.what, "ing"), aux=aux, place=where_, time=when)


def past(draw: Draw) -> Phrase:
    """He bought two books yesterday."""
    return statement(past_event(draw, somebody(draw)))


def progressive(draw: Draw) -> Phrase:
    """She is reading a book in the library."""
    return statement(going_event(draw, somebody(draw)))


def habit_event(draw: Draw, who: Somebody, *, place: float = 0.3) -> Phrase:
    """A clause about what somebody often does."""
    adverb = draw.pick(times.ADVERBS) if draw.chance(0.4) else NOTHING
    act = action(draw, who, "never" if adverb.english == ("never",) else "habit")
    when = NOTHING if adverb.english else time_of(draw, act, "habit")  # `never every day` would say nothing
    does = predicate(act.verb, act.what, present(who))
    return clause(who, does, adverb=adverb, place=place_of(draw, act, place), time=when)


def habit(draw: Draw) -> Phrase:
    """My father drinks tea every morning."""
    return statement(habit_event(draw, somebody(draw)))


def future_event(draw: Draw, who: Somebody, *, front: float = 0.15) -> Phrase:
    """A clause about what will be."""
    act = action(draw, who, "future")
    aux = weave("will:1", "会:1") if not front or draw.chance(0.6) else weave(f"{be(who)}:1 going:1 to:1", "要:1")
    does = predicate(act.verb, act.what, "base")
    when = time_of(draw, act, "future")
    return clause(who, does, aux=aux, place=place_of(draw, act, 0.25), time=when, front=draw.chance(front))


def future(draw: Draw) -> Phrase:
    """We will visit our friends next week."""
    return statement(future_event(draw, somebody(draw)))


def modal(draw: Draw) -> Phrase:
    """You should wash these clothes; he wants to buy a hat."""
    who = somebody(draw)
    when = draw.pick(times.WHOLE_DAYS_TO_COME) if draw.chance(0.3) else NOTHING
    if draw.chance(0.5):
        english, chinese = draw.pick(MODALS)
        if "want" in english:
            when = NOTHING
    else:
        word, said = draw.pick(PRESENT_MODALS)
        english, chinese = f"{says(who, word)}:1 to:1", f"{said}:1"
        if word in {"want", "plan"} and draw.chance(0.25):
            english, chinese = f"{do(who)}:2 not:2 {word}:1 to:1", f"不:2 {said}:1"
    duty = "must" in english or "need" in english  # nobody needs to fly a kite
    act = draw.until(lambda d: action(d, who, "future"), lambda one: not duty or one.verb.base not in LEISURE)
    does = predicate(act.verb, act.what, "base")
    aux = weave(english, chinese)
    return statement(clause(who, does, aux=aux, place=place_of(draw, act, 0.2), time=when))


def not_past(draw: Draw) -> Phrase:
    """They did not go on: 没, and no 了."""
    who = somebody(draw)
    act = action(draw, who, "not")
    when = time_of(draw, act, "not") if draw.chance(0.6) else NOTHING
    aux = weave("did:1 not:1", "没:1")
    return statement(
        clause(who, predicate(act.verb, act.what, "base"), aux=aux, time=when, place=place_of(draw, act, 0.1))
    )


def not_habit(draw: Draw) -> Phrase:
    """He does not drink coffee in the evening."""
    who = somebody(draw)
    act = action(draw, who, "never")
    meal = "meal" in act.verb.flags
    when = draw.pick((times.HABITS[1], times.HABITS[1 if meal else -1])) if draw.chance(0.25) else NOTHING
    aux = weave(f"{do(who)}:1 not:1", "不:1")
    return statement(clause(who, predicate(act.verb, act.what, "base"), aux=aux, time=when))


def resting(draw: Draw, who: Somebody, table: tuple[tuple[Verb, tuple], ...], *, now: bool) -> Phrase:
    """A clause about somebody who sits, stands or lies somewhere; in Chinese the place follows the verb."""
    posture, options = draw.pick(table)
    spot = draw.pick(options).at
    if now:
        aux = weave(f"{be(who)}:1", "正:1")
        return weave(
            "{s} {aux} {v} {spot}",
            "{s} {aux} {v} {spot}",
            s=who.phrase,
            aux=aux,
            v=predicate(posture, NOTHING, "ing"),
            spot=spot,
        )
    return weave("{s} {v} {spot}", "{s} {v} {spot}", s=who.phrase, v=predicate(posture, NOTHING, "past"), spot=spot)


def posture(draw: Draw) -> Phrase:
    """The cat sat on the mat."""
    pet = frozenset({"pet"})
    if draw.chance(0.6):
        return statement(resting(draw, animal(draw, pet)[0], ANIMALS_REST, now=False))
    return statement(resting(draw, somebody(draw), PEOPLE_REST, now=False))


def posture_now(draw: Draw) -> Phrase:
    """The girl is sitting on the sofa."""
    if draw.chance(0.5):
        return statement(resting(draw, animal(draw, frozenset({"pet"}))[0], ANIMALS_REST[:2], now=True))
    return statement(resting(draw, somebody(draw), PEOPLE_REST, now=True))


def animal_event(draw: Draw) -> Phrase:
    """A clause about an animal: two birds are flying in the sky."""
    does = draw.pick(OF_ANIMALS)
    kinds = frozenset(does.flags) - {"any"}
    who, noun = animal(draw, kinds)
    if does.base == "fly":
        place = weave("in:1 the sky:2", "在:1 天空:2 中:1")
    elif "wild" in noun.kinds:
        place = draw.pick(where("zoo", "woods"))
    elif "farmed" in noun.kinds and does.base != "swim":
        place = draw.pick(where("farm"))
    elif does.base == "sleep":
        place = draw.pick(spots("on sofa bed mat grass, under table tree")).at
    elif "climb" in does.base:
        place = NOTHING
    else:
        place = draw.pick(where("water" if does.base == "swim" else "lawn"))
    if draw.chance(0.1):
        place = NOTHING
    verb_form = predicate(does, NOTHING, "ing")
    return clause(who, verb_form, aux=going_on(be(who), place), place=place)


def animals(draw: Draw) -> Phrase:
    """The sheep are eating grass on the farm."""
    return statement(animal_event(draw))


def experience(draw: Draw) -> Phrase:
    """She has eaten these dumplings before: 过; never: 从来没."""
    who = somebody(draw)
    act = action(draw, who, "ever")
    does = predicate(act.verb, act.what, "participle", "过")
    if draw.chance(0.5):
        return statement(clause(who, does, aux=weave(f"{have(who)} never:1", "从来:1 没:1")))
    return statement(
        weave(
            "{s} {have} {does} before:1",
            "{s} 以前:1 {have} {does}",
            s=who.phrase,
            does=does,
            have=Phrase((have(who),), ()),
        )
    )


DONE = phrases("""
    gone:1 home:2             | 回:1 家:2
    left:1                    | 离开:1
    arrived:1                 | 到:1
    set:1 off:1               | 出发:1
    come:1 back:1             | 回来:1
    fallen:1 asleep:1         | 睡着:1
    woken:1 up:1              | 醒:1
    got:1 up:1                | 起床:1
    gone:1 to:1 bed:1         | 睡觉:1
    finished:1 the work:2     | 做完:1 工作:2
    finished:1 breakfast:2    | 吃完:1 早饭:2
    finished:1 lunch:2        | 吃完:1 午饭:2
    finished:1 dinner:2       | 吃完:1 晚饭:2
""")


def already(draw: Draw) -> Phrase:
    """He has already gone home: 已经…了; not yet: 还没."""
    who = somebody(draw)
    done = draw.pick(DONE)
    slots = {"s": who.phrase, "done": done}
    if draw.chance(0.35):
        return weave(f"{{s}} {have(who)}:1 not:1 {{done}} yet:2 .:3", "{s} 还:2 没:1 {done} 。:3", **slots)
    return weave(f"{{s}} {have(who)}:2 already:1 {{done}} .:3", "{s} 已经:1 {done} 了:2 。:3", **slots)
