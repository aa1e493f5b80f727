"""Masking: which tokens of a text are hidden from a model, which it then has to guess (Devlin et al. 2019, §3.1)."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from regard.data.byte_level import MASK, RESERVED
from regard.data.special import PAD
from regard.tokens.decoders import ALPHABET
from regard.tokens.words import in_word, is_unspaced

ASKED, HIDDEN, REPLACED = 0.15, 0.8, 0.1  # share of tokens that are asked for; of those: hidden, and any other instead


def hide_tokens(
    ids: Int[np.ndarray, " t"],
    vocabulary: int,
    seed: tuple[int, ...],
    word_starts: Bool[np.ndarray, " n"] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """What a model reads instead of these tokens, and what it should say: PAD where nothing is asked.

    Of all tokens of text 15 % are asked for: 80 % of them are hidden, 10 % are any other token, 10 % stay. With
    `word_starts`, which says of each token of the vocabulary whether a word begins with it, all tokens of a word are
    asked for, or none.

    >>> ids = np.array([1, 9, 7, 8, 2])
    >>> hide_tokens(ids, 11, (27,))
    (array([1, 9, 4, 8, 2]), array([0, 0, 7, 0, 0]))
    >>> hide_tokens(ids, 11, (27,), np.arange(11) != 8)  # 8 goes on with the word before it
    (array([1, 9, 4, 4, 2]), array([0, 0, 7, 8, 0]))
    """
    drawn = np.random.default_rng(seed).random((len(ids), 3))  # a row for each token, however many follow it
    chance = drawn[:, 0]
    if word_starts is not None:
        places = np.arange(len(ids))
        chance = chance[np.maximum.accumulate(np.where(word_starts[ids], places, 0))]
    asked = (chance < ASKED) & (ids >= len(RESERVED))
    other = len(RESERVED) + (drawn[:, 2] * (vocabulary - len(RESERVED))).astype(np.int64)
    instead = np.where(drawn[:, 1] < HIDDEN, MASK, np.where(drawn[:, 1] < HIDDEN + REPLACED, other, ids))
    return np.where(asked, instead, ids), np.where(asked, ids, PAD)


def find_word_starts(tokenizer: Any) -> Bool[np.ndarray, " n"]:
    """Whether a word begins with each token of a byte-level tokenizer.

    One does with a space, with a mark that is no letter and no digit, and with each character of a script without
    spaces; letters, digits and the later bytes of a character go on with the word before them.

    >>> from regard.models import embedded
    >>> tokenizer = embedded.tokenizer("filler")
    >>> starts = find_word_starts(tokenizer)
    >>> [(token, bool(starts[tokenizer.token_to_id(token)])) for token in ("Ġcat", "ing", ".", "[MASK]")]
    [('Ġcat', True), ('ing', False), ('.', True), ('[MASK]', True)]
    """
    names = [tokenizer.id_to_token(number) for number in range(tokenizer.get_vocab_size())]
    return np.array([number < len(RESERVED) or starts_word(name) for number, name in enumerate(names)])


def starts_word(name: str) -> bool:
    """Whether a word begins with the token that a byte-level tokenizer spells so.

    >>> [starts_word(name) for name in ("Ġ", "s", "3", "'s", "©", "ĠçĮ", "çĮ«")]
    [True, False, False, True, False, True, True]
    """
    data = bytes(ALPHABET[letter] for letter in name)
    first = data.decode("utf-8", "ignore")[:1]
    if not first or not data.startswith(first.encode()):  # part of a character, of a script without spaces where it
        return data[0] >= 0xE0  # has three bytes or more
    return not in_word(first) or is_unspaced(first)
