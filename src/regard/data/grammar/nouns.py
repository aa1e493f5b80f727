"""Animals and things: how they are called, how they are counted, and what can be done with them.

A line is: one, more, Chinese, classifier, then kinds. What cannot be counted by itself is counted by a measure that
both languages name (`cup cups 杯`): a cup of tea, 一杯茶.
"""

from functools import cache
from typing import NamedTuple

from regard.data.grammar.phrase import Phrase, weave

_COUNTED = """
cat        cats         猫     只  animal pet drawn seen cute
dog        dogs         狗     只  animal pet drawn seen cute clever
rabbit     rabbits      兔子   只  animal pet drawn seen cute grazing
bird       birds        鸟     只  animal flying drawn seen
horse      horses       马     匹  animal farmed drawn seen grazing ridden strong
cow        cows         牛     头  animal farmed drawn seen grazing
pig        pigs         猪     头  animal farmed drawn seen
sheep      sheep        羊     只  animal farmed drawn seen grazing
chicken    chickens     鸡     只  animal farmed drawn seen
duck       ducks        鸭子   只  animal farmed drawn seen flying swimming
fish       fish         鱼     条  animal seen drawn swimming food fresh wares
mouse      mice         老鼠   只  animal seen
monkey     monkeys      猴子   只  animal wild drawn seen clever cute climbing
tiger      tigers       老虎   只  animal wild drawn seen
elephant   elephants    大象   头  animal wild drawn seen
panda      pandas       熊猫   只  animal wild drawn seen cute climbing
lion       lions        狮子   头  animal wild drawn seen
fox        foxes        狐狸   只  animal seen drawn
bear       bears        熊     头  animal wild drawn seen strong climbing
butterfly  butterflies  蝴蝶   只  animal flying drawn seen beautiful
apple      apples       苹果   个  food fruit picked goods sized sweet coloured drawn laid
orange     oranges      橙子   个  food fruit picked goods sized sweet laid
banana     bananas      香蕉   根  food fruit goods sweet laid
pear       pears        梨     个  food fruit picked goods sized sweet laid
peach      peaches      桃子   个  food fruit picked goods sized sweet laid
watermelon watermelons  西瓜   个  food fruit goods sized sweet laid
tomato     tomatoes     西红柿 个  food goods fresh wares laid
potato     potatoes     土豆   个  food goods wares
egg        eggs         鸡蛋   个  food goods fresh wares boiled laid
cake       cakes        蛋糕   个  food goods sweet tasty baked gift
sandwich   sandwiches   三明治 个  food goods tasty baked
biscuit    biscuits     饼干   块  food goods tasty baked
book       books        书     本  readable printed goods novelty interesting thick important laid gift small owned
magazine   magazines    杂志   本  readable printed goods novelty interesting laid owned
newspaper  newspapers   报纸   份  readable printed goods laid
novel      novels       小说   本  readable printed goods written interesting laid owned
dictionary dictionaries 词典   本  printed goods tool novelty thick laid small owned
map        maps         地图   张  readable printed goods tool novelty laid small
letter     letters      信     封  readable written important posted laid
email      emails       邮件   封  readable written important posted
story      stories      故事   个  written heard interesting told
poem       poems        诗     首  written beautiful
song       songs        歌     首  sung heard beautiful
film       films        电影   部  watched interesting
match      matches      比赛   场  watched important
picture    pictures     画     幅  beautiful gift hung shown
photo      photos       照片   张  beautiful laid hung shown small old owned
table      tables       桌子   张  furniture goods sized novelty coloured machine heavy
desk       desks        书桌   张  furniture goods sized novelty heavy
chair      chairs       椅子   把  furniture goods sized novelty coloured machine
bed        beds         床     张  furniture goods sized novelty
sofa       sofas        沙发   张  furniture goods sized novelty coloured
mat        mats         垫子   块  furniture sized novelty coloured dirty
lamp       lamps        灯     盏  furniture goods sized novelty machine
door       doors        门     扇  shut
window     windows      窗户   扇  shut fragile
box        boxes        盒子   个  sized coloured holder opened heavy laid
bag        bags         包     个  goods sized coloured holder novelty heavy small owned opened laid gift
basket     baskets      篮子   个  sized holder heavy
cup        cups         杯子   个  goods coloured fragile washed cleanable laid gift sized
plate      plates       盘子   个  goods coloured fragile washed cleanable laid sized
bowl       bowls        碗     个  goods coloured fragile washed cleanable laid sized
mirror     mirrors      镜子   面  goods fragile sized hung
clock      clocks       钟     个  goods machine hung sized novelty laid
bottle     bottles      瓶子   个  opened laid sized fragile
knife      knives       刀     把  goods tool small laid cleanable
umbrella   umbrellas    雨伞   把  goods coloured novelty small tool held owned laid opened
key        keys         钥匙   把  small owned laid
pen        pens         笔     支  goods tool coloured novelty small owned laid held gift
pencil     pencils      铅笔   支  goods tool coloured small laid held
ticket     tickets      票     张  goods small
card       cards        卡片   张  written beautiful small laid gift
phone      phones       手机   部  goods machine tool novelty coloured small owned laid
computer   computers    电脑   台  goods machine tool novelty owned heavy
camera     cameras      相机   台  goods machine tool novelty small owned laid gift
radio      radios       收音机 台  goods machine novelty laid
guitar     guitars      吉他   把  goods novelty owned gift
piano      pianos       钢琴   架  goods novelty coloured heavy
ball       balls        球     个  goods coloured sized small laid drawn gift
toy        toys         玩具   个  goods baked novelty small laid gift
kite       kites        风筝   只  goods baked beautiful coloured gift drawn
gift       gifts        礼物   份  goods posted
flower     flowers      花     朵  goods plant beautiful coloured drawn picked gift
tree       trees        树     棵  plant drawn tall
shirt      shirts       衬衫   件  goods clothes coloured novelty washed cleanable owned gift
coat       coats        大衣   件  goods clothes coloured novelty washed warm thick owned cleanable
sweater    sweaters     毛衣   件  goods clothes coloured novelty washed warm thick owned gift cleanable
skirt      skirts       裙子   条  goods clothes coloured novelty washed beautiful ladies cleanable
dress      dresses      连衣裙 条  goods clothes coloured novelty washed beautiful ladies cleanable
scarf      scarves      围巾   条  goods donned coloured novelty washed warm owned gift cleanable
hat        hats         帽子   顶  goods donned coloured novelty small owned gift cleanable
car        cars         汽车   辆  vehicle machine washed coloured novelty owned bought
bicycle    bicycles     自行车 辆  goods machine washed coloured novelty owned ridden
bus        buses        公共汽车 辆  vehicle
taxi       taxis        出租车 辆  vehicle
train      trains       火车   列  vehicle
plane      planes       飞机   架  vehicle
ship       ships        船     条  vehicle sized
house      houses       房子   座  drawn sized novelty
"""

