"""What is known of a tokenizer: how an id is spelled, which are special, and what each adds to the text."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from regard.errors import TraceError
from regard.tokens.aligned import pieces_by_decoding
from regard.tokens.assemble import TokenPiece
from regard.tokens.decoders import Step, add_spaces, byte_level, steps_of, word_pieces
from regard.tokens.protocol import TextTokenizer, check_instance
from regard.tokens.spelling import guess, pieces_of_strings, to_bytes

LARGEST = 2**31  # beyond, tokenizers raise instead of saying that they do not know
SPELLERS = ("id_to_token", "convert_ids_to_tokens")


class TokenNames:
    """One tokenizer, looked into once. `name` is None for an id that it does not know."""

    def __init__(self, spell: Callable[[int], str | None], special: set[int]) -> None:
        self.spell, self.special = spell, special

    def name(self, token: int) -> str | None:
        if not 0 <= token < LARGEST:
            return None
        try:
            return self.spell(token)
        except TraceError:
            raise
        except Exception:  # whatever somebody's tokenizer says to an id that it does not know
            return None

    def pieces(self, ids: Sequence[int]) -> list[TokenPiece]:
        """What each of these known tokens adds to the text. Here only their spelling is known, so it is guessed."""
        names = [self.name(token) or "" for token in ids]
        return pieces_of_strings(names, guess(names) or [add_spaces])


class ByDecoder(TokenNames):
    """A tokenizer of the `tokenizers` package, or one like it, by the steps of its decoder."""

    def __init__(self, spell: Callable[[int], str | None], special: set[int], steps: list[Step], model: Any) -> None:
        super().__init__(spell, special)
        self.steps, self.model = steps, model

    def pieces(self, ids: Sequence[int]) -> list[TokenPiece]:
        pieces = [self.piece(token) for token in ids]
        for step in self.steps:
            pieces = step(pieces)
        return pieces

    def piece(self, token: int) -> TokenPiece:
        name = self.name(token) or ""
        added = self.model is not None and self.model.id_to_token(token) is None
        return TokenPiece(to_bytes(name), name=name.replace("▁", " "), added=added)


class ByBytes(TokenNames):
    """A tokenizer that gives the bytes of each token (tiktoken)."""

    def __init__(self, bytes_of: Callable[[int], bytes], special: set[int]) -> None:
        super().__init__(lambda token: bytes_of(token).decode("utf-8", "replace"), special)
        self.bytes_of = bytes_of

    def pieces(self, ids: Sequence[int]) -> list[TokenPiece]:
        return [TokenPiece(self.bytes_of(token)) for token in ids]


class ByDecoding(TokenNames):
    """Anything that decodes ids to text."""

    def __init__(
        self, decode: Callable[[list[int]], str], name: Callable[[int], str | None], special: set[int]
    ) -> None:
        super().__init__(name, special)
        self.decode = decode

    def pieces(self, ids: Sequence[int]) -> list[TokenPiece]:
        return pieces_by_decoding(self.decode, ids)


class ByProtocol(TokenNames):
    """A tokenizer that follows the protocol, by its own names and what it decodes them to."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        super().__init__(lambda token: tokenizer.names([token])[0], set(tokenizer.special))
        self.tokenizer = tokenizer

    def pieces(self, ids: Sequence[int]) -> list[TokenPiece]:
        names = self.tokenizer.names(ids)
        if self.tokenizer.decode(ids) == " ".join(names):  # whole words: spaces belong to none of them
            return pieces_of_strings(names, [add_spaces])
        return pieces_by_decoding(self.tokenizer.decode, ids)


def source_of(tokenizer: Any) -> TokenNames:
    """The best way there is to know this tokenizer."""
    check_instance(tokenizer)
    if isinstance(tokenizer, TextTokenizer) and not hasattr(tokenizer, "tokenizer"):  # it is around none that says more
        return ByProtocol(tokenizer)
    if not any(hasattr(tokenizer, name) for name in SPELLERS):
        tokenizer = getattr(tokenizer, "tokenizer", tokenizer)  # a processor of images and text holds one
    backend = getattr(tokenizer, "backend_tokenizer", None) or tokenizer
    spell, special = speller(tokenizer), special_ids(tokenizer) | special_ids(backend)
    if spell is not None and hasattr(backend, "decoder") and hasattr(backend, "get_added_tokens_decoder"):
        steps = steps_of(backend.decoder, getattr(backend.model, "end_of_word_suffix", None) or "")
        if steps is not None:
            return ByDecoder(spell, special, steps, backend.model)
    if spell is not None and isinstance(getattr(tokenizer, "byte_decoder", None), Mapping):
        return ByDecoder(spell, special, [byte_level], None)  # written in Python, spelled as GPT-2
    if spell is not None and hasattr(tokenizer, "wordpiece_tokenizer"):
        return ByDecoder(spell, special, [partial(word_pieces, prefix=b"##", cleanup=False)], None)  # as BERT
    if callable(getattr(tokenizer, "decode_single_token_bytes", None)):
        return ByBytes(tokenizer.decode_single_token_bytes, special)
    if callable(getattr(tokenizer, "decode", None)):
        decode = decoder(tokenizer)
        return ByDecoding(decode, spell or (lambda token: decode([token])), special)
    if spell is not None:
        return TokenNames(spell, special)
    raise TraceError(
        f"a tokenizer was wanted, but a {type(tokenizer).__name__} came, which can neither decode ids nor spell them; "
        "give a tokenizer, or a list of strings, one per token"
    )


def speller(tokenizer: Any) -> Callable[[int], str | None] | None:
    """id → its string in the vocabulary."""
    one = getattr(tokenizer, "id_to_token", None)
    if callable(one):
        return one
    many = getattr(tokenizer, "convert_ids_to_tokens", None)
    return (lambda token: many([token])[0]) if callable(many) else None


def special_ids(tokenizer: Any) -> set[int]:
    """The ids of tokens that stand for no text."""
    known = set(getattr(tokenizer, "all_special_ids", None) or ())
    added = getattr(tokenizer, "get_added_tokens_decoder", None)
    listed = added() if callable(added) else getattr(tokenizer, "added_tokens_decoder", None)
    if isinstance(listed, Mapping):
        known |= {token for token, entry in listed.items() if getattr(entry, "special", False)}
    names, number = getattr(tokenizer, "special_tokens_set", None), getattr(tokenizer, "encode_single_token", None)
    if names and callable(number):  # tiktoken
        known |= {number(name) for name in names}
    return known


def decoder(tokenizer: Any) -> Callable[[list[int]], str]:
    """ids → text, with the spaces as they are where a tokenizer would tidy them up."""
    tidy = {"clean_up_tokenization_spaces": False} if hasattr(tokenizer, "convert_ids_to_tokens") else {}

    def decode(ids: list[int]) -> str:
        text = tokenizer.decode(ids, **tidy)
        if not isinstance(text, str):
            raise TraceError(
                f"decode of {type(tokenizer).__name__} gave {type(text).__name__}, not text; "
                "give a tokenizer, or a list of strings, one per token"
            )
        return text

    return decode
