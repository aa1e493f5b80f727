"""Pairs → those to learn from and those to be judged by, so that no sentence stands in two of them."""

import unicodedata
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from regard.data.pairs import Pair
from regard.errors import DataError

LEFT_AWAY = {"P", "Z", "C"}  # punctuation, spaces, controls: the first letter of their Unicode categories


class PairSplit(NamedTuple):
    """The three parts, each in the order the pairs came."""

    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]


class ReferenceSet(NamedTuple):
    """One sentence and all its translations."""

    source: str
    targets: list[str]


def split(pairs: Iterable[Pair], *, validation: int | float, test: int | float, seed: int) -> PairSplit:
    """The pairs in three parts by their distinct source sentences: all translations of one stay together.

    Sentences that differ only in case, punctuation, spaces or width are one. `validation` and `test` count distinct
    sentences, or are shares of them (0.05). Which part a sentence falls in depends on the sentence, the seed and what
    other sentences there are, not on their order.

    >>> pairs = [Pair("Hi.", "嗨。"), Pair("Run!", "跑！"), Pair("hi", "你好。"), Pair("Stop!", "停！")]
    >>> parts = split(pairs, validation=1, test=0.25, seed=3)
    >>> [[pair.target for pair in part] for part in parts]
    [['停！'], ['跑！'], ['嗨。', '你好。']]
    """
    pairs = list(pairs)
    keys = [fold_text(pair.source) for pair in pairs]
    distinct = sorted(set(keys), key=lambda key: (hash_sentence(key, seed), key))
    tested = count("test", test, len(distinct))
    validated = count("validation", validation, len(distinct))
    if tested + validated >= len(distinct):
        raise DataError(
            f"{validated} sentences for validation and {tested} for the test leave nothing to learn from, as there are "
            f"{len(distinct)} distinct ones; ask for fewer"
        )
    part = dict.fromkeys(distinct, 0)
    part |= dict.fromkeys(distinct[tested : tested + validated], 1) | dict.fromkeys(distinct[:tested], 2)
    parts: list[list[Pair]] = [[], [], []]
    for pair, key in zip(pairs, keys):
        parts[part[key]].append(pair)
    return PairSplit(*parts)


def references(pairs: Iterable[Pair]) -> list[ReferenceSet]:
    """Each source once, with all its distinct translations, in the order they first come.

    >>> references([Pair("Hi.", "嗨。"), Pair("Run!", "跑！"), Pair("Hi.", "你好。")])
    [ReferenceSet(source='Hi.', targets=['嗨。', '你好。']), ReferenceSet(source='Run!', targets=['跑！'])]
    """
    known: dict[str, dict[str, None]] = {}
    for pair in pairs:
        known.setdefault(pair.source, {})[pair.target] = None
    return [ReferenceSet(source, list(targets)) for source, targets in known.items()]


def fold_text(text: str) -> str:
    """What sentences have in common that count as one: their letters, digits and signs, whatever case and width.

    >>> fold_text("Ｗhat's  UP?!") == fold_text("whats up")
    True
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept = folded.translate(KEPT)
    return kept or folded  # a sentence of nothing but punctuation is itself


class KeptLetters(dict[int, int | None]):
    """What `str.translate` makes of each letter: itself, or None where it is left away; looked up once."""

    def __missing__(self, letter: int) -> int | None:
        self[letter] = None if unicodedata.category(chr(letter))[0] in LEFT_AWAY else letter
        return self[letter]


KEPT = KeptLetters()


def hash_sentence(key: str, seed: int) -> bytes:
    """A number that looks random, made of a sentence and the seed alone."""
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16, key=f"{seed}".encode()[:64]).digest()


def count(name: str, wanted: int | float, distinct: int) -> int:
    """How many sentences are meant."""
    if isinstance(wanted, bool) or not (wanted >= 0 and (isinstance(wanted, int) or wanted < 1)):
        raise DataError(f"{name} is {wanted}; give how many sentences, or a share of them between 0 and 1")
    return wanted if isinstance(wanted, int) else round(wanted * distinct)
