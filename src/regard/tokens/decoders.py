"""The decoders of the `tokenizers` package, done again for each token instead of for the whole text at once.

A decoder is a list of steps from the spelling of tokens in the vocabulary to text. Each step here does to pieces what
the same step there does to strings, except that bytes stay bytes until all are together.
"""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from regard.tokens.assemble import TokenPiece

Pieces = list[TokenPiece]
Step = Callable[[Pieces], Pieces]
BYTE = re.compile(rb"<0x([0-9A-Fa-f]{2})>")
CLINGING = (b".", b"?", b"!", b",", b"n't", b"'m", b"'s", b"'ve", b"'re")  # no space before these, if cleaned up


def byte_alphabet() -> dict[str, int]:
    """The letter by which byte-level tokens are spelled, for each byte (Radford et al. 2019).

    Bytes that can be seen in Latin-1 stand for themselves, the others for the letters from U+0100 on.

    >>> byte_alphabet()["Ġ"], byte_alphabet()["Ċ"], byte_alphabet()["a"]
    (32, 10, 97)
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = sorted(set(range(256)) - set(plain))
    return {chr(byte): byte for byte in plain} | {chr(0x100 + n): byte for n, byte in enumerate(rest)}


ALPHABET = byte_alphabet()


def steps_of(decoder: Any, suffix: str = "") -> list[Step] | None:
    """The steps of a `tokenizers` decoder, or None where one of them is not known here.

    `suffix` is what the model itself puts at the end of words (CLIP, whose decoder does not say so).
    """
    if decoder is None:
        return [add_spaces]
    try:
        told = json.loads(decoder.__getstate__())  # JSON, as in tokenizer.json
    except Exception:  # a decoder written in Python has no such description
        return None
    steps: list[Step] = []
    fused = False
    for one in told["decoders"] if told["type"] == "Sequence" else [told]:
        if one["type"] == "Fuse":
            fused = True
            continue
        step = step_of(one, fused)
        if step is None:
            return None
        steps.append(step)
        if one["type"] == "ByteLevel" and suffix:
            steps.append(partial(end_words, suffix=suffix.encode()))
    return steps


def step_of(told: dict[str, Any], fused: bool) -> Step | None:
    """One step; `fused` when the text is already one string, so that only its ends can still be told."""
    match told:
        case {"type": "Strip", "content": content, "start": start, "stop": stop}:
            return partial(strip_ends if fused else strip_each, what=content.encode(), start=start, stop=stop)
        case _ if fused:
            return None
        case {"type": "ByteLevel"}:
            return byte_level
        case {"type": "ByteFallback"}:
            return byte_fallback
        case {"type": "Replace", "pattern": {"String": old}, "content": new}:
            return partial(replace_bytes, old=old.encode(), new=new.encode())
        case {"type": "Metaspace", "replacement": mark, **how}:
            return partial(metaspace, mark=mark.encode(), prepended=how.get("prepend_scheme", "always") != "never")
        case {"type": "WordPiece", "prefix": prefix, "cleanup": cleanup}:
            return partial(word_pieces, prefix=prefix.encode(), cleanup=cleanup)
        case {"type": "BPEDecoder", "suffix": suffix}:
            return partial(end_words, suffix=suffix.encode())
        case _:
            return None


def add_spaces(pieces: Pieces) -> Pieces:
    """Whole words, with a space between them."""
    return [piece._replace(glue=b" ", joined=False) for piece in pieces]


def byte_level(pieces: Pieces) -> Pieces:
    """Each letter is a byte (GPT-2). What is not spelled so, or only known to the tokenizer, is what it says."""

    def to_text(piece: TokenPiece) -> bytes:
        letters = [ALPHABET.get(letter) for letter in piece.content.decode()]
        known = [letter for letter in letters if letter is not None]
        return piece.content if piece.added or len(known) < len(letters) else bytes(known)

    return [piece.but(to_text(piece)) for piece in pieces]


def byte_fallback(pieces: Pieces) -> Pieces:
    """`<0x0A>` is the byte 10."""
    found = [BYTE.fullmatch(piece.content) for piece in pieces]
    return [piece.but(bytes.fromhex(byte[1].decode())) if byte else piece for piece, byte in zip(pieces, found)]


def replace_bytes(pieces: Pieces, *, old: bytes, new: bytes) -> Pieces:
    return [piece.but(piece.content.replace(old, new)) for piece in pieces]


def metaspace(pieces: Pieces, *, mark: bytes, prepended: bool) -> Pieces:
    """`▁` is a space, except in the first token where the tokenizer had put it there itself."""
    spaces = [b"" if prepended and at == 0 else b" " for at in range(len(pieces))]
    return [piece.but(piece.content.replace(mark, space)) for piece, space in zip(pieces, spaces)]


def word_pieces(pieces: Pieces, *, prefix: bytes, cleanup: bool) -> Pieces:
    """`##ing` continues a word, everything else begins one, after a space that no token stands for."""
    out = []
    for piece in pieces:
        joined = piece.content.startswith(prefix) and piece.content != prefix
        content = piece.content.removeprefix(prefix) if joined else piece.content
        clings = joined or (cleanup and content.startswith(CLINGING))
        out.append(piece._replace(content=content, glue=b"" if clings else b" ", joined=joined))
    return out


def end_words(pieces: Pieces, *, suffix: bytes) -> Pieces:
    """`ing</w>` ends a word; the space after it belongs to no token."""
    out, ended = [], True
    for piece in pieces:
        out.append(
            piece._replace(content=piece.content.removesuffix(suffix), glue=b" " if ended else b"", joined=not ended)
        )
        ended = piece.content.endswith(suffix)
    return out


def strip_each(pieces: Pieces, *, what: bytes, start: int, stop: int) -> Pieces:
    return [piece.but(strip_bytes(strip_bytes(piece.content, what, start), what, stop, end=True)) for piece in pieces]


def strip_ends(pieces: Pieces, *, what: bytes, start: int, stop: int) -> Pieces:
    """The same for the whole text: at its beginning and at its end."""
    out = list(pieces)
    for order, most, end in ((range(len(out)), start, False), (range(len(out) - 1, -1, -1), stop, True)):
        for at in order:
            content = strip_bytes(out[at].content, what, most, end=end)
            most -= (len(out[at].content) - len(content)) // max(1, len(what))
            out[at] = out[at].but(content)
            if content or not most:
                break
    return out


def strip_bytes(content: bytes, what: bytes, most: int, *, end: bool = False) -> bytes:
    for _ in range(most):
        content = content.removesuffix(what) if end else content.removeprefix(what)
    return content
