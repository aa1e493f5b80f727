"""What people do: English forms, Chinese, what it is done to, and where.

A line is: forms (base; past, participle and -ing where they are not regular) | Chinese | kinds of objects, or for an
activity the words that always follow | kinds of places | flags. The flags:

- `now`: can be going on (is eating). `ever`: can have been done before (has eaten, 吃过).
- `ba=打开`: a definite object comes before the verb in the past (把门打开了), and this is the verb's Chinese there.
- `own`: may be done to what is one's own. `skill`: can be learned, so that `can` is 会.
- `meal`: said with whole days only. `state`: holds without 了. `long`: said with weeks and years.
"""

from typing import NamedTuple

from regard.data.grammar.phrase import NOTHING, Phrase, weave

_ON_OBJECTS = """
eat ate eaten            | 吃   | food          | eating   | now ever ba=吃 daily
drink drank drunk        | 喝   | drink         | eating   | now ever ba=喝 daily
read read read           | 看   | readable      | quiet    | now ever own daily
write wrote written writing | 写 | written      | quiet    | now ever
buy bought bought        | 买   | goods bought  | shop     | ever
sell sold sold           | 卖   | wares fruit   | market   | now
draw drew drawn          | 画   | drawn         | quiet    | now ever
wash                     | 洗   | washed        |          | now ba=洗 own
repair                   | 修   | machine       | garage   | now ba=修好 own ever
make made made making    | 做   | baked         | home     | now ever
cook                     | 煮   | boiled        | kitchen  | now ever daily
feed fed fed             | 喂   | pet farmed    | planted  | now ever
plant                    | 种   | plant         | planted  | now ever
pick                     | 摘   | picked        | planted  | now
watch                    | 看   | watched       | home     | now ever
listen/to                | 听   | heard         | room     | now ever
use used used using      | 用   | tool          |          | now ever own
see saw seen             | 看见 | seen          | outdoor  | ever=看
find found found         | 找到 | small         |          | own
lose lost lost losing    | 丢   | small         |          | own ba=丢
break broke broken       | 打破 | fragile       |          | ba=打破
open                     | 打开 | shut opened   |          | ba=打开
close                    | 关上 | shut          |          | ba=关上
borrow                   | 借   | printed tool  |          | ever
"""

_ON_PEOPLE = """
wait/for                 | 等   | | station outdoor | now
help                     | 帮助 | | working         | now ever
meet met met             | 见到 | | outdoor way station sight  | ever=见 ba=遇见
visit                    | 看望 | |                 | long
look/for                 | 找   | | outdoor station | now
thank                    | 感谢 | |                 |
"""

_STATES = """
like      | 喜欢 | pet wild fruit drink food readable clothes interesting beautiful | | state own
need      | 需要 | tool novelty clothes | | state
"""

_ACTIVITIES = """
swim swam swum swimming  | 游泳 |                              | water         | now skill
run ran run running      | 跑步 |                              | outdoor       | now
dance                    | 跳舞 |                              | outdoor room  | now skill
sleep slept slept        | 睡觉 |                              | sleeping      | now
work                     | 工作 |                              | working       | now
rest                     | 休息 |                              | sleeping outdoor | now
sing sang sung           | 唱歌 |                              | room outdoor  | now skill
study                    | 学习 |                              | quiet         | now
talk                     | 聊天 |                              | outdoor room eating | now
exercise                 | 锻炼 |                              | outdoor       | now
travel travelled travelled travelling | 旅行 |                 |               | long
take took taken taking   | 散步 | a walk:v /                  | outdoor way   | now
take took taken taking   | 洗澡 | a shower:v /                |               | now
take took taken taking   | 拍   | photos:2 / 照片:2             | outdoor sight | now ever skill
play                     | 踢   | football:2 / 足球:2           | pitch         | now ever skill
play                     | 打   | basketball:2 / 篮球:2         | pitch         | now ever skill
play                     | 打   | tennis:2 / 网球:2             | pitch         | now ever skill
play                     | 下   | chess:2 / 棋:2                | room outdoor  | now ever skill
play                     | 弹   | the piano:2 / 钢琴:2          | room          | now skill
play                     | 弹   | the guitar:2 / 吉他:2         | room outdoor  | now skill
play                     | 玩   | computer:2 games:3 / 电脑:2 游戏:3 | room     | now ever
watch                    | 看   | television:2 / 电视:2         | room          | now
listen/to                | 听   | music:2 / 音乐:2              | room outdoor  | now
do did done doing        | 做   | homework:2 / 作业:2           | quiet         | now
have had had having      | 吃   | breakfast:2 / 早饭:2          | eating        | now meal
have had had having      | 吃   | lunch:2 / 午饭:2              | eating        | now meal
have had had having      | 吃   | dinner:2 / 晚饭:2             | eating        | now meal
cook                     | 做   | dinner:2 / 晚饭:2             | kitchen       | now meal skill
wash                     | 洗   | the dishes:2 / 碗:2           | kitchen       | now
wash                     | 洗   | clothes:2 / 衣服:2            |               | now
clean                    | 打扫 | the room:2 / 房间:2           |               | now
clean                    | 打扫 | the kitchen:2 / 厨房:2        |               | now
learn                    | 学   | Chinese:2 / 中文:2            | quiet         | now ever long
learn                    | 学   | English:2 / 英语:2            | quiet         | now ever long
drive drove driven driving | 开车 |                            |               | now skill
fly flew flown           | 放   | kites:2 / 风筝:2              | outdoor       | now ever skill
"""

