"""Sensible actions: who can do what, to what, where and when, in each tense."""

from typing import NamedTuple

from regard.data.grammar import times
from regard.data.grammar.adjectives import describe
from regard.data.grammar.determiners import OWNERS, noun_phrase
from regard.data.grammar.draw import Draw
from regard.data.grammar.nouns import Noun, of_kind
from regard.data.grammar.people import FAMILY, NAMES, OBJECTS, OWN, PRONOUN, STRANGERS, Somebody, friend, is_grown
from regard.data.grammar.phrase import NOTHING, Phrase
from regard.data.grammar.places import where
from regard.data.grammar.verbs import ACTIVITIES, ON_OBJECTS, ON_PEOPLE, Verb

DETERMINERS = {
    "past": ("a", "a", "a", "a", "a", "two", "three", "four", "some", "many", "this", "that", "the", "the", "own", ""),
    "now": ("a", "a", "a", "the", "the", "that", "own", "own", "", ""),
    "habit": ("", "", "own"),
    "never": ("", "", "own"),
    "future": ("a", "a", "a", "two", "some", "this", "that", "the", "own", ""),
    "not": ("", "the", "the", "this", "that", "own"),
    "ever": ("this", "that", "these", "those", ""),
}
TIMES = {
    "past": (times.PAST + times.DAYS[:3], times.WHOLE_DAYS_AGO, times.LONG_AGO),
    "now": ((times.NOW,),) * 3,
    "habit": (times.HABITS, times.WHOLE_HABITS, times.WHOLE_HABITS),
    "future": (times.FUTURE + times.DAYS[3:], times.WHOLE_DAYS_TO_COME, times.LATER),
}
TIMES["not"] = TIMES["past"]
_NEVER_NOW = frozenset({"find", "lose", "break", "meet", "see", "borrow", "visit", "thank", "buy", "close", "open"})
_ONCE_ONLY = frozenset({"lose", "find", "break", "see", "open", "close", "sleep", "look"})
_EVERY_DAY = frozenset({"eat", "drink", "read", "write", "cook", "listen", "draw", "use", "sell"})
_NEAR = {  # where a verb happens when its object decides it
    ("see", "wild"): where("zoo"), ("see", "farmed"): where("farm"), ("see", "animal"): where("outdoor"),
    ("buy", "printed"): where("books"), ("buy", "food"): where("groceries"), ("buy", "drink"): where("groceries"),
    ("feed", "farmed"): where("farm"), ("feed", "pet"): where("home", "lawn"),
}  # fmt: skip
OBJECT_PHRASES = frozenset(OBJECTS.values())
OBJECT_NOUNS = {verb.base: of_kind(*verb.kinds) for verb in ON_OBJECTS}
SOMEWHERE = {verb.places: where(*verb.places) for verb in (*ON_OBJECTS, *ON_PEOPLE, *ACTIVITIES)}


class Action(NamedTuple):
    """A verb with its object and surroundings, before it has a tense."""

    verb: Verb
    what: Phrase
    definite: bool
    places: tuple[Phrase, ...]


def _allowed(setting: str) -> tuple[tuple[Verb, ...], tuple[Verb, ...], tuple[Verb, ...]]:
    groups = []
    for group in (ON_OBJECTS, ACTIVITIES, ON_PEOPLE):
        if setting in {"now", "ever"}:
            kept = [verb for verb in group if setting in verb.flags]
        elif setting == "past":
            kept = [verb for verb in group if verb.base not in {"wait", "look"}]
        elif setting in {"habit", "never"}:
            kept = [
                v
                for v in group
                if (v.base in _EVERY_DAY or group is not ON_OBJECTS) and v.base not in {"meet", "look", "thank"}
            ]
        elif setting == "future":
            kept = [verb for verb in group if verb.base not in _ONCE_ONLY]
        else:
            kept = [verb for verb in group if verb.base not in {"look", "thank", "sleep", "meet"}]
        groups.append(tuple(kept))
    return groups[0], groups[1], groups[2]


ALLOWED = {setting: _allowed(setting) for setting in DETERMINERS}


