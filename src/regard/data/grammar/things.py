"""Patterns of things: where they are, what is worn and held, what was done to them (把, 被)."""

from regard.data.grammar.action import thing
from regard.data.grammar.clause import be, statement
from regard.data.grammar.determiners import OWNERS, noun_phrase
from regard.data.grammar.draw import Draw
from regard.data.grammar.nouns import BY_NAME, Noun, of_kind
from regard.data.grammar.people import NAMES, Somebody, somebody, somebody_known, stranger
from regard.data.grammar.phrase import NOTHING, Phrase, weave
from regard.data.grammar.places import PLACES, Spot, spots

_RESTING = tuple(noun for noun in of_kind("laid") if not noun.measured)
_PETS_AT = "under table tree chair, on sofa bed roof, behind door tree, next_to sofa, in box, in_front_of door house"
_LAID = (  # where things lie, and which
    (spots("on table desk chair"), _RESTING),
    (spots("in bag"), tuple(noun for noun in _RESTING if noun.kinds & {"small", "readable"} and noun.one != "bag")),
    (
        spots("in box, under table chair bed"),
        tuple(noun for noun in _RESTING if noun.one not in {"box", "bag"} and "fruit" not in noun.kinds),
    ),
    (spots("in basket"), tuple(noun for noun in _RESTING if noun.kinds & {"fruit", "fresh"})),
    (spots(_PETS_AT), of_kind("pet")),
)
_PUBLIC = tuple(place for place in PLACES if place.kinds & {"public"})
_HOLDS = (("water", "cup"), ("milk", "cup"), ("tea", "cup"), ("beer", "bottle"), ("soup", "bowl"), ("rice", "bowl"))
_PUT = (*_RESTING, BY_NAME["paper"])
_PUT_ON = spots("on table desk chair bed, in box bag, under table, next_to bed")
WORN = of_kind("clothes", "worn", "donned")
FOR_ALL = tuple(noun for noun in WORN if "ladies" not in noun.kinds)


def lying(draw: Draw) -> tuple[Spot, Noun]:
    """Somewhere, and something that may well be there."""
    places, nouns = draw.pick(_LAID)
    return draw.pick(places), draw.pick(nouns)


def exists_clause(draw: Draw) -> Phrase:
    """A clause about what there is somewhere; in Chinese the place comes first."""
    choice = draw.random()
    if choice < 0.12:
        drink, vessel = draw.pick(_HOLDS)
        noun, holder = BY_NAME[drink], BY_NAME[vessel]
        return weave(
            f"there:1 is:1 no:1 {noun.one}:2 in:3 the {vessel}:4", f"{holder.chinese}:4 里:3 没有:1 {noun.chinese}:2"
        )
    if choice < 0.3:
        one, two = draw.pick(_PUBLIC), draw.pick(_PUBLIC)
        near, chinese = draw.pick(
            (("near:3", "附近:3"), ("next:3 to:3", "旁边:3"), ("behind:3", "后面:3"), ("in:3 front:3 of:3", "前面:3"))
        )
        if one.english != two.english:
            return weave(
                f"there:1 is:1 a:5 {one.english}:2 {near} the {two.english}:4",
                f"{two.chinese}:4 {chinese} 有:1 一:5 {one.counter} {one.chinese}:2",
            )
    spot, noun = lying(draw)
    determiner = draw.pick(("a", "a", "a", "two", "three", "five", "many", "some", "several"))
    verb = "is" if determiner == "a" else "are"
    return weave(f"there:1 {verb}:1 {{n}} {{p}}", "{p} 有:1 {n}", n=thing(draw, noun, determiner), p=spot.bare)


def exists(draw: Draw) -> Phrase:
    """There are three books on the table."""
    return statement(exists_clause(draw))


