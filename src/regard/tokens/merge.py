"""Word pieces merged to words."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from regard.tokens.text import Tokens
from regard.tokens.visible import visible


def groups(tokens: Tokens) -> list[slice]:
    """The pieces of each word, in order; a token that belongs to no word stands alone.

    >>> groups(Tokens.of(["[CLS]", "play", "##ing", "cats"]))
    [slice(0, 1, None), slice(1, 3, None), slice(3, 4, None)]
    """
    if tokens.words is None:
        return [slice(at, at + 1) for at in range(len(tokens))]
    before = (None, *tokens.words)  # of each token the word of the one before it
    borders = [at for at, word in enumerate(tokens.words) if word is None or word != before[at]]
    return [slice(first, stop) for first, stop in pairwise([*borders, len(tokens)])]


def merge_tokens(tokens: Tokens) -> Tokens:
    """The words that the pieces make. A word has no id, and is shown without the space before it.

    >>> merge_tokens(Tokens.of(["The", "Ġcat", "s", "Ġsleep"])).shown
    ('The', 'cats', 'sleep')
    """
    if tokens.words is None:
        return tokens
    merged = groups(tokens)
    firsts = tokens.pick([group.start for group in merged])
    offsets = None if tokens.offsets is None else tuple(span(tokens.offsets[group]) for group in merged)
    whole = len(merged) == len(tokens)
    return replace(
        firsts,
        shown=tuple(word(tokens, group, at) for group, at in zip(merged, offsets or (None,) * len(merged))),
        ids=tokens.ids if whole else None,
        offsets=offsets,
        grid=tokens.grid if whole else None,
    )


def span(offsets: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    """From the first character to the last."""
    known = [offset for offset in offsets if offset is not None]
    return (known[0][0], known[-1][1]) if known else None


def word(tokens: Tokens, group: slice, at: tuple[int, int] | None) -> str:
    """What is shown for a word: its text, where that is known, so that a shared character is whole again."""
    together = "".join(tokens.shown[group])
    if tokens.text is None or at is None or at[0] == at[1] or "\ufffd" in tokens.text[slice(*at)]:
        return together
    text = tokens.text[slice(*at)]
    return visible(text.strip(" ") or text)
