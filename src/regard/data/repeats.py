"""Random strings that repeat: what comes next can be known only by looking back (Olsson et al. 2022).

Tokens mean nothing here, so nothing can be learned by heart: where a token came before, the one after it comes again.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

SEPARATORS = (".", ",", ";", "|")
LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_WORDS = """
    a all and ant apple are at bag ball bee big bird blue boat book box boy bread bus cake car cat chair child cold
    cow cup day dog door down egg eye farm fast fire fish five flower fly four fox frog game girl go good green hand
    has hat hen hill his home horse hot house ice in is jam key king lake lamp leaf lion little map mat milk moon
    mouse new night not old on one owl pen pig rain red ring river road run sat sea see sees she ship sing sky small
    snow star sun the three to tree two up walks was white
"""
WORDS = tuple(_WORDS.split())
VOCABULARY = (*LETTERS, *WORDS, *SEPARATORS)


class Repeats(NamedTuple):
    """Sequences, and which of their tokens could be known from the tokens before them."""

    ids: Int[Tensor, "*b t"]
    known: Bool[Tensor, "*b t"]


def sequence(index: int, *, length: int, vocabulary: int, seed: int = 0, clean: bool = False) -> Repeats:
    """Sequence `index` of the endless list that `seed` names: always the same, whichever others are asked for.

    A random string of 2 to length / 2 tokens is said again and again until `length` tokens are there. It begins after
    up to 8 tokens that do not belong to it, so that no position tells what comes. Half of the sequences draw their
    string without repeated tokens, half put a separator (one of the last 4 tokens) between the copies, a third put up
    to 3 other tokens there, and in a third one token in 20 is replaced by any other. `clean` leaves all of that
    away: a string without repeated tokens, from the first position on.

    `known` is True at a token if the one before it has occurred earlier, and was followed by it each time.

    >>> ids, known = sequence(7, length=12, vocabulary=26, clean=True)
    >>> "".join(LETTERS[i] for i in ids)
    'BPHSEBPHSEBP'
    >>> "".join(LETTERS[i] if k else "·" for i, k in zip(ids, known))
    '······PHSEBP'
    """
    if length < 4 or vocabulary <= len(SEPARATORS):
        raise ValueError(
            f"length {length} and vocabulary {vocabulary} came; give at least 4 and {len(SEPARATORS) + 1} of them"
        )
    rng = np.random.default_rng((seed, index))
    size = int(rng.integers(2, min(length // 2, vocabulary) + 1))
    alone = clean or rng.random() < 0.5
    string = rng.permutation(vocabulary)[:size] if alone else rng.integers(vocabulary, size=size)
    ids = np.empty(length, dtype=np.int64)
    if clean:
        ids[:] = np.resize(string, length)
    else:
        parts = [rng.integers(vocabulary, size=rng.integers(9))]
        separator = vocabulary - 1 - rng.integers(len(SEPARATORS), size=int(rng.random() < 0.5))
        between = 4 if rng.random() < 1 / 3 else 1
        while sum(map(len, parts)) < length:
            parts += [string, separator, rng.integers(vocabulary, size=rng.integers(between))]
        ids[:] = np.concatenate(parts)[:length]
        if rng.random() < 1 / 3:
            noise = rng.random(length) < 0.05
            ids[noise] = rng.integers(vocabulary, size=int(noise.sum()))
    return Repeats(torch.from_numpy(ids), torch.tensor(known_of(ids.tolist())))


def known_of(ids: Sequence[int]) -> list[bool]:
    """Where the token before occurred earlier, and was followed each time by the token that stands here.

    >>> known_of([5, 3, 5, 3, 5, 4, 5, 3])
    [False, False, False, True, True, False, False, False]
    """
    known, after = [False], defaultdict[int, set[int]](set)
    for before, here in pairwise(ids):
        known.append(after[before] == {here})
        after[before].add(here)
    return known


def batch(indices: Iterable[int], *, length: int, vocabulary: int, seed: int = 0, clean: bool = False) -> Repeats:
    """Several of them, one row each.

    >>> batch(range(3), length=16, vocabulary=26).ids.shape
    torch.Size([3, 16])
    """
    some = [sequence(i, length=length, vocabulary=vocabulary, seed=seed, clean=clean) for i in indices]
    return Repeats(torch.stack([one.ids for one in some]), torch.stack([one.known for one in some]))
