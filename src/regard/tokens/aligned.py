"""Pieces from nothing but a `decode` function: what each further token adds to the text."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from regard.tokens.assemble import TokenPiece

Decode = Callable[[list[int]], str]
BROKEN = "\ufffd"
LONGEST = 4  # bytes of one character, so no more tokens than these wait for it to be whole


def pieces_by_decoding(decode: Decode, ids: Sequence[int]) -> list[TokenPiece]:
    """One piece per id; what they hold together is the text that `decode` gives, as far as decoding goes forward.

    Only a few tokens are decoded at a time, so that n tokens cost O(n). Tokens that have no text until a later one
    completes their character share its bytes.

    >>> pieces_by_decoding(lambda ids: bytes(ids).decode(errors="replace"), [104, 0xC3, 0xA9])
    [TokenPiece(content=b'h', ...), TokenPiece(content=b'\\xc3', ...), TokenPiece(content=b'\\xa9', ...)]
    """
    alone = [decode([token]) for token in ids]
    pieces: list[TokenPiece] = []
    context, first = 0, 0  # tokens before `first` are done; those from `context` on are decoded along with it
    while first < len(ids):
        done = decode(list(ids[context:first])) if first else ""
        stop, since, whole = first + 1, first, 0
        while True:
            added = beyond(decode(list(ids[context:stop])), done)
            if len(added.rstrip(BROKEN)) > whole:  # one character is whole, and the same token began the next
                since, whole = stop - 1, len(added.rstrip(BROKEN))
            waiting = stop < len(ids) and stop - since < LONGEST and alone[stop][:1] in ("", BROKEN)
            if not waiting or not is_part(added, alone[stop - 1]):
                break
            stop += 1
        shares = split(added, stop - first)
        pieces += [TokenPiece(share, name=name) for share, name in zip(shares, alone[first:stop])]
        context, first = first, stop
    return pieces


def is_part(added: str, alone: str) -> bool:
    """Whether what was added may still become a character: it is broken, or neither added nor alone is anything."""
    return added.endswith(BROKEN) or not (added or alone)


def beyond(text: str, done: str) -> str:
    """What `text` has more than `done`; a decoder that changes its mind about the end adds from there on."""
    while not text.startswith(done):
        done = done[:-1]
    return text[len(done) :]


def split(text: str, count: int) -> list[bytes]:
    """The bytes of a text in `count` shares, as even as can be: exactly right where each token is one byte."""
    data = text.encode("utf-8", "replace")
    borders = [len(data) * n // count for n in range(count + 1)]
    return [data[a:b] for a, b in pairwise(borders)]
