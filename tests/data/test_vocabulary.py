"""Text comes back from its ids, a vocabulary is the same each time, and other files are refused."""

import copy
import json
import random
import subprocess
import sys
import unicodedata
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

import regard
from regard.data.pairs import read_pairs
from regard.data.special import SPECIAL, UNKNOWN
from regard.data.vocabulary import Vocabulary
from regard.errors import ConfigError, DataError

KINDS = ("bpe", "unigram", "characters", "words")
TEXTS = [
    *("The cat sat on the mat.", "the cats, the dogs and the bird", 'He said: "don\'t!"', "Die Straße ist größer."),
    *(
        "Ein Mann mit einem Hut",
        "猫坐在垫子上。",
        "我们的猫在那里，你呢？",
        "Привет, мир",
        "नमस्ते दुनिया",
        "it cost 3.14 euros",
    ),
] * 3
SOME = st.text(st.characters(exclude_categories=("Cs", "Cn")), max_size=40)
LIKELY = st.text(st.sampled_from("catse TK.,'’\t\u3000é\u0301猫在。👩\u200d🇩🇪한ㅎक्ष<>▁_\x1c\x85\0"), max_size=30)
MADE = {
    **{kind: Vocabulary.train(TEXTS, kind=kind, size=500) for kind in KINDS},
    "characters in bytes": Vocabulary.train(TEXTS, kind="characters", size=500, byte_fallback=True),
    "lower": Vocabulary.train(TEXTS, kind="bpe", size=500, lower=True),
}
SPELLING = [name for name, vocabulary in MADE.items() if vocabulary.tokenizer.token_to_id("<0x00>") is not None]


def tidy(text: str) -> str:
    """The normalisation that is promised, by Python alone."""
    return " ".join(unicodedata.normalize("NFC", text.replace("▁", "_")).split())


@pytest.mark.parametrize("name", SPELLING)
@given(text=SOME | LIKELY)
def test_every_text_comes_back(name, text):
    vocabulary = MADE[name]
    wanted = vocabulary.normalise(text) if name == "lower" else tidy(text)
    ids = vocabulary.encode(text)
    assert vocabulary.decode(ids) == wanted
    assert vocabulary.normalise(wanted) == wanted
    assert all(number > UNKNOWN for number in ids)
    assert vocabulary.encode_batch([text, "the cat"]) == [ids, vocabulary.encode("the cat")]


def test_four_kinds_spell_in_bytes_and_two_have_unknowns():
    assert SPELLING == ["bpe", "unigram", "characters in bytes", "lower"]
    assert MADE["characters"].encode("狗").count(UNKNOWN) == 1
    assert MADE["words"].encode("the dog sat").count(UNKNOWN) == 1


@pytest.mark.parametrize("name", MADE)
@given(text=LIKELY)
def test_no_text_becomes_a_special_token(name, text):
    for put in SPECIAL:
        ids = MADE[name].encode(f"{text}{put}{text}")
        assert not set(ids) & {0, 1, 2}
    assert MADE[name].decode([1, *MADE[name].encode("the cat"), 2, 0, 0]) == "the cat"


@pytest.mark.parametrize("kind", KINDS)
def test_texts_that_were_learned_from_come_back_whole(kind):
    for text in TEXTS:
        assert MADE[kind].decode(MADE[kind].encode(text)) == text


def test_characters_and_words_are_what_they_are_called():
    assert MADE["characters"].tokens("猫在 the。") == ["猫", "在", " ", "t", "h", "e", "。"]
    assert MADE["words"].tokens('He said: "don\'t!"') == ["He", "said", ":", '"', "don't", "!", '"']
    counts = Counter("".join(TEXTS).replace(" ", ""))
    small = Vocabulary.train(TEXTS, kind="characters", size=17)
    ranked = sorted(counts, key=lambda letter: (-counts[letter], letter))
    assert [small.tokenizer.id_to_token(number) for number in range(17)] == [*SPECIAL, "▁", *ranked[:12]]


def test_lower_case_is_lower_case():
    assert MADE["lower"].decode(MADE["lower"].encode("THE Cat, die STRASSE, ÉTÉ")) == "the cat, die strasse, été"


