"""Patterns of asking somebody to do something: 请, 不要, 吧."""

from regard.data.grammar import times
from regard.data.grammar.action import OBJECT_NOUNS, thing
from regard.data.grammar.clause import predicate
from regard.data.grammar.draw import Draw
from regard.data.grammar.nouns import of_kind
from regard.data.grammar.phrase import NOTHING, Phrase, phrases, weave
from regard.data.grammar.places import GOALS, spots, where
from regard.data.grammar.verbs import ACTIVITIES, ON_OBJECTS

_VERBS = {verb.base: verb for verb in ON_OBJECTS}
_ASKED = ("open", "close", "wash", "read", "repair", "buy", "eat", "drink", "use")
_SAID = phrases("""
    come:1 in:1                   | 进来:1
    sit:1 down:1                  | 坐下:1
    stand:1 up:1                  | 站起来:1
    be:1 quiet:1                  | 安静:1
    come:1 here:2                 | 来:1 这里:2
    wait:1 for:1 me:2             | 等:1 我:2
    help:1 me:2                   | 帮助:1 我:2
    go:1 home:2 now:3             | 现在:3 回:1 家:2
    listen:1 to:1 the teacher:2   | 听:1 老师:2 说话
    tell:1 me:2 your:3 name:4     | 告诉:1 我:2 你:3 的:3 名字:4
""")
_FORBIDDEN = phrases("""
    talk:1      | 说话:1
    run:1       | 跑:1
    cry:1       | 哭:1
    laugh:1     | 笑:1
    sleep:1     | 睡觉:1
    sing:1      | 唱歌:1
    worry:1     | 担心:1
    be:1 late:1 | 迟到:1
""")


def _does(draw: Draw) -> Phrase:
    verb = _VERBS[draw.pick(_ASKED)]
    noun = draw.pick(OBJECT_NOUNS[verb.base])
    draw.pair(verb.base, noun.one)
    determiner = "the" if "shut" in noun.kinds else draw.pick(("this", "that", "the"))
    return predicate(verb, thing(draw, noun, determiner), "base")


def please(draw: Draw) -> Phrase:
    """Please open the window. Please put the cup on the table."""
    kind = draw.pick(range(4))
    if kind == 0:
        return weave("please:1 {v} .:2", "请:1 {v} 。:2", v=draw.pick(_SAID))
    if kind == 1:
        noun, spot = (
            draw.pick([one for one in of_kind("laid") if one.one not in {"box", "bag"}]),
            draw.pick(spots("on table desk chair, in box bag")),
        )
        what = thing(draw, noun, draw.pick(("the", "this", "that", "your")) if not noun.measured else "this")
        return weave("please:1 put:2 {o} {p} .:3", "请:1 把 {o} 放:2 {p} 。:3", o=what, p=spot.at)
    if kind == 2:
        noun = draw.pick(
            [one for one in of_kind("tool", "food", "drink", "readable") if one.one not in {"fish", "rice", "computer"}]
        )
        return weave(
            "please:1 give:2 me:3 {o} .:4",
            "请:1 给:2 我:3 {o} 。:4",
            o=thing(draw, noun, draw.pick(("a", "a", "two", "that"))),
        )
    return weave("please:1 {v} .:2", "请:1 {v} 。:2", v=_does(draw))


def forbid(draw: Draw) -> Phrase:
    """Please do not talk in the library. Do not open that box."""
    polite, chinese = draw.pick((("please:1", "请:1"), ("", "")))
    if draw.chance(0.5):
        does, place = draw.pick(_FORBIDDEN), draw.pick((NOTHING, *where("quiet", "working", "sight")))
        if does.english[0] in {"be", "worry"}:
            place = NOTHING
    else:
        does, place = _does(draw), NOTHING
    return weave(f"{polite} do:2 not:2 {{v}} {{p}} .:3", f"{chinese} 不要:2 {{p}} {{v}} 。:3", v=does, p=place)


def let_us(draw: Draw) -> Phrase:
    """Let us go to the park tomorrow: 吧."""
    verb = draw.pick([one for one in ACTIVITIES if "now" in one.flags and one.base not in {"sleep", "work", "drive"}])
    kind = draw.pick(range(2))
    time = (
        draw.pick(times.WHOLE_DAYS_TO_COME if "meal" in verb.flags else times.FUTURE) if draw.chance(0.6) else NOTHING
    )
    if kind == 0:
        does = weave("go:1 to:1 {p}", "去:1 {p}", p=draw.pick(GOALS).to)
        return weave("let:1 us:2 {v} {t} .:3", "我们:2 {t} {v} 吧:1 。:3", v=does, t=time)
    place = draw.pick(where(*verb.places)) if verb.places and draw.chance(0.5) else NOTHING
    return weave(
        "let:1 us:2 {v} {p} {t} .:3",
        "我们:2 {t} {p} {v} 吧:1 。:3",
        v=predicate(verb, NOTHING, "base"),
        p=place,
        t=time,
    )