_OF_ANIMALS = """
sleep slept slept       | 睡觉 | | sleeping outdoor | any
run ran run running     | 跑   | | outdoor          | pet farmed wild
play                    | 玩   | | outdoor          | pet
fly flew flown          | 飞   | |                  | flying
swim swam swum swimming | 游泳 | | water            | swimming
eat ate eaten           | 吃   | grass:2 / 草:2 | planted | grazing
drink drank drunk       | 喝   | water:2 / 水:2 | outdoor | pet farmed wild
climb                   | 爬   | the tree:2 / 树:2 | woods zoo | climbing
rest                    | 休息 | | outdoor woods    | pet farmed wild
"""


class Verb(NamedTuple):
    """A verb, or a whole activity, with what may stand around it."""

    base: str
    third: str
    past: str
    participle: str
    ing: str
    particle: str
    chinese: str
    after: str
    """English words that belong to the verb itself: take a walk 散步."""
    rest: Phrase
    """What always follows in both languages."""
    kinds: frozenset[str]
    places: tuple[str, ...]
    flags: frozenset[str]
    ba: str = ""
    """The Chinese after 把 and a definite object, if it is said so."""
    ever: str = ""
    """The Chinese before 过."""


def _third(base: str) -> str:
    if base == "have":
        return "has"
    if base.endswith(("s", "sh", "ch", "x", "o")):
        return base + "es"
    return base[:-1] + "ies" if base.endswith("y") and base[-2] not in "aeiou" else base + "s"


def _past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    return base[:-1] + "ied" if base.endswith("y") and base[-2] not in "aeiou" else base + "ed"


def _ing(base: str) -> str:
    return base[:-1] + "ing" if base.endswith("e") and not base.endswith("ee") else base + "ing"


def verb(line: str) -> Verb:
    """The verb that a line describes.

    >>> verb("study | 学习 | | quiet | now").third
    'studies'
    """
    forms, chinese, follows, places, flags = (column.strip() for column in line.split("|"))
    named, *irregular = forms.split()
    base, _, particle = named.partition("/")
    past, participle, ing, *_ = irregular + [_past(base), _past(base), _ing(base)][len(irregular) :]
    words = flags.split()
    options = {key: value for key, _, value in (word.partition("=") for word in words)}
    after, rest, kinds = "", NOTHING, frozenset[str]()
    english, activity, object_chinese = (column.strip() for column in follows.partition("/"))
    if not activity:
        kinds = frozenset(english.split())
    elif object_chinese:
        rest = weave(english, object_chinese)
    else:
        after = english
    return Verb(
        base, _third(base), past, participle, ing, particle, chinese, after, rest, kinds, tuple(places.split()),
        frozenset(options), options.get("ba", ""), options.get("ever") or chinese,
    )  # fmt: skip


def _verbs(text: str) -> tuple[Verb, ...]:
    return tuple(map(verb, text.strip().splitlines()))


ON_OBJECTS, ON_PEOPLE, STATES, ACTIVITIES = map(_verbs, (_ON_OBJECTS, _ON_PEOPLE, _STATES, _ACTIVITIES))
OF_ANIMALS = _verbs(_OF_ANIMALS)