@pytest.mark.parametrize("kind", KINDS)
def test_letters_and_punctuation_share_no_token(kind):
    for token in MADE[kind].tokens("the cat. (the cat) the-cat! the cat: 猫。"):
        classes = {unicodedata.category(letter)[0] for letter in token}
        assert not {"L", "P"} <= classes, token


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_the_texts_does_not_matter_nor_does_the_process(kind):
    other = list(TEXTS)
    random.Random(3).shuffle(other)
    assert Vocabulary.train(iter(other), kind=kind, size=500).json == MADE[kind].json


def test_another_process_makes_the_same_files():
    program = (
        "import sys, json; from regard.data.vocabulary import Vocabulary; texts = json.load(sys.stdin)\n"
        f"print(*[Vocabulary.train(texts, kind=kind, size=500).fingerprint for kind in {KINDS}])"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(TEXTS), capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == [MADE[kind].fingerprint for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [270, 301, 400])
def test_no_vocabulary_is_larger_than_asked(kind, size):
    vocabulary = Vocabulary.train(TEXTS, kind=kind, size=size)
    assert len(vocabulary) <= size
    assert [vocabulary.tokenizer.id_to_token(number) for number in range(4)] == list(SPECIAL)
    if kind == "bpe":
        assert len(vocabulary) == size
    assert vocabulary.tokenizer.get_vocab_size() == len(set(vocabulary.tokenizer.get_vocab().values()))


@pytest.mark.parametrize("name", MADE)
@given(text=LIKELY)
def test_offsets_are_in_order_and_spell_the_tokens(name, text):
    vocabulary = MADE[name]
    offsets, tokens = vocabulary.offsets(text), vocabulary.tokens(text)
    assert len(offsets) == len(tokens) == len(vocabulary.encode(text))
    assert all(0 <= start <= stop <= len(text) for start, stop in offsets)
    assert [start for start, _ in offsets] == sorted(start for start, _ in offsets)
    covered = {at for start, stop in offsets for at in range(start, stop)}
    assert {at for at, letter in enumerate(text) if not letter.isspace()} <= covered
    in_order = unicodedata.normalize("NFC", text) == text  # else marks may have changed places
    for token, (start, stop) in zip(tokens, offsets):
        if in_order and token not in ("<unk>", " ") and not token.startswith("<0x") and name != "lower":
            assert text[start:stop].replace("▁", "_") == token


def test_offsets_leave_out_the_space_before_a_word():
    text = "  the\t cat, cafe\u0301 猫"
    found = MADE["words"].offsets(text)
    assert [text[start:stop] for start, stop in found] == ["the", "cat", ",", "cafe\u0301", "猫"]


@pytest.mark.parametrize("name", MADE)
def test_a_vocabulary_comes_back_from_its_file(name, tmp_path):
    vocabulary = MADE[name]
    vocabulary.save(tmp_path / "vocabulary.json")
    loaded = Vocabulary.load(str(tmp_path / "vocabulary.json"))
    assert loaded == vocabulary == copy.deepcopy(vocabulary)
    assert hash(loaded) == hash(vocabulary)
    assert loaded.fingerprint == vocabulary.fingerprint
    assert len(loaded.fingerprint) == 64
    for text in [*TEXTS, "<eos> 狗 ▁"]:
        assert loaded.encode(text) == vocabulary.encode(text) == copy.deepcopy(vocabulary).encode(text)
    assert Tokenizer.from_file(str(tmp_path / "vocabulary.json")).encode("the cat").ids == loaded.encode("the cat")
    assert [file.name for file in tmp_path.iterdir()] == ["vocabulary.json"]


def test_the_fingerprint_is_that_of_the_file_however_it_is_written(tmp_path):
    pretty = json.dumps(json.loads(MADE["bpe"].json), indent=3)
    (tmp_path / "pretty.json").write_text(pretty, encoding="utf-8")
    loaded = Vocabulary.load(tmp_path / "pretty.json")
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text(encoding="utf-8") == pretty
    assert loaded != MADE["bpe"]
    assert loaded.encode("the cat") == MADE["bpe"].encode("the cat")
    assert len({vocabulary.fingerprint for vocabulary in MADE.values()}) == len(MADE)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "this is no vocabulary"),
        (b"[1]", "this is no vocabulary .no model"),
        (b'{"model": 3}', "this is no vocabulary"),
        (b"\xff\xfe", "is no text; give the file of a vocabulary"),
        (Tokenizer(models.WordLevel({"a": 0}, unk_token="a")).to_str().encode(), "begins with <pad> <bos> <eos> <unk>"),
    ],
    ids=["empty", "list", "number", "bytes", "another"],
)
def test_files_that_are_no_vocabulary_are_refused(tmp_path, data, message):
    (tmp_path / "some.json").write_bytes(data)
    with pytest.raises(DataError, match=message) as error:
        Vocabulary.load(tmp_path / "some.json")
    assert "some.json" in str(error.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"cannot be read .No such file"):
        Vocabulary.load(tmp_path / "none.json")


