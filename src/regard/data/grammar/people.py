"""Who does it: pronouns, names, family and people by what they are, with what English verbs must know of them."""

from typing import NamedTuple

from regard.data.grammar.adjectives import describe
from regard.data.grammar.determiners import OWNERS, noun_phrase
from regard.data.grammar.draw import Draw
from regard.data.grammar.nouns import Noun, of_kind
from regard.data.grammar.phrase import NOTHING, Phrase, weave

_PEOPLE = """
man        men         男人   个 he   grown strong
woman      women       女人   个 she  grown lady
boy        boys        男孩   个 he   someone
girl       girls       女孩   个 she  someone lady
child      children    孩子   个 -    someone cute
teacher    teachers    老师   位 -    job grown someone
student    students    学生   个 -    job someone
doctor     doctors     医生   位 -    job grown someone
nurse      nurses      护士   位 -    job grown someone
farmer     farmers     农民   位 -    job grown
driver     drivers     司机   位 -    job grown
worker     workers     工人   位 -    job grown strong
writer     writers     作家   位 -    job grown known
singer     singers     歌手   位 -    job grown known
scientist  scientists  科学家 位 -    job known
lawyer     lawyers     律师   位 -    job grown
friend     friends     朋友   个 -    close
neighbour  neighbours  邻居   位 -    close
classmate  classmates  同学   个 -    close
"""
_KIN = """
    mother 妈妈 she   father 爸爸 he   sister 妹妹 she      brother 弟弟 he   grandmother 奶奶 she   grandfather 爷爷 he
    son 儿子 he       uncle 叔叔 he    daughter 女儿 she    aunt 阿姨 she
"""
_NAMES = """
    Tom 汤姆 he   Mary 玛丽 she   Jack 杰克 he   Lily 莉莉 she
    John 约翰 he  Anna 安娜 she   Peter 彼得 he   Lucy 露西 she
"""
_TITLED = """
    Mr Wang 王 先生 he   Mrs Li 李 太太 she   Miss Zhang 张 小姐 she   Mr Chen 陈 先生 he   Dr Liu 刘 医生 he
"""
_ADULTS = "Mr Mrs Miss Dr man woman men women mother father grandmother grandfather uncle aunt"


def _columns(text: str, count: int) -> tuple[tuple[str, ...], ...]:
    words = text.split()
    return tuple(zip(*(words[index::count] for index in range(count))))


KIN = _columns(_KIN, 3)


class Somebody(NamedTuple):
    """Who is spoken of; `person` is the pronoun that takes up the name again, `one` where none can."""

    phrase: Phrase
    person: str


PERSONS = {"I": "我", "you": "你", "he": "他", "she": "她", "we": "我们", "they": "他们"}
OBJECT_FORMS = dict(zip(PERSONS, ("me", "you", "him", "her", "us", "them")))
OWN = dict(zip(PERSONS, OWNERS))
PRONOUNS = tuple(Somebody(weave(f"{word}:1", f"{chinese}:1"), word) for word, chinese in PERSONS.items())
PRONOUN = {somebody.person: somebody for somebody in PRONOUNS}
OBJECTS = {person: weave(f"{OBJECT_FORMS[person]}:1", f"{chinese}:1") for person, chinese in PERSONS.items()}
NAMES = tuple(Somebody(weave(f"{name}:1", f"{chinese}:1"), person) for name, chinese, person in _columns(_NAMES, 3))
TITLED = tuple(
    Somebody(weave(f"{title}:1 {name}:2", f"{surname}:2 {title_after}:1"), person)
    for title, name, surname, title_after, person in _columns(_TITLED, 5)
)
FAMILY = tuple(
    Somebody(weave(f"{owner}:1 {kin}:2", f"{OWNERS[owner]}:1 {chinese}:2"), person)
    for owner in ("my", "your", "his", "her")
    for kin, chinese, person in KIN
)
OF_NAMES = tuple(
    Somebody(weave(f"{{n}} 's:1 {kin}:2", f"{{n}} 的:1 {chinese}:2", n=name.phrase), person)
    for name in NAMES
    for kin, chinese, person in KIN[:6]
)


