"""Patterns of several clauses side by side, and of what is said or thought: and, but, then, while, that."""

from regard.data.grammar import times
from regard.data.grammar.action import anyone, thing
from regard.data.grammar.clause import be, predicate, says, statement, was
from regard.data.grammar.determiners import noun_phrase
from regard.data.grammar.doing import went_clause
from regard.data.grammar.draw import Draw
from regard.data.grammar.events import future_event, going_event, habit_event, past_event
from regard.data.grammar.nouns import of_kind
from regard.data.grammar.people import PRONOUN, Somebody, somebody
from regard.data.grammar.phrase import NOTHING, Phrase, phrases, weave
from regard.data.grammar.states import SKILLS, feels, has_clause, likes_clause, skill_clause
from regard.data.grammar.things import wears_clause
from regard.data.grammar.verbs import ACTIVITIES, ON_OBJECTS

_VERBS = {verb.base: verb for verb in ON_OBJECTS}
_GROCERIES = tuple(noun for noun in of_kind("fruit", "drink", "fresh", "tasty") if "goods" in noun.kinds)
SHOPS = (
    ("the shop:1", "商店:1", of_kind("clothes", "donned", "gift", "fragile")),
    ("the supermarket:1", "超市:1", _GROCERIES),
    ("the market:1", "市场:1", of_kind("fruit", "wares")),
    ("the bookshop:1", "书店:1", of_kind("printed")),
)
_ALIKE = tuple(of_kind(kind) for kind in ("fruit", "drink", "pet", "wild", "interesting"))
_MUSIC = tuple(
    verb
    for verb in ACTIVITIES
    if verb.rest.english[:1] in {("music",), ("television",)} or verb.base in {"sing", "talk"}
)
_WORK = tuple(
    verb for verb in ACTIVITIES if verb.base in {"do", "wash", "clean", "cook", "drive"} or verb.after == "a walk:v"
)


def and_clause(draw: Draw, one: Somebody, two: Somebody) -> Phrase:
    """Two scenes at once: Chinese joins them by a comma."""
    scene = draw.pick((going_event, going_event, habit_event, has_clause, wears_clause, likes_clause))
    if scene is wears_clause and {one.person, two.person} & {"we", "they"}:
        scene = going_event
    return weave("{a} ,:1 and:1 {b}", "{a} ,:1 {b}", a=scene(draw, one), b=scene(draw, two))


def and_(draw: Draw) -> Phrase:
    """Tom is reading a book, and Mary is playing the piano."""
    one = somebody(draw)
    return statement(and_clause(draw, one, anyone(draw, one)))


def but_clause(draw: Draw, one: Somebody) -> Phrase:
    """Two clauses against each other: 但是."""
    two = anyone(draw, one)
    kind = draw.pick(range(4)) if one.person in PRONOUN else draw.pick((0, 1, 3))
    if kind == 0:
        options = draw.pick(_ALIKE)
        first, second = (
            weave(
                f"{{s}} {says(who, 'like')}:1 {{o}}", "{s} 喜欢:1 {o}", s=who.phrase, o=noun_phrase(noun, "", NOTHING)
            )
            for who, noun in zip((one, two), draw.different(options, 2))
        )
    elif kind == 1:
        does = predicate(draw.pick(SKILLS), NOTHING, "base")
        can, cannot = ("{s} can:1 {v}", "{s} 会:1 {v}"), ("{s} cannot:1 {v}", "{s} 不:1 会:1 {v}")
        if draw.chance(0.3):
            can, cannot = cannot, can
        first, second = weave(*can, s=one.phrase, v=does), weave(*cannot, s=two.phrase, v=does)
    elif kind == 2:
        verb = draw.pick([verb for verb in ACTIVITIES if "now" in verb.flags and verb.base != "do"])
        does = predicate(verb, NOTHING, "base")
        first = weave("{s} wanted:1 to:1 {v}", "{s} 想:1 {v}", s=one.phrase, v=does)
        two = PRONOUN[one.person]
        word, chinese = draw.pick((("tired", "累"), ("busy", "忙")))
        second = weave(f"{{s}} {was(two)} too:1 {word}:2", f"{{s}} 太:1 {chinese}:2 了:1", s=two.phrase)
    else:
        first = went_clause(draw, one)
        second = weave("{s} stayed:1 at:2 home:3", "{s} 待:1 在:2 家:3 里:2", s=two.phrase)
        if first.chinese[-2:] == ("家", "了"):
            second = weave("{s} did:1 not:1 go:2 home:3", "{s} 没:1 回:2 家:3", s=two.phrase)
    return weave("{a} ,:1 but:2 {b}", "{a} ,:1 但是:2 {b}", a=first, b=second)


def but(draw: Draw) -> Phrase:
    """I like coffee, but my sister likes tea."""
    return statement(but_clause(draw, somebody(draw)))


