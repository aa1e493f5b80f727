"""The endless list of sentence pairs, cut into parts that share no sentence.

Which part a sentence belongs to is decided by its own text, so that nothing leaks whatever seed or count is asked for.
"""

from collections.abc import Callable
from hashlib import blake2b
from itertools import accumulate

from regard.data.grammar import (
    doing,
    events,
    joined,
    long,
    questions,
    reasons,
    relative,
    requests,
    states,
    things,
    weather,
)
from regard.data.grammar.aligned import AlignedPair, finish
from regard.data.grammar.draw import Draw
from regard.data.grammar.phrase import Phrase
from regard.errors import DataError

Pattern = Callable[[Draw], Phrase]
PARTS = ("train", "validation", "test", "unseen", "long")
LONG = 20
"""A sentence of so many words, punctuation counted, is long."""

_SIMPLE: dict[Pattern, int | float] = {
    events.past: 8, events.progressive: 6, events.habit: 5, events.future: 5, events.modal: 5, events.not_past: 3,
    events.not_habit: 2, events.posture: 4, events.posture_now: 2, events.animals: 3, events.experience: 2,
    events.already: 2, states.feeling: 2, states.quality: 2, states.job: 1, states.compare: 2, states.most: 1,
    weather.weather: 1, states.likes: 2, states.likes_doing: 1, states.skill: 1, states.lives: 1, states.has: 2,
    states.mine: 1, states.age: 0.6, states.price: 0.6, states.easy: 0.4, states.everyone: 0.4, things.exists: 3,
    things.located: 2, things.wears: 2, things.hangs: 0.5, things.put: 2, things.passive: 2, doing.went: 3,
    doing.goes: 2, doing.together: 1.5, doing.clock: 1, doing.gave: 3, doing.called: 1, doing.borrowed: 1,
    doing.helps: 1, doing.manner: 1, doing.lasted: 1.5, doing.visited: 1, doing.travels: 1, questions.yes_no: 3,
    questions.may: 1, questions.is_it: 1, questions.what: 1.5, questions.who_did: 1.5, questions.where_is: 1.5,
    questions.why: 1.5, questions.when: 1, questions.how: 1, questions.how_many: 1.5, questions.whose: 1,
    questions.either: 0.5, requests.please: 2, requests.forbid: 1, requests.let_us: 1,
}  # fmt: skip
_JOINED: dict[Pattern, int | float] = {
    reasons.because: 4, reasons.although: 1.5, reasons.if_: 3, reasons.when: 3, reasons.after: 2, reasons.before: 1,
    joined.and_: 4, joined.but: 3, joined.shop: 2, joined.then: 2, joined.while_: 1, joined.says_that: 3,
    relative.who_is: 2, relative.that_is: 2, relative.knows_who: 1.5, relative.animal_that: 1,
}  # fmt: skip
_LONG: dict[Pattern, int | float] = {
    long.scenes: 2.5, long.homecoming: 2, long.errand: 2, long.outing: 2, long.evening: 2, long.plans: 2,
    long.meeting: 2, long.differing: 2,
}  # fmt: skip
PATTERNS = _SIMPLE | _JOINED | _LONG


class _Choice:
    """Patterns to choose from, each as often as its weight says."""

    def __init__(self, weights: dict[Pattern, int | float]) -> None:
        self.patterns = tuple(
            (f"{one.__module__.rpartition('.')[2]}.{one.__name__.rstrip('_')}", one) for one in weights
        )
        total = sum(weights.values())
        steps = 1024
        ends = [round(steps * end / total) for end in accumulate(weights.values())]
        self.wheel = tuple(
            pattern for pattern, begin, end in zip(self.patterns, [0, *ends], ends) for _ in range(end - begin)
        )


_ALL, _ONLY_LONG = _Choice(PATTERNS), _Choice(_LONG)


def part_of(source: str, words: int) -> str:
    """The part that a sentence of so many words belongs to, decided by its text alone."""
    bucket = blake2b(source.encode(), digest_size=2, person=b"grammar").digest()[0] % 16
    if bucket == 0:
        return "validation"
    if bucket == 1:
        return "test"
    return "long" if bucket < 5 and words >= LONG else "train"


def sentence(index: int, *, seed: int, part: str = "train") -> AlignedPair:
    """Pair `index` of the list that `seed` and `part` name: the same whoever asks, and whichever others are asked for.

    >>> pair = sentence(3, seed=1, part="test")
    >>> "".join(pair.target_words) == pair.target
    True
    """
    if part not in PARTS:
        raise DataError(f"part {part!r} is not known; choose one of {', '.join(PARTS)}")
    draw = Draw(f"{seed}/{part}/{index}")
    wheel = (_ONLY_LONG if part == "long" else _ALL).wheel
    while True:
        name, pattern = draw.pick(wheel)
        draw.held = False
        phrase = pattern(draw)
        if draw.held != (part == "unseen"):
            continue
        pair = finish(phrase, name)
        if part == "unseen" or part_of(pair.source, len(pair.source_words)) == part:
            return pair


def sentences(count: int, *, seed: int, part: str = "train") -> list[AlignedPair]:
    """The first `count` pairs of a part.

    `train` is to learn from; `validation` and `test` hold sentences that `train` never does; `unseen` holds
    combinations of words that no other part ever puts together; `long` holds sentences of 20 words and more.

    >>> len(sentences(5, seed=0)), sentences(2, seed=0) == sentences(5, seed=0)[:2]
    (5, True)
    """
    if count < 0:
        raise DataError(f"{count} sentences were asked for; ask for 0 or more")
    return [sentence(index, seed=seed, part=part) for index in range(count)]