def _person(line: str) -> tuple[Noun, str]:
    one, more, chinese, classifier, person, *kinds = line.split()
    counter = Phrase((), (classifier,))
    noun = Noun(one, more, chinese, counter, counter, frozenset([*kinds, "person"]))
    return noun, person if person != "-" else "one"


PEOPLE = tuple(map(_person, _PEOPLE.strip().splitlines()))
STRANGERS = tuple((noun, person) for noun, person in PEOPLE if "close" not in noun.kinds)
JOBS = tuple(noun for noun, _ in PEOPLE if "job" in noun.kinds)
CLOSE = tuple(noun for noun, _ in PEOPLE if "close" in noun.kinds)
ANIMALS = of_kind("animal")


_GROWN = frozenset(_ADULTS.split()) | {name for job in JOBS if job.one != "student" for name in (job.one, job.more)}


def is_grown(who: Somebody) -> bool:
    """Whether somebody is past going to school and doing homework."""
    return not _GROWN.isdisjoint(who.phrase.english)


def several(noun: Noun, determiner: str) -> Phrase:
    """People as a group: the students 学生们, our friends 我们的朋友们."""
    if determiner == "the":
        return weave(f"the {noun.more}:1", f"{noun.chinese}们:1")
    return weave(f"{determiner}:1 {noun.more}:2", f"{OWNERS[determiner]}:1 的:1 {noun.chinese}们:2")


def stranger(draw: Draw, share: float = 0.2) -> Somebody:
    """Somebody by what they are: the teacher, a young doctor, two girls, the students."""
    noun, person = draw.pick(STRANGERS)
    if draw.chance(0.2):
        return Somebody(several(noun, "the"), "they")
    determiner = draw.pick(("the", "the", "the", "the", "this", "that", "a", "two", "three", "many"))
    more = determiner in {"two", "three", "many"}
    return Somebody(noun_phrase(noun, determiner, describe(draw, noun, share)), "they" if more else person)


def friend(draw: Draw) -> Somebody:
    """Somebody one knows: my friend, her classmate, our neighbours."""
    noun, owner = draw.pick(CLOSE), draw.pick(tuple(OWNERS))
    if draw.chance(0.3):
        return Somebody(several(noun, owner), "they")
    return Somebody(noun_phrase(noun, owner, NOTHING), "one")


def somebody(draw: Draw) -> Somebody:
    """Anybody at all.

    >>> somebody(Draw("a key")).person in {*PERSONS, "one"}
    True
    """
    choice = draw.random()
    if choice < 0.36:
        return draw.pick(PRONOUNS)
    if choice < 0.51:
        return draw.pick(NAMES)
    if choice < 0.57:
        return draw.pick(TITLED)
    if choice < 0.67:
        return draw.pick(FAMILY)
    if choice < 0.71:
        return draw.pick(OF_NAMES)
    if choice < 0.77:
        return friend(draw)
    if choice < 0.83:
        return couple(draw)
    return stranger(draw)


def somebody_known(draw: Draw) -> Somebody:
    """Somebody whom a pronoun can take up again."""
    return draw.until(somebody, lambda found: found.person != "one")


def couple(draw: Draw) -> Somebody:
    """Two people: Tom and Mary, my father and I."""
    first = draw.pick((NAMES, FAMILY[:6])[draw.chance(0.4)])
    if draw.chance(0.3):
        both = weave("{a} and:1 I:2", "{a} 和:1 我:2", a=first.phrase)
        return Somebody(both, "we")
    second = draw.pick(NAMES)
    while second == first:
        second = draw.pick(NAMES)
    return Somebody(weave("{a} and:1 {b}", "{a} 和:1 {b}", a=first.phrase, b=second.phrase), "they")


def animal(draw: Draw, kinds: frozenset[str] = frozenset()) -> tuple[Somebody, Noun]:
    """An animal of these kinds: the cat, a small dog, two birds, my rabbit."""
    noun = draw.pick([one for one in ANIMALS if not kinds or one.kinds & kinds])
    determiner = draw.pick(("the", "the", "the", "the", "a", "two", "three", "this", "that"))
    if "pet" in noun.kinds and draw.chance(0.15):
        determiner = draw.pick(tuple(OWNERS))
    person = "they" if determiner in {"two", "three"} else "it"
    return Somebody(noun_phrase(noun, determiner, describe(draw, noun, 0.25, owned=determiner in OWNERS)), person), noun
