"""Patterns of long sentences: several clauses that tell one small story."""

from regard.data.grammar import times
from regard.data.grammar.action import anyone
from regard.data.grammar.clause import be, predicate, says
from regard.data.grammar.doing import gave_clause, went_clause, with_friends
from regard.data.grammar.draw import Draw
from regard.data.grammar.events import going_event, past_event
from regard.data.grammar.joined import shopping, then_part
from regard.data.grammar.people import FAMILY, NAMES, Somebody, somebody_known
from regard.data.grammar.phrase import NOTHING, Phrase, weave
from regard.data.grammar.reasons import (
    FINE,
    WET,
    after_clause,
    although_clause,
    because_clause,
    outside_place,
    takes_up,
    when_part,
)
from regard.data.grammar.relative import person_who


def _different(draw: Draw, count: int) -> list[Somebody]:
    found: list[Somebody] = []
    while len(found) < count:
        one = draw.pick(NAMES if draw.chance(0.5) else FAMILY[:20])
        if one not in found:
            found.append(one)
    return found


def scenes(draw: Draw) -> Phrase:
    """Tom is reading in the library, Mary is playing the piano at home, and my father is cooking dinner."""
    people = _different(draw, 3)
    slots = {name: going_event(draw, who, place=0.8) for name, who in zip("abc", people)}
    return weave("{a} ,:1 {b} ,:2 and:2 {c} .:3", "{a} ,:1 {b} ,:2 {c} 。:3", **slots)


def homecoming(draw: Draw) -> Phrase:
    """When I came home yesterday, my mother was cooking dinner, and my brother was watching television."""
    who = draw.pick(NAMES) if draw.chance(0.5) else somebody_known(draw)
    people = [one for one in _different(draw, 3) if one != who][:2]
    slots = {name: going_event(draw, one, place=0.6, before=True) for name, one in zip("ab", people)}
    return weave("{w} ,:1 {a} ,:2 and:2 {b} .:3", "{w} ,:1 {a} ,:2 {b} 。:3", w=when_part(draw, who), **slots)


def errand(draw: Draw) -> Phrase:
    """Because it was cold, she stayed at home, but her brother went to the market and bought a fish."""
    who = somebody_known(draw)
    reason = because_clause(draw, who, first=True, time=0.0)
    two = anyone(draw, who)
    bought = weave("{s} {v}", "{s} {v}", s=two.phrase, v=shopping(draw, two, items=draw.pick((1, 2, 3))))
    return weave("{a} ,:1 but:2 {b} .:3", "{a} ,:1 但是:2 {b} 。:3", a=reason, b=bought)


def outing(draw: Draw) -> Phrase:
    """Yesterday morning, he went to the market and bought some apples, two fish and a cake, and then went home."""
    who = somebody_known(draw)
    slots = {
        "s": who.phrase,
        "t": draw.pick(times.PAST),
        "a": shopping(draw, who, items=draw.pick((2, 3))),
        "b": then_part(draw),
    }
    if draw.chance(0.5):
        return weave("{t} , {s} {a} ,:2 and then:3 {b} .:4", "{t} {s} {a} ,:2 然后:3 {b} 。:4", **slots)
    why = because_clause(draw, anyone_known(draw, who), first=True, time=0.0)
    return weave(
        "{s} {a} {t} ,:2 and then:3 {b} ,:5 and:5 {c} .:4",
        "{s} {t} {a} ,:2 然后:3 {b} ,:5 {c} 。:4",
        c=why,
        **slots,
    )


def anyone_known(draw: Draw, who: Somebody) -> Somebody:
    """Somebody else whom a pronoun can take up."""
    return draw.until(lambda d: anyone(d, who), lambda found: found.person != "one")


def evening(draw: Draw) -> Phrase:
    """After he had dinner, he washed the dishes, but his sister was tired, so she went to bed at eight o'clock."""
    who = somebody_known(draw)
    two = anyone_known(draw, who)
    second = although_clause(draw, two) if draw.chance(0.5) else because_clause(draw, two, first=True, time=0.0)
    return weave("{a} ,:1 and:1 {b} .:2", "{a} ,:1 {b} 。:2", a=after_clause(draw, who), b=second)


def plans(draw: Draw) -> Phrase:
    """We plan to fly kites in the park with our friends tomorrow, but if it rains, we will play chess at home."""
    who, friends = with_friends(draw)
    outside = draw.pick(FINE)
    inside = draw.pick([verb for verb in WET if verb != outside])
    aux, chinese = draw.pick(
        (
            (f"{says(who, 'want')}:1 to:1", "想:1"),
            (f"{says(who, 'plan')}:1 to:1", "打算:1"),
            (f"{be(who)}:1 going:1 to:1", "要:1"),
        )
    )
    rains, falls = draw.pick((("rains", "下雨"), ("snows", "下雪")))
    first = weave(
        f"{{s}} {aux} {{v}} with:2 {{f}} {{place}} {{t}}", f"{{s}} {{t}} {chinese} 和:2 {{f}} 一起:2 {{place}} {{v}}",
        s=who.phrase, f=friends.phrase, v=predicate(outside, NOTHING, "base"), place=outside_place(draw, outside),
        t=draw.pick(times.FUTURE),
    )  # fmt: skip
    second = weave("{p} will:1 {v} at:2 home:3", "{p} 就 会:1 在:2 家:3 里:2 {v}", p=takes_up(who),
                   v=predicate(inside, NOTHING, "base"))  # fmt: skip
    return weave(
        f"{{a}} ,:1 but:2 if:3 it {rains}:4 ,:5 {{b}} .:6", f"{{a}} ,:1 但是:2 如果:3 {falls}:4 ,:5 {{b}} 。:6",
        a=first, b=second,
    )  # fmt: skip


def meeting(draw: Draw) -> Phrase:
    """The woman who is wearing a red coat gave me a book, and the man who lives in Beijing went to the park."""
    one = person_who(draw, now=False)
    two = draw.until(lambda d: person_who(d, now=False), lambda found: found.phrase.english[1] != one.phrase.english[1])
    first = gave_clause(draw, one) if draw.chance(0.5) else past_event(draw, one, front=0.0)
    second = went_clause(draw, two, front=0.0) if draw.chance(0.5) else past_event(draw, two, front=0.0)
    return weave("{a} ,:1 and:1 {b} .:2", "{a} ,:1 {b} 。:2", a=first, b=second)


def differing(draw: Draw) -> Phrase:
    """Tom went to the park by bus yesterday, but Mary was ill, so she went to the hospital."""
    one, two = _different(draw, 2)
    if draw.chance(0.3):
        one = person_who(draw, now=False)
    return weave(
        "{a} ,:1 but:2 {b} .:3",
        "{a} ,:1 但是:2 {b} 。:3",
        a=went_clause(draw, one),
        b=because_clause(draw, two, first=True, time=0.0),
    )
