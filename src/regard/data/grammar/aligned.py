"""A finished pair of sentences with its words, their places in the text, and the words that mean each other."""

from typing import NamedTuple

from regard.data.grammar.phrase import Phrase

CLOSING = frozenset({".", ",", "?", "!", "'s"})
FULL_WIDTH = {",": "\uff0c", "?": "\uff1f", "!": "\uff01"}  # as Chinese is written
SOUNDS_LIKE_A_CONSONANT = ("uni", "use", "one", "eu")
SOUNDS_LIKE_A_VOWEL = ("hour", "honest")


class AlignedPair(NamedTuple):
    """An English sentence, its Chinese, and the true alignment of their words.

    >>> pair = finish(Phrase(("cats", "sleep", "."), ("猫", "睡觉", "。"), ((0, 0), (1, 1), (2, 2))), "example")
    >>> pair.source, pair.target
    ('Cats sleep.', '猫睡觉。')
    >>> [(pair.target_words[i], pair.source_words[j]) for i, j in pair.links]
    [('猫', 'Cats'), ('睡觉', 'sleep'), ('。', '.')]
    """

    source: str
    target: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    links: tuple[tuple[int, int], ...]
    pattern: str


class WordSpans(NamedTuple):
    """Where each word begins and ends in its text, counted in characters."""

    source: tuple[tuple[int, int], ...]
    target: tuple[tuple[int, int], ...]


def finish(phrase: Phrase, pattern: str) -> AlignedPair:
    """The phrase spelt as people write it: a capital first, `an` before a vowel, no space before a full stop."""
    words = list(phrase.english)
    for index, word in enumerate(words):
        if word == "a" and _vowel(words[index + 1]):
            words[index] = "an"
    words[0] = words[0][0].upper() + words[0][1:]
    text = words[0]
    for word in words[1:]:
        text += word if word in CLOSING else " " + word
    chinese = tuple(FULL_WIDTH.get(word, word) for word in phrase.chinese)
    return AlignedPair(text, "".join(chinese), tuple(words), chinese, tuple(sorted(phrase.links)), pattern)


def _vowel(word: str) -> bool:
    if word.startswith(SOUNDS_LIKE_A_VOWEL):
        return True
    return word[0] in "aeiou" and not word.startswith(SOUNDS_LIKE_A_CONSONANT)


def word_spans(aligned: AlignedPair) -> WordSpans:
    """Where each word stands in `source` and in `target`, so that the links fit any tokens that have offsets.

    >>> from regard.data.grammar import sentence
    >>> pair = sentence(0, seed=0)
    >>> spans = word_spans(pair)
    >>> [pair.target[a:b] for a, b in spans.target] == list(pair.target_words)
    True
    """
    return WordSpans(_spans(aligned.source, aligned.source_words), _spans(aligned.target, aligned.target_words))


def _spans(text: str, words: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    spans, at = [], 0
    for word in words:
        begin = text.index(word, at)
        at = begin + len(word)
        spans.append((begin, at))
    return tuple(spans)
