"""Pieces as a tokenizer keeps them, put together: one text, and for every token what of it it stands for."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from regard.tokens.text import Tokens
from regard.tokens.visible import visible
from regard.tokens.words import starts_word

Span = tuple[int, int]
WINDOW = 1 << 12  # bytes looked at together: an error copies what it was found in
NOTHING = "∅"  # a token that stands for no text and has no name that can be seen


class TokenPiece(NamedTuple):
    """What one token adds to the text. Bytes, because a character may be spread over several tokens."""

    content: bytes
    name: str = ""  # shown where there is no content
    glue: bytes = b""  # stands before it in the text and belongs to no token
    joined: bool | None = None  # whether it continues a word; None: the text decides
    added: bool = False  # known to the tokenizer, not to its model

    def but(self, content: bytes) -> "TokenPiece":
        return self._replace(content=content)


class TokenLabel(NamedTuple):
    """A token that stands for no text: a special one, or an id that the tokenizer does not know."""

    name: str
    special: bool = True


def assemble(parts: Sequence[TokenPiece | TokenLabel], ids: tuple[int, ...] | None = None) -> Tokens:
    """Readable tokens. The offsets of pieces are in order and in range; what they leave out is glue.

    >>> cat = TokenPiece(b"a\\xf0\\x9f"), TokenPiece(b"\\x98\\x80")
    >>> tokens = assemble([*cat, TokenLabel("[SEP]"), TokenPiece(b"\\xff")])
    >>> tokens.text, tokens.shown
    ('a😀�', ('a😀⟨1/2⟩', '😀⟨2/2⟩', '[SEP]', '⟨FF⟩'))
    >>> tokens.offsets, tokens.words
    (((0, 2), (1, 2), None, (2, 3)), (0, 0, None, 1))
    """
    pieces = [part for part in parts if isinstance(part, TokenPiece)]
    data, spans = join_pieces(pieces)
    text, starts = characters(data)
    covered = [cover(first, stop, starts) for first, stop in spans]
    shown = iter([*readings(pieces, spans, covered, data, text, starts)])
    offsets = iter(covered)
    return Tokens(
        shown=tuple(next(shown) if isinstance(part, TokenPiece) else visible(part.name) or NOTHING for part in parts),
        ids=ids,
        offsets=tuple(next(offsets) if isinstance(part, TokenPiece) else None for part in parts),
        special=tuple(isinstance(part, TokenLabel) and part.special for part in parts),
        words=words(parts, covered, text),
        text=text,
    )


def join_pieces(pieces: Sequence[TokenPiece]) -> tuple[bytes, list[Span]]:
    """All bytes with their glue, and where each piece stands in them. Nothing is glued before the first content."""
    data, spans = bytearray(), []
    for piece in pieces:
        data += piece.glue if data else b""
        spans.append((len(data), len(data) + len(piece.content)))
        data += piece.content
    return bytes(data), spans


def characters(data: bytes) -> tuple[str, list[int]]:
    """The text, and the byte at which each character of it starts, and the last one stops.

    What is no UTF-8 becomes U+FFFD, one for each longest beginning of a character, as Unicode recommends.
    """
    view, at, runs, lengths = memoryview(data), 0, [], []
    while at < len(data):
        part = view[at : at + WINDOW]
        try:
            run, broken = str(part, "utf-8"), 0
        except UnicodeDecodeError as error:
            cut = error.end == len(part) and error.start > 0  # by the window: the next one has all of it
            run, broken = str(part[: error.start], "utf-8"), 0 if cut else error.end - error.start
        sizes = [1] * len(run) if run.isascii() else [len(character.encode()) for character in run]
        runs.append(run + "�" * bool(broken))
        lengths += [*sizes, *([broken] if broken else [])]
        at += sum(sizes) + broken
    return "".join(runs), [0, *accumulate(lengths)]


def cover(first: int, stop: int, starts: list[int]) -> Span:
    """The characters that some bytes touch, whole; none where there are no bytes, unless they would split one."""
    low = bisect_right(starts, first) - 1
    if first == stop and starts[low] == first:
        return low, low
    return low, bisect_right(starts, max(first, stop - 1))


def readings(
    pieces: Sequence[TokenPiece], spans: list[Span], covered: list[Span], data: bytes, text: str, starts: list[int]
) -> Iterator[str]:
    """What is shown for each piece. A shared character says which part of it this is; bytes of none show as `⟨FF⟩`."""
    ends = starts[1:]
    sharing = Counter(
        at
        for (first, stop), (low, high) in zip(spans, covered)
        for at in {low, high - 1}
        if first < stop and (starts[at] < first or stop < ends[at])
    )
    turn: Counter[int] = Counter()
    for piece, (first, stop), (low, high) in zip(pieces, spans, covered):
        if first == stop:
            yield visible(piece.name) or NOTHING
            continue
        runs, run = [], low
        for at in range(low, high):
            real = text[at] != "�" or data[starts[at] : ends[at]] == "�".encode()
            if real and at not in sharing:
                continue
            turn[at] += 1
            bytes_of = data[max(first, starts[at]) : min(stop, ends[at])]
            mark = f"{visible(text[at])}⟨{turn[at]}/{sharing[at]}⟩" if real else "".join(f"⟨{b:02X}⟩" for b in bytes_of)
            runs += [visible(text[run:at]), mark]
            run = at + 1
        yield "".join([*runs, visible(text[run:high])])


def words(parts: Sequence[TokenPiece | TokenLabel], covered: list[Span], text: str) -> tuple[int | None, ...]:
    """Which word each token belongs to, counted from 0; None for what is no text."""
    word, spans = -1, iter(covered)
    numbers: list[int | None] = []
    last: Span | None = None  # what the token just before covers, if it is a piece
    for part in parts:
        if isinstance(part, TokenLabel):
            last = None
            numbers.append(None)
            continue
        low, high = next(spans)
        word += last is None or begins(part, last, low, text)
        last = (low, high)
        numbers.append(word)
    return tuple(numbers)


def begins(piece: TokenPiece, last: Span, low: int, text: str) -> bool:
    if low < last[1] or last == (low, low):  # in one character, or after nothing, which has already begun the word
        return False
    return starts_word(text, low, text[slice(*last)]) if piece.joined is None else not piece.joined