def shopping(draw: Draw, who: Somebody, *, items: int = 1) -> Phrase:
    """Going somewhere and buying there, without who does it: went to the market and bought two fish."""
    english, chinese, nouns = draw.pick(SHOPS)
    bought: list[Phrase] = []
    chosen: list[str] = []
    while len(bought) < items:
        noun = draw.pick(nouns)
        if noun.one in chosen:
            continue
        chosen.append(noun.one)
        draw.pair("buy", noun.one)
        bought.append(thing(draw, noun, draw.pick(("a", "a", "two", "three", "some")), 0.25))
    what = bought[0]
    if items == 2:
        what = weave("{a} and:1 {b}", "{a} 和:1 {b}", a=bought[0], b=bought[1])
    if items == 3:
        what = weave("{a} ,:1 {b} and:2 {c}", "{a} 、:1 {b} 和:2 {c}", a=bought[0], b=bought[1], c=bought[2])
    to = weave(english, chinese)
    return weave("went:1 to:1 {p} and bought:2 {o}", "去:1 {p} 买:2 了:2 {o}", p=to, o=what)


def shop(draw: Draw) -> Phrase:
    """She went to the market and bought some apples and a fish."""
    who = somebody(draw)
    time = draw.pick(times.PAST) if draw.chance(0.5) else NOTHING
    return weave(
        "{s} {v} {t} .:1", "{s} {t} {v} 。:1", s=who.phrase, t=time, v=shopping(draw, who, items=1 + draw.chance(0.4))
    )


_THEN = phrases("""
    went:1 home:2                         | 回:1 家:2 了:1
    cooked:1 dinner:2                     | 做:1 晚饭:2 了:1
    went:1 to:1 the park:2                | 去:1 了:1 公园:2
    took:1 a walk:1 by:2 the river:3      | 在:2 河:3 边:2 散步:1 了:1
    had:1 lunch:2 in:3 the restaurant:4   | 在:3 餐厅:4 里:3 吃:1 午饭:2 了:1
    called:1 a:2 friend:3                 | 给:1 一:2 个 朋友:3 打:1 了:1 电话:1
    went:1 to:1 the cinema:2              | 去:1 了:1 电影院:2
    cleaned:1 the room:2                  | 打扫:1 房间:2 了:1
    played:1 chess:2 with:3 a:4 friend:5  | 和:3 一:4 个 朋友:5 下:1 棋:2 了:1
""")


def then_part(draw: Draw) -> Phrase:
    """What comes next, without who does it."""
    return draw.pick(_THEN)


def then(draw: Draw) -> Phrase:
    """They went to the shop and bought a cake, and then went home: 然后."""
    who = somebody(draw)
    time = draw.pick(times.PAST) if draw.chance(0.4) else NOTHING
    return weave(
        "{s} {a} {t} ,:1 and then:2 {b} .:3",
        "{s} {t} {a} ,:1 然后:2 {b} 。:3",
        s=who.phrase,
        a=shopping(draw, who),
        b=then_part(draw),
        t=time,
    )


def while_(draw: Draw) -> Phrase:
    """He is listening to music while doing homework: 一边…一边."""
    who, one, two = somebody(draw), draw.pick(_MUSIC), draw.pick(_WORK)
    return weave(
        f"{{s}} {be(who)} {{a}} while:1 {{b}} .:2",
        "{s} 一边:1 {a} 一边:1 {b} 。:2",
        s=who.phrase,
        a=predicate(one, NOTHING, "ing"),
        b=predicate(two, NOTHING, "ing"),
    )


def says_that_clause(draw: Draw, who: Somebody) -> Phrase:
    """A clause inside another: 说, 知道, 觉得, 希望, 告诉."""
    whom = anyone(draw, who)
    kind = draw.pick(range(5))
    if kind == 0:
        english, chinese, said = f"{says(who, 'know')}:1 that", "知道:1", likes_clause(draw, whom)
    elif kind == 1:
        english, chinese, said = f"{says(who, 'hope')}:1 that", "希望:1", future_event(draw, whom, front=0.0)
    elif kind == 2:
        english, chinese, said = f"{says(who, 'think')}:1 that", "觉得:1", feels(draw, whom)
    elif kind == 3:
        english, chinese, said = "said:1 that", "说:1", past_event(draw, whom, front=0.0)
    else:
        english, chinese, said = (
            f"{says(who, 'say')}:1 that",
            "说:1",
            draw.pick((skill_clause, has_clause))(draw, whom),
        )
    return weave(f"{{s}} {english} {{c}}", f"{{s}} {chinese} {{c}}", s=who.phrase, c=said)


def says_that(draw: Draw) -> Phrase:
    """I think that she is very tired."""
    return statement(says_that_clause(draw, somebody(draw)))
