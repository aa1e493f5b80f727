"""Ids that come one by one → the text that each of them adds."""

from collections.abc import Sequence

from regard.tokens import TextTokenizer

BROKEN = "\N{REPLACEMENT CHARACTER}"
BEFORE = 8  # tokens of the prompt that are decoded with the first new one, so that it knows whether a space comes first


class Detokenizer:
    """Text piece by piece: part of a character adds nothing until the rest of it has come.

    Only the last few ids are decoded each time, so that a long text costs no more per token than a short one. The
    pieces and what `flush` gives at the end are, joined, what the ids add to the prompt.

    >>> from regard.models.tokenizer import WordTokenizer
    >>> add = Detokenizer(WordTokenizer(["A", "B", "."]), [0])
    >>> add(1), add(2)
    (' B', ' .')
    """

    def __init__(self, tokenizer: TextTokenizer, prompt: Sequence[int]) -> None:
        self.tokenizer = tokenizer
        self.ids = list(prompt[-BEFORE:])
        self.given = len(self.ids)  # of these ids the text was given out

    def __call__(self, token: int) -> str:
        self.ids.append(int(token))
        piece = self._decode_rest()
        if not piece or piece.endswith(BROKEN):
            return ""
        self.ids, self.given = self.ids[self.given :], len(self.ids) - self.given
        return piece

    def flush(self) -> str:
        """What is left over: part of a character that never became whole."""
        piece, self.given = self._decode_rest(), len(self.ids)
        return piece

    def _decode_rest(self) -> str:
        before, whole = self.tokenizer.decode(self.ids[: self.given]), self.tokenizer.decode(self.ids)
        return whole[len(before) :] if whole.startswith(before) else ""


class StopWords:
    """Text up to the first of some strings: what may become one of them is held back until it cannot.

    >>> add = StopWords(["END"])
    >>> add("the E"), add("N"), add("T"), add("... ENDING"), add.is_met
    ('the ', '', 'ENT', '... ', True)
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words, self.held, self.is_met = words, "", False

    def __call__(self, piece: str) -> str:
        self.held += piece
        places = [at for at in (self.held.find(word) for word in self.words) if at >= 0]
        if places:
            self.is_met = True
            return self.held[: min(places)]
        keep = max((overlap(self.held, word) for word in self.words), default=0)
        given, self.held = self.held[: len(self.held) - keep], self.held[len(self.held) - keep :]
        return given

    def flush(self) -> str:
        """What was held back, once nothing more comes."""
        given, self.held = self.held, ""
        return given


def overlap(text: str, word: str) -> int:
    """How many characters at the end of a text may be the beginning of a word.

    >>> overlap("a cat", "atom"), overlap("a cat", "dog")
    (2, 0)
    """
    return next((n for n in range(min(len(word) - 1, len(text)), 0, -1) if text.endswith(word[:n])), 0)