def located(draw: Draw) -> Phrase:
    """My key is in the bag; the dog is not under the table."""
    spot, noun = lying(draw)
    determiner = draw.pick(("the", "the", draw.pick(tuple(OWNERS))))
    word, chinese = draw.pick((("is", ""), ("is", ""), ("is not:1", "不:1")))
    return weave(f"{{n}} {word} {{p}} .:2", f"{{n}} {chinese} {{p}} 。:2", n=thing(draw, noun, determiner), p=spot.at)


def garment(draw: Draw, person: str) -> Noun:
    """Something that this person may wear."""
    return draw.pick(WORN if person == "she" else FOR_ALL)


def wears_clause(draw: Draw, who: Somebody) -> Phrase:
    """A clause about what somebody is wearing or holding: 穿着, 戴着, 拿着."""
    if draw.chance(0.25):
        noun = draw.pick(of_kind("held", "small"))
        return weave(
            f"{{s}} {be(who)}:1 holding:1 {{o}}", "{s} 拿:1 着:1 {o}", s=who.phrase, o=thing(draw, noun, "a", 0.4)
        )
    noun = garment(draw, who.person)
    wear = "戴" if "donned" in noun.kinds else "穿"
    return weave(
        f"{{s}} {be(who)}:1 wearing:1 {{o}}", f"{{s}} {wear}:1 着:1 {{o}}", s=who.phrase, o=thing(draw, noun, "a", 0.75)
    )


def single(draw: Draw) -> Somebody:
    """One person and no more."""
    return draw.until(somebody, lambda who: who.person not in {"we", "they"})


def wears(draw: Draw) -> Phrase:
    """She is wearing a red skirt."""
    return statement(wears_clause(draw, single(draw)))


def hangs(draw: Draw) -> Phrase:
    """There is a picture hanging on the wall: 挂着."""
    noun = draw.pick(of_kind("hung"))
    determiner = draw.pick(("a", "a", "two", "three"))
    verb = "is" if determiner == "a" else "are"
    return weave(
        f"there:4 {verb}:4 {{n}} hanging:1 on:2 the wall:3 .:5",
        "墙:3 上:2 挂:1 着:4 {n} 。:5",
        n=thing(draw, noun, determiner, 0.5),
    )


def put(draw: Draw) -> Phrase:
    """He put the book on the table: 把."""
    who = somebody_known(draw)
    noun, spot = draw.pick(_PUT), draw.pick(_PUT_ON)
    while spot.landmark == noun.one:
        spot = draw.pick(_PUT_ON)
    what = thing(draw, noun, draw.pick(("the", "the", "the", "this", "that")), 0.25)
    return weave("{s} put:1 {o} {p} .:2", "{s} 把 {o} 放:1 {p} 。:2", s=who.phrase, o=what, p=spot.at)


_PASSIVE = (
    ("eaten:1", "吃:1", "eat", of_kind("food"), ("cat", "dog")),
    ("broken:1", "打破:1", "break", of_kind("fragile"), ("cat", "dog")),
    ("taken:1 away:1", "拿走:1", "take", of_kind("small"), ()),
    ("bought:1", "买走:1", "buy", of_kind("furniture", "machine"), ()),
    ("borrowed:1", "借走:1", "borrow", of_kind("printed", "tool"), ()),
)


def passive(draw: Draw) -> Phrase:
    """The cake was eaten by the dog: 被."""
    english, chinese, verb, nouns, animals = draw.pick(_PASSIVE)
    noun = draw.pick([one for one in nouns if not one.measured and one.one != "fish"])
    draw.pair(verb, noun.one)
    by = draw.pick((draw.pick(NAMES), stranger(draw, 0.0))).phrase
    if animals and draw.chance(0.5):
        by = noun_phrase(BY_NAME[draw.pick(animals)], "the", NOTHING)
    what = thing(draw, noun, draw.pick(("the", "the", "this", "that", draw.pick(tuple(OWNERS)))), 0.15)
    return weave(f"{{o}} was {english} by:2 {{by}} .:3", f"{{o}} 被:2 {{by}} {chinese} 了:1 。:3", o=what, by=by)
