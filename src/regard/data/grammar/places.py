"""Where something happens, where people go, and where things lie: 在公园里, 去公园, 在桌子下面."""

from typing import NamedTuple

from regard.data.grammar.nouns import BY_NAME
from regard.data.grammar.phrase import Phrase, weave

_PLACES = """
park        公园    个 in 里   lawn outdoor quiet sight pitch
garden      花园    个 in 里   lawn outdoor quiet planted
yard        院子    个 in 里   lawn outdoor planted garage pitch
square      广场    个 in 上   outdoor pitch
beach       海滩    个 on 上   outdoor
street      街      条 on 上   way
library     图书馆  个 in 里   quiet working sight
classroom   教室    个 in 里   quiet room
office      办公室  个 in 里   quiet working
bedroom     卧室    个 in 里   sleeping quiet room
kitchen     厨房    个 in 里   eating kitchen
room        房间    个 in 里   room sleeping quiet
restaurant  餐厅    家 in 里   eating working public
hotel       酒店    家 in 里   sleeping working public
hospital    医院    家 in 里   working public
shop        商店    家 in 里   shop groceries working public
supermarket 超市    家 in 里   groceries working public
market      市场    个 at -    groceries market
bookshop    书店    家 in 里   working public books
bank        银行    家 in 里   working public
factory     工厂    家 in 里   working
farm        农场    个 on 里   planted farm working
cinema      电影院  家 in 里   cinema public
museum      博物馆  座 in 里   sight working public
zoo         动物园  个 at -    sight zoo
station     车站    个 at -    station public
airport     机场    个 at -    station public
lake        湖      个 in 里   water
river       河      条 in 里   water
sea         海      片 in 里   water
forest      森林    片 in 里   woods
village     村子    个 in 里   settled
city        城市    座 in 里   settled
"""
_CITIES = {
    "Beijing": "北京", "Shanghai": "上海", "London": "伦敦", "Paris": "巴黎", "China": "中国", "England": "英国",
}  # fmt: skip

_SPOTS = """
on          上    table desk bed sofa chair mat
in          里    box bag basket
under       下面  table bed chair tree desk
behind      后面  door tree sofa house
in_front_of 前面  door window house
next_to     旁边  bed table window tree sofa door
"""
_ALSO_ON = {"grass": "草地", "floor": "地板", "roof": "屋顶"}


class Place(NamedTuple):
    """Somewhere: its name, what counts it, and how it is said that something happens there."""

    english: str
    chinese: str
    counter: str
    where: Phrase
    to: Phrase
    kinds: frozenset[str]


def _place(line: str) -> Place:
    english, chinese, counter, preposition, side, *kinds = line.split()
    after = "" if side == "-" else f" {side}:1"
    where = weave(f"{preposition}:1 the {english}:2", f"在:1 {chinese}:2{after}")
    to = weave(f"the {english}:1", f"{chinese}:1")
    return Place(english, chinese, counter, where, to, frozenset(kinds))


def _city(english: str, chinese: str) -> Place:
    where = weave(f"in:1 {english}:2", f"在:1 {chinese}:2")
    return Place(english, chinese, "", where, weave(f"{english}:1", f"{chinese}:1"), frozenset({"far"}))


SCHOOL = Place(
    "school", "学校", "所", weave("at:1 school:2", "在:1 学校:2"), weave("school:1", "学校:1"),
    frozenset({"quiet", "outdoor", "working", "public", "pitch"}),
)  # fmt: skip
HOME = weave("at:1 home:2", "在:1 家:2 里:1")
PLACES = (SCHOOL, *map(_place, _PLACES.strip().splitlines()))
CITIES = tuple(_city(english, chinese) for english, chinese in _CITIES.items())
GOALS = tuple(
    place
    for place in PLACES
    if place.kinds & {"outdoor", "sight", "groceries", "public", "farm"} and place.english not in {"yard", "garden"}
)
WATERSIDE = (weave("by:1 the river:2", "在:1 河:2 边:1"), weave("by:1 the lake:2", "在:1 湖:2 边:1"))


def where(*kinds: str) -> tuple[Phrase, ...]:
    """The places of any of these kinds, with what says that something happens there; most are also `home`.

    >>> ["".join(phrase.chinese) for phrase in where("kitchen")]
    ['在厨房里', '在家里']
    """
    found = [place.where for place in PLACES if place.kinds.intersection(kinds)]
    if {"quiet", "eating", "sleeping", "kitchen", "room", "home"}.intersection(kinds):
        found.append(HOME)
    if "outdoor" in kinds:
        found += WATERSIDE
    return tuple(found)


class Spot(NamedTuple):
    """Where a thing can lie or somebody can sit: 在桌子上, and the same without 在."""

    at: Phrase
    bare: Phrase
    relation: str
    landmark: str


def _spots() -> tuple[Spot, ...]:
    spots = []
    for line in _SPOTS.strip().splitlines():
        relation, side, *landmarks = line.split()
        names = {name: BY_NAME[name].chinese for name in landmarks} | (_ALSO_ON if relation == "on" else {})
        preposition = " ".join(f"{word}:1" for word in relation.split("_"))
        for english, chinese in names.items():
            at = weave(f"{preposition} the {english}:2", f"在:1 {chinese}:2 {side}:1")
            bare = weave(f"{preposition} the {english}:2", f"{chinese}:2 {side}:1")
            spots.append(Spot(at, bare, relation, english))
    return tuple(spots)


SPOTS = _spots()


def spots(text: str) -> tuple[Spot, ...]:
    """Some of the spots, by name: `on mat chair, under tree`.

    >>> ["".join(spot.at.chinese) for spot in spots("on mat, under tree")]
    ['在垫子上', '在树下面']
    """
    wanted = {(relation, name) for part in text.split(",") for relation, *names in [part.split()] for name in names}
    return tuple(spot for spot in SPOTS if (spot.relation, spot.landmark) in wanted)
