"""Choices that depend on nothing but a key, and the combinations that training never sees."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

Option = TypeVar("Option")

_HELD_OUT = """
    eat banana    eat pear      eat sandwich  eat noodles   drink juice    drink coffee   read magazine  read map
    write story   write email   buy guitar    buy sweater   buy cake       buy lamp       draw horse     draw flower
    wash dress    wash cup      repair radio  repair chair  see fox        see elephant   find key       find photo
    lose hat      lose pen      break mirror  break bowl    make kite      draw tiger     listen story   cook egg
    feed duck     feed horse    open box      close door    use dictionary use camera     sell tomato    sell fish
    red bicycle   red skirt     blue car      blue cup      white cat      white flower   black bag      black dog
    green coat    yellow hat    big elephant  big orange    small rabbit   small table    new computer   new dress
    old book      old piano     beautiful girl    beautiful picture   cute panda       clever student   kind doctor
    fresh fish    delicious cake  hot soup    cold milk     interesting novel    young teacher  clean shirt  cheap coat
"""
HELD_OUT = frozenset(zip(_HELD_OUT.split()[::2], _HELD_OUT.split()[1::2]))
"""Verb and object, adjective and noun: each word is learned in other company, the two together never."""


class Draw:
    """The choices of one sentence: the same key gives the same ones on any machine.

    >>> Draw("a key").pick("abcdef") == Draw("a key").pick("abcdef")
    True
    """

    def __init__(self, key: str) -> None:
        self.random = Random(key).random  # noqa: S311 (nothing here is a secret)
        self.held = False
        """Whether a combination came up that training never sees."""

    def pick(self, options: Sequence[Option]) -> Option:
        """One of them, each as likely as the others."""
        return options[int(self.random() * len(options))]

    def different(self, options: Sequence[Option], count: int) -> list[Option]:
        """Some of them, no two the same."""
        left = list(options)
        return [left.pop(int(self.random() * len(left))) for _ in range(count)]

    def chance(self, share: float) -> bool:
        """True in this share of cases."""
        return self.random() < share

    def until(self, make: Callable[["Draw"], Option], good: Callable[[Option], bool]) -> Option:
        """Draw until it is good; what was thrown away leaves no trace."""
        held = self.held
        while not good(found := make(self)):
            self.held = held
        return found

    def pair(self, first: str, second: str) -> None:
        """Say which words come together: a verb and its object, an adjective and its noun."""
        if (first, second) in HELD_OUT:
            self.held = True
