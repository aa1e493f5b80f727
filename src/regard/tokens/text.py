"""Tokens as people read them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from regard.errors import TraceError
from regard.tokens.visible import columns, cut

PER_TOKEN = ("ids", "offsets", "special", "words")


@dataclass(frozen=True, repr=False)
class Tokens:
    """One sequence of tokens. All tuples have one entry per token.

    `shown` may stand anywhere: nothing in it is hidden, whatever the script. `offsets` are the characters of `text`
    that a token stands for, first and stop, in order; tokens that share one character (the bytes of an emoji) each
    have all of it, a token that stands for no text has None. Special tokens are not in `text`.

    >>> tokens = Tokens.of(["[CLS]", "un", "##seen", "cat", "[SEP]"])
    >>> tokens.shown, tokens.text
    (('[CLS]', 'un', 'seen', 'cat', '[SEP]'), 'unseen cat')
    >>> tokens.words, tokens.offsets
    ((None, 0, 0, 1, None), (None, (0, 2), (2, 6), (7, 10), None))
    """

    shown: tuple[str, ...]  # readable text
    ids: tuple[int, ...] | None = None
    offsets: tuple[tuple[int, int] | None, ...] | None = None  # characters of `text`
    special: tuple[bool, ...] | None = None
    words: tuple[int | None, ...] | None = None  # which word a piece belongs to
    text: str | None = None
    grid: tuple[int, int] | None = None  # rows and columns of image patches

    def __post_init__(self) -> None:
        for name in PER_TOKEN:
            given = getattr(self, name)
            if given is not None and len(given) != len(self.shown):
                raise TraceError(
                    f"{len(self.shown)} tokens came with {len(given)} {name}; give one per token, or None for all"
                )

    @staticmethod
    def of(words: Any) -> "Tokens":
        """Tokens from strings, one each.

        Strings as a tokenizer spells them (`##ing`, `Ġthe`, `▁the`, `<0x0A>`) become readable text with offsets and
        words; plain ones are taken as they are, without a text. `Tokens(shown=…)` guesses nothing.

        >>> Tokens.of(["The", "Ġcat", "Ċ"]).shown
        ('The', '·cat', '⏎')
        """
        from regard.tokens.spelling import tokens_of_strings

        return tokens_of_strings(words)

    def short(self, width: int) -> tuple[str, ...]:
        """Each token in at most `width` columns; a longer one loses its middle, for axes.

        >>> Tokens.of(["internationalisation", "of", "cats"]).short(7)
        ('int…ion', 'of', 'cats')
        """
        if width < 1:
            raise TraceError(f"tokens were asked for in {width} columns; give 1 or more")
        return tuple(cut(shown, width) for shown in self.shown)

    def pick(self, where: slice | Sequence[int]) -> "Tokens":
        """Some of the tokens, in the order asked for; the text stays whole, and a grid is no longer one.

        >>> Tokens.of(["a", "cat", "sat"]).pick(slice(1, None)).shown
        ('cat', 'sat')
        """
        places = range(len(self))[where] if isinstance(where, slice) else where
        if places == range(len(self)):
            return self
        outside = next((place for place in places if not -len(self) <= place < len(self)), None)
        if outside is not None:
            raise TraceError(f"token {outside} was asked for, but there are {len(self)}")
        changed: dict[str, Any] = {"grid": None}
        for name in ("shown", *PER_TOKEN):
            given = getattr(self, name)
            changed[name] = None if given is None else tuple(given[place] for place in places)
        return replace(self, **changed)

    def __len__(self) -> int:
        return len(self.shown)

    def __repr__(self) -> str:
        some: list[str] = []
        for shown in self.shown:
            some.append(cut(shown, 24))
            if sum(map(columns, some)) + len(some) > 72:
                some.append("…")
                break
        has = [field.name for field in fields(self) if field.name != "shown" and getattr(self, field.name) is not None]
        return f"Tokens({len(self)}: {' '.join(some)}{'; ' if has else ''}{', '.join(has)})"