def test_what_cannot_be_learned_from_is_refused():
    with pytest.raises(ConfigError, match="kind is 'wordpiece'; give one of bpe, unigram, characters, words"):
        Vocabulary.train(TEXTS, kind="wordpiece")
    with pytest.raises(DataError, match="2 texts came, and nothing in them"):
        Vocabulary.train([" ", ""])
    with pytest.raises(ConfigError, match=r"size 261 leaves no room .* 256 bytes .byte_fallback. .* at least 262"):
        Vocabulary.train(TEXTS, size=261)
    with pytest.raises(ConfigError, match="size 5 leaves no room beside the 4 special tokens for kind 'words'"):
        Vocabulary.train(TEXTS, kind="words", size=5)
    with pytest.raises(ConfigError, match="words are never spelled in bytes"):
        Vocabulary.train(TEXTS, kind="words", byte_fallback=True)


@pytest.mark.parametrize("ids", [[4, 500_000], [-1], torch.tensor([7_777])], ids=["large", "negative", "tensor"])
def test_ids_of_another_vocabulary_are_refused(ids):
    with pytest.raises(DataError, match=r"id (500000|-1|7777) is not in this vocabulary of \d+ tokens"):
        MADE["bpe"].decode(ids)


def test_half_a_character_is_refused():
    with pytest.raises(DataError, match="give a string of whole characters"):
        MADE["bpe"].encode("\ud800")
    with pytest.raises(DataError, match="give a string of whole characters"):
        MADE["bpe"].encode_batch(["the cat", "\ud800"])


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none/vocabulary\.json cannot be written .No such file"):
        MADE["words"].save(tmp_path / "none" / "vocabulary.json")


class Looking(torch.nn.Module):
    """Something small that attends."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(size, 6)

    def forward(self, ids):
        x = self.embedding(ids)[:, None]
        return torch.nn.functional.scaled_dot_product_attention(x, x, x)


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        ("words", "the cats, the", ["the", "·cats", ",", "·the"]),
        ("characters", "猫在 a", ["猫", "在", "·", "a"]),
        ("bpe", "the mat", None),
        ("unigram", "the mat", None),
    ],
)
def test_a_watch_names_the_tokens(kind, text, shown):
    vocabulary = MADE[kind]
    ids = torch.tensor([[*vocabulary.encode(text), 2]])
    model = Looking(len(vocabulary))
    with regard.watch(model, vocabulary) as trace:
        model(ids)
    tokens = trace.layers[0].queries[0]
    assert tokens.text == text
    assert list(tokens.shown)[-1] == "<eos>"
    if shown is not None:
        assert list(tokens.shown)[:-1] == shown


def test_real_sentences_come_back_in_either_script(shared):
    pairs = read_pairs(shared / "data" / "tatoeba-cmn-eng" / "cmn.tsv.gz")[::7]
    for kind, texts in (("bpe", [p.source for p in pairs]), ("characters", [p.target for p in pairs])):
        vocabulary = Vocabulary.train(texts, kind=kind, size=3_000)
        assert [vocabulary.decode(ids) for ids in vocabulary.encode_batch(texts)] == [tidy(text) for text in texts]