_MEASURED = """
tea        cup    cups    杯 茶    drink hot goods
coffee     cup    cups    杯 咖啡  drink hot goods
water      glass  glasses 杯 水    drink hot chilled
milk       glass  glasses 杯 牛奶  drink hot chilled goods fresh
juice      glass  glasses 杯 果汁  drink chilled fresh goods
beer       bottle bottles 瓶 啤酒  drink chilled goods
rice       bowl   bowls   碗 米饭  food
noodles    bowl   bowls   碗 面条  food tasty boiled
dumplings  bowl   bowls   碗 饺子  food tasty boiled
soup       bowl   bowls   碗 汤    drink hot boiled
bread      piece  pieces  片 面包  food fresh tasty goods
meat       piece  pieces  块 肉    food fresh goods wares
chocolate  piece  pieces  块 巧克力 food goods sweet gift
paper      piece  pieces  张 纸    laid
shoes      pair   pairs   双 鞋    worn coloured novelty washed owned
gloves     pair   pairs   副 手套  donned coloured novelty washed warm owned
socks      pair   pairs   双 袜子  worn coloured novelty washed owned warm
"""


class Noun(NamedTuple):
    """A noun in both languages, with what counts it."""

    one: str
    more: str
    chinese: str
    counter: Phrase
    """What stands between `one` or `this` and the noun: a classifier, in Chinese only, or a measure in both."""
    counters: Phrase
    kinds: frozenset[str]
    measured: bool = False


def _read_counted(line: str) -> Noun:
    one, more, chinese, classifier, *kinds = line.split()
    counter = Phrase((), (classifier,))
    return Noun(one, more, chinese, counter, counter, frozenset(kinds))


def _read_measured(line: str) -> Noun:
    word, one, more, measure, chinese, *kinds = line.split()
    singly, many = (weave(f"{name}:1 of", f"{measure}:1") for name in (one, more))
    return Noun(word, word, chinese, singly, many, frozenset(kinds), measured=True)


NOUNS = tuple(map(_read_counted, _COUNTED.strip().splitlines())) + tuple(
    map(_read_measured, _MEASURED.strip().splitlines())
)
BY_NAME = {noun.one: noun for noun in NOUNS}


@cache
def of_kind(*kinds: str) -> tuple[Noun, ...]:
    """The nouns that are of any of these kinds.

    >>> [noun.one for noun in of_kind("heard")]
    ['story', 'song']
    """
    return tuple(noun for noun in NOUNS if noun.kinds.intersection(kinds))