def thing(draw: Draw, noun: Noun, determiner: str, share: float = 0.22) -> Phrase:
    """The noun with this determiner, or the nearest that fits it, and sometimes an adjective."""
    if noun.measured:
        determiner = {"many": "some", "these": "this", "those": "that"}.get(determiner, determiner)
    return noun_phrase(noun, determiner, describe(draw, noun, share, owned=determiner in OWNERS))


def other(draw: Draw, who: Somebody) -> Somebody:
    """Somebody else."""
    while True:
        choice = draw.random()
        if choice < 0.3:
            person = draw.pick(tuple(OBJECTS))
            found = Somebody(OBJECTS[person], person)
            if person != who.person and {person, who.person} not in ({"I", "we"}, {"he", "they"}, {"she", "they"}):
                return found
            continue
        found = draw.pick(NAMES) if choice < 0.5 else draw.pick(FAMILY) if choice < 0.7 else friend(draw)
        if choice > 0.9:
            noun, person = draw.pick(STRANGERS)
            found = Somebody(noun_phrase(noun, "the", NOTHING), person)
        if found.phrase.chinese[-1].rstrip("们") not in "".join(who.phrase.chinese):
            return found


def anyone(draw: Draw, who: Somebody) -> Somebody:
    """Somebody else, as the one who does it: he rather than him."""
    found = other(draw, who)
    return PRONOUN[found.person] if found.phrase in OBJECT_PHRASES else found


def act_on(draw: Draw, verb: Verb, who: Somebody, setting: str, share: float = 0.22) -> Action:
    """This verb with an object that it can have, with an adjective in this share of cases."""
    noun = draw.pick(OBJECT_NOUNS[verb.base])
    draw.pair(verb.base, noun.one)
    determiner = draw.pick(DETERMINERS[setting])
    if "shut" in noun.kinds:
        determiner = "the"
    elif verb.base == "sell":
        determiner = "" if setting in {"habit", "never", "not"} else draw.pick(("", "", "some", "many"))
    elif verb.base == "use" and determiner != "own":
        determiner = draw.pick(("the", "this", "that"))
    elif setting == "habit" and verb.base in {"eat", "drink"} and draw.chance(0.3):
        determiner = "a"
    if determiner == "own":
        own = OWN.get(who.person)
        determiner = own if own and "own" in verb.flags and noun.kinds & {"owned", "washed"} else "a"
        if determiner == "a" and setting in {"not", "ever", "habit", "never"}:
            determiner = "" if setting in {"habit", "never"} else "that"
    places = next((_NEAR[key] for kind in ("wild", "farmed", "animal", "pet", "printed", "food", "drink")
                   if kind in noun.kinds and (key := (verb.base, kind)) in _NEAR), SOMEWHERE[verb.places])  # fmt: skip
    definite = determiner == "the" or determiner in OWN.values()
    return Action(verb, thing(draw, noun, determiner, share), definite, places)


def action(draw: Draw, who: Somebody, setting: str, share: float = 0.22) -> Action:
    """Something that this person can do.

    >>> isinstance(action(Draw("a key"), Somebody(OBJECTS["I"], "I"), "past"), Action)
    True
    """
    objects, activities, people = ALLOWED[setting]
    choice = draw.random()
    if choice < 0.55:
        return act_on(draw, draw.pick(objects), who, setting, share)
    if choice < 0.92 or not people:
        verb = draw.pick(activities)
        while verb.base == "do" and is_grown(who):
            verb = draw.pick(activities)
        return Action(verb, NOTHING, False, SOMEWHERE[verb.places])
    verb = draw.pick(people)
    return Action(verb, other(draw, who).phrase, False, SOMEWHERE[verb.places])


def place_of(draw: Draw, act: Action, share: float) -> Phrase:
    """Where it happens, in this share of cases."""
    return draw.pick(act.places) if act.places and draw.chance(share) else NOTHING


def time_of(draw: Draw, act: Action, setting: str) -> Phrase:
    """When it happens: a time that fits both the tense and what is done."""
    usual, whole, long = TIMES[setting]
    if "meal" in act.verb.flags:
        return draw.pick(whole)
    return draw.pick(long if "long" in act.verb.flags else usual)
