"""One protocol for every tokenizer: our own, those of `tokenizers` and of `transformers`, in any script."""

import pytest
from tokenizers import AddedToken

from regard.data.special import SPECIAL
from regard.data.vocabulary import Vocabulary
from regard.errors import DataError, ModelError, TraceError
from regard.models.tokenizer import WordTokenizer
from regard.tokens import Reader, TextTokenizer, as_tokenizer, read
from regard.tokens.protocol import LibraryTokenizer
from tests.tokens import made

TEXTS = ("the cat sat", "猫坐在垫子上。", "a 🐈‍⬛ cat", "  two\tspaces \n here ", "naïve 𓀀!", "")


def transformers_tokenizer():
    transformers = pytest.importorskip("transformers")
    inner = made.byte_level()
    inner.add_special_tokens([AddedToken("<|end|>", special=True)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|end|>")


MAKERS = {
    "vocabulary, bpe": lambda: Vocabulary.train([*TEXTS, "the cats"], kind="bpe", size=400),
    "vocabulary, unigram": lambda: Vocabulary.train([*TEXTS, "the cats"], kind="unigram", size=400),
    "vocabulary, characters": lambda: Vocabulary.train(TEXTS, kind="characters"),
    "vocabulary, words": lambda: Vocabulary.train(TEXTS, kind="words"),
    "words": lambda: WordTokenizer(sorted({word for text in TEXTS for word in text.split()})),
    "tokenizers, byte level": made.byte_level,
    "transformers": transformers_tokenizer,
}


@pytest.fixture(params=MAKERS)
def tokenizer(request):
    return as_tokenizer(MAKERS[request.param]())


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_every_tokenizer_follows_the_protocol(tokenizer, text):
    assert isinstance(tokenizer, TextTokenizer)
    assert as_tokenizer(tokenizer) is tokenizer
    ids = tokenizer.encode(text)
    assert " ".join(tokenizer.decode(ids).split()) == " ".join(text.split())
    names, spans = tokenizer.names(ids), tokenizer.offsets(text)
    assert len(ids) == len(names) == len(spans)
    assert all(isinstance(name, str) and name for name in names)
    assert not tokenizer.special & set(ids)
    for start, stop in spans:
        assert 0 <= start <= stop <= len(text)
        assert not text[start:stop][:1].isspace() or not text[start:stop].strip()
    covered = {at for start, stop in spans for at in range(start, stop)}
    assert {at for at, letter in enumerate(text) if not letter.isspace()} <= covered


def test_names_are_what_people_read():
    expected = ["the", "cat", "sat"]
    for name in ("vocabulary, words", "words"):
        own = MAKERS[name]()
        assert own.names(own.encode("the cat sat")) == expected
    library = as_tokenizer(made.byte_level())
    ids = library.encode("the 猫")
    assert library.names(ids) == list(read(made.byte_level(), ids).shown)


def test_special_ids_are_known_and_left_out_of_texts():
    vocabulary = MAKERS["vocabulary, words"]()
    assert vocabulary.special == {0, 1, 2, 3}
    assert vocabulary.names([1, 2]) == list(SPECIAL[1:3])
    assert WordTokenizer(["a"]).special == frozenset()
    library = transformers_tokenizer()
    wrapped, end = as_tokenizer(library), library.eos_token_id
    assert end in wrapped.special
    assert wrapped.names([end]) == ["<|end|>"]
    assert wrapped.decode([*wrapped.encode("the cat"), end]) == "the cat"


@pytest.mark.parametrize("name", ["vocabulary, characters", "vocabulary, words", "words"])
def test_what_people_read_of_a_token_covers_its_own_characters(name):
    tokenizer, text = MAKERS[name](), TEXTS[1]
    for token, (start, stop) in zip(tokenizer.names(tokenizer.encode(text)), tokenizer.offsets(text)):
        assert token == text[start:stop]


def test_ids_that_are_none_are_refused():
    with pytest.raises(DataError, match="id 999 is not in this vocabulary"):
        MAKERS["vocabulary, words"]().names([4, 999])
    with pytest.raises(ModelError, match="id 9 came, but this model knows 1 words"):
        WordTokenizer(["a"]).names([9])


def test_what_is_no_tokenizer_is_refused():
    for wrong in ("gpt2", WordTokenizer, object()):
        with pytest.raises(TraceError, match="a tokenizer was wanted"):
            as_tokenizer(wrong)
    with pytest.raises(TraceError, match="encodes and decodes, but a OnlyDecodes came"):
        as_tokenizer(OnlyDecodes())


class OnlyDecodes:
    def decode(self, ids):
        return "".join(map(chr, ids))


class OfLetters(OnlyDecodes):
    """A tokenizer of somebody's, that says nothing of offsets."""

    def encode(self, text):
        return list(map(ord, text))


class WithoutCase(OfLetters):
    def encode(self, text):
        return super().encode(text.lower())


def test_offsets_follow_from_decoding_where_that_gives_the_text_back():
    assert as_tokenizer(OfLetters()).offsets("a 猫") == [(0, 1), (1, 2), (2, 3)]
    with pytest.raises(TraceError, match="WithoutCase does not say which characters a token stands for"):
        as_tokenizer(WithoutCase()).offsets("A")
    assert repr(as_tokenizer(OfLetters())) == "LibraryTokenizer(OfLetters)"
    assert isinstance(as_tokenizer(OfLetters()), LibraryTokenizer)


class OfHalves:
    """One of our protocol whose tokens are no words."""

    special = frozenset({0})

    def encode(self, text):
        return list(text.encode())

    def decode(self, ids):
        return bytes(ids).decode(errors="replace")

    def names(self, ids):
        return [f"<{token}>" for token in ids]

    def offsets(self, text):
        return [(0, len(text))] * len(text.encode())


def test_a_reader_takes_whatever_follows_the_protocol():
    tokens = Reader(OfHalves())([104, 0xC3, 0xA9, 0])
    assert (tokens.text, tokens.special) == ("hé", (False, False, False, True))
    assert tokens.offsets == ((0, 1), (1, 2), (1, 2), None)
