"""Patterns of the weather. English says it, Chinese names the day or the place."""

from regard.data.grammar.adjectives import degree
from regard.data.grammar.draw import Draw
from regard.data.grammar.phrase import Phrase, phrases, weave
from regard.data.grammar.places import CITIES
from regard.data.grammar.times import PAST, SEASONS

_FALLS = (("rain", "下雨"), ("snow", "下雪"))
_WARMTH = (("warm", "暖和"), ("hot", "热"), ("cool", "凉快"), ("cold", "冷"))
_TODAY = phrases("""
    the weather:1 is good:2 today:3        | 今天:3 天气:1 很 好:2
    the weather:1 is very:4 good:2 today:3 | 今天:3 天气:1 非常:4 好:2
    the weather:1 is bad:2 today:3         | 今天:3 天气:1 不好:2
""")


def weather(draw: Draw) -> Phrase:
    """It rained last night; it is very hot in Beijing in summer."""
    return weave("{c} .:1", "{c} 。:1", c=draw.pick((_fell, _falls, _was_felt, _feels, _often, _today))(draw))


def _fell(draw: Draw) -> Phrase:
    fall, chinese = draw.pick(_FALLS)
    return weave(f"it {fall}ed:1 {{t}}", f"{{t}} {chinese}:1 了:1", t=draw.pick(PAST))


def _falls(draw: Draw) -> Phrase:
    fall, chinese = draw.pick(_FALLS)
    if draw.chance(0.5):
        return weave(f"it is:1 {fall}ing:2 outside:3", f"外面:3 正在:1 {chinese}:2")
    return weave(f"it will:1 {fall}:2 tomorrow:3", f"明天:3 会:1 {chinese}:2")


def _was_felt(draw: Draw) -> Phrase:
    word, chinese = draw.pick(_WARMTH)
    return weave(f"it was {word}:1 {{t}}", f"{{t}} 很 {chinese}:1", t=draw.pick(PAST))


def _feels(draw: Draw) -> Phrase:
    city, ((word, chinese), season) = draw.pick(CITIES), draw.pick(tuple(zip(_WARMTH, SEASONS)))
    much, zh = degree(draw, word)
    return weave(f"it is {much} {word}:1 in {{c}} {{t}}", f"{{c}} {{t}} {zh} {chinese}:1", c=city.to, t=season)


def _often(draw: Draw) -> Phrase:
    city, (fall, chinese) = draw.pick(CITIES), draw.pick(_FALLS)
    season = SEASONS[3] if fall == "snow" else draw.pick(SEASONS[:3])
    return weave(f"it often:3 {fall}s:1 in {{c}} {{t}}", f"{{c}} {{t}} 经常:3 {chinese}:1", c=city.to, t=season)


def _today(draw: Draw) -> Phrase:
    return draw.pick(_TODAY)
