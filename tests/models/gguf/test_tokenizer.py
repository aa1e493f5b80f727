"""Tokenizers of GGUF files against those of transformers, and against the definitions."""

from itertools import pairwise

import numpy as np
import pytest
import regex

from regard.errors import ModelError
from regard.models.gguf import GGUFFile
from regard.models.gguf.splits import SPLITS, make_splitter
from regard.models.gguf.tokenizer import read_chat_template, read_end_ids, read_tokenizer
from regard.tokens.protocol import as_tokenizer
from tests.models.gguf.files import smollm, write_gguf
from tests.trace.formats import tokenizer_of_gguf

TEXTS = (
    "Hello world, it's 12345 o'clock; WE'LL see 3.14159!",
    "我喜欢猫，你呢？龍が好きです。",
    "🙂 🙃👨‍👩‍👧‍👦 🇨🇭 é ﬁ ñ Straße Ünïcödé ελληνικά русский עברית العربية हिन्दी",
    "\x00\x01\x07\x1b[0m \x7f \u200b\ufeff",
    "  two  spaces\n\n\n\tand\ttabs \r\n end   ",
    " ",
    "",
    "\n",
    "def f(x: int) -> int:\n    return x**2 + 0xFF  # fine\n\n\nclass A:\n\tpass",
    "<|im_start|>user\nhi<|im_end|>\n<|endoftext|> <repo_name> <|im_star",
    "https://example.org/a_b?c=d&e=%20#frag",
    "a" * 300,
    "\u2028\u00a0x\u3000y\ufffd\U0010ffff",
    "Ġhello Ċ ▁x <0x41>",
)
NUMERALS = "½ ٣٤ Ⅷ ² 1½"


@pytest.fixture(scope="module")
def file():
    return GGUFFile(smollm())


@pytest.fixture(scope="module")
def tokenizer(file):
    return read_tokenizer(file)


@pytest.fixture(scope="module")
def theirs():
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(smollm().parent, gguf_file=smollm().name)


def test_smollm_reads_as_in_transformers(file, tokenizer, theirs):
    own = tokenizer_of_gguf(file.metadata)  # which also cuts numerals that are no ASCII digits, as SmolLM2 does
    for text in TEXTS:
        assert tokenizer.encode(text).ids == theirs(text, add_special_tokens=False)["input_ids"], text
    for text in (*TEXTS, NUMERALS):
        assert tokenizer.encode(text).ids == own(text)["input_ids"], text
    assert tokenizer.get_vocab_size() == len(theirs) == 49152


@pytest.mark.parametrize("text", [*TEXTS, NUMERALS])
def test_a_text_comes_back_as_it_was(tokenizer, text):
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text
    shown = as_tokenizer(tokenizer)
    assert shown.encode(text) == ids
    if "<|" not in text:
        assert shown.decode(ids) == text


def test_every_character_comes_back_that_the_vocabulary_has_bytes_for(tokenizer):
    text = "".join(map(chr, [*range(0x800), 0x4E00, 0xFFFF, 0x1F642]))
    kept = tokenizer.decode(tokenizer.encode(text).ids)
    assert set(text) - set(kept) == set("\x04\x06\x13\x14\x16\x1d")  # SmolLM2 has no token for these bytes
    assert kept == "".join(sign for sign in text if sign in kept)
    assert sorted(tokenizer.get_vocab().values()) == list(range(49152))


def test_control_tokens_are_special_and_one_id(file, tokenizer):
    assert tokenizer.encode("<|im_start|>").ids == [1]
    special = as_tokenizer(tokenizer).special
    assert {0, 1, 2} <= special
    kinds = file.metadata["tokenizer.ggml.token_type"]
    assert special == {i for i, kind in enumerate(kinds) if kind == 3}
    assert read_end_ids(file) == (2,)


def test_smollm_has_its_chat_template(file, theirs):
    messages = [{"role": "user", "content": "Hi 🙂 {{ x }}"}, {"role": "assistant", "content": "你好"}]
    messages += [{"role": "user", "content": "<b>&</b>"}]
    for prompt in (True, False):
        wanted = theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt)
        assert read_chat_template(file).render(messages, add_generation_prompt=prompt) == wanted
    assert wanted.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")


TENSORS = {"x": np.ones((2, 3))}


def vocabulary(file, **changed):
    """The first 4,000 tokens of a file and the merges among them, as keys of another."""
    keys = {key.removeprefix("tokenizer.ggml."): file.metadata[key] for key in file.metadata if "ggml." in key}
    tokens = keys["tokens"][:4000]
    known = {*tokens, None}
    merges = [merge for merge in keys["merges"] if known >= {*merge.split(" "), merge.replace(" ", "")}]
    keys |= {"tokens": tokens, "token_type": keys["token_type"][:4000], "merges": merges, **changed}
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items()}


@pytest.mark.parametrize("pre", ["gpt-2", "llama-bpe", "qwen2"])
def test_texts_are_cut_as_transformers_cuts_them(tmp_path, file, pre):
    from transformers import AutoTokenizer

    path = write_gguf(tmp_path / "a.gguf", vocabulary(file, pre=pre), TENSORS)
    ours, theirs = read_tokenizer(GGUFFile(path)), AutoTokenizer.from_pretrained(tmp_path, gguf_file="a.gguf")
    for text in (*TEXTS, NUMERALS):
        wanted = theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.encode(text, add_special_tokens=False).ids == wanted, text


@pytest.mark.parametrize("pre", SPLITS)
def test_each_way_to_cut_is_its_patterns_one_after_the_other(pre):
    for text in (*TEXTS, NUMERALS, "1234567 ~~ a-b $5.00"):
        pieces = [text] if text else []
        for pattern in SPLITS[pre]:
            pieces = [one for piece in pieces for one in cut(pattern, piece)]
        assert [text[start:stop] for _, (start, stop) in make_splitter(pre).pre_tokenize_str(text)] == pieces


def cut(pattern, text):
    """The matches of a pattern, and what lies between them."""
    at, result = 0, []
    for match in regex.finditer(pattern, text):
        result += [text[at : match.start()], match.group()]
        at = match.end()
    return [piece for piece in [*result, text[at:]] if piece]


def test_qwen_composes_characters_first(tmp_path, file):
    path = write_gguf(tmp_path / "a.gguf", vocabulary(file, pre="qwen2"), TENSORS)
    ours = read_tokenizer(GGUFFile(path))
    assert ours.decode(ours.encode("e\u0301").ids) == "\u00e9"


def test_the_file_says_what_stands_around_a_text(tmp_path, file):
    for flags, before, after in (
        ({}, [], []),
        ({"add_bos_token": True}, [1], []),
        ({"add_bos_token": True, "add_eos_token": True, "bos_token_id": 5}, [5], [2]),
    ):
        keys = vocabulary(file, **{"add_bos_token": False, **flags})
        ours = read_tokenizer(GGUFFile(write_gguf(tmp_path / "a.gguf", keys, TENSORS)))
        ids = ours.encode("hello", add_special_tokens=False).ids
        assert ours.encode("hello").ids == [*before, *ids, *after]
        assert ours.decode(ids) == "hello"


# SentencePiece


def pieces(rng):
    """A vocabulary of pieces over a few letters, with distinct scores, as a file of Llama 2 lists it."""
    letters = ["▁", "a", "b", "c", "猫", "é", "."]
    longer = {"".join(rng.choice(letters, size)) for size in rng.integers(2, 5, 300)} - {""}
    normal = [*letters, *sorted(longer)]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *normal, "<|user|>"]
    types = [2, 3, 3, *[6] * 256, *[1] * len(normal), 4]
    scores = [0.0] * 259 + [-float(one) for one in rng.permutation(len(normal))] + [0.0]
    keys = {"model": "llama", "tokens": tokens, "scores": scores, "token_type": types}
    keys |= {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items()}


def join_best(text, keys):
    """SentencePiece by its definition: join the neighbours with the best joined piece, the first of equals, and on."""
    tokens, scores = keys["tokenizer.ggml.tokens"], keys["tokenizer.ggml.scores"]
    known = {token: i for i, token in enumerate(tokens) if 259 <= i < len(tokens) - 1}
    parts = list("▁" + text.replace(" ", "▁")) if text else []
    while True:
        joined = [(scores[known[a + b]], -i) for i, (a, b) in enumerate(pairwise(parts)) if a + b in known]
        if not joined:
            break
        at = -max(joined)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return [i for part in parts for i in ([known[part]] if part in known else [3 + byte for byte in part.encode()])]


def test_sentence_pieces_are_joined_by_their_scores(tmp_path):
    rng = np.random.default_rng(0)
    keys = pieces(rng)
    ours = read_tokenizer(GGUFFile(write_gguf(tmp_path / "a.gguf", keys, TENSORS)))
    texts = ["".join(rng.choice(list("  abbcc猫é.\n🙂"), size)) for size in rng.integers(1, 40, 300)]
    for text in ["", " ", "  a", "a  ", "x\x00\ty", *texts]:
        ids = ours.encode(text, add_special_tokens=False).ids
        assert ids == join_best(text, keys), text
        assert ours.decode(ids) == text
        assert ours.encode(text).ids == [1, *ids]


def test_tokens_of_the_user_and_a_missing_prefix(tmp_path):
    keys = pieces(np.random.default_rng(0))
    ours = read_tokenizer(GGUFFile(write_gguf(tmp_path / "a.gguf", keys, TENSORS)))
    ids = ours.encode("a<|user|>b</s>", add_special_tokens=False).ids
    assert len(keys["tokenizer.ggml.tokens"]) - 1 in ids
    assert 2 in ids
    plain = {**keys, "tokenizer.ggml.add_space_prefix": False, "tokenizer.ggml.add_bos_token": False}
    ours = read_tokenizer(GGUFFile(write_gguf(tmp_path / "b.gguf", plain, TENSORS)))
    for text in ("a", " a", "b  c."):
        assert ours.decode(ours.encode(text).ids) == text
    assert ours.encode("q").ids == [3 + ord("q")]


def test_scores_of_llama_are_read_as_by_transformers(tmp_path):
    from transformers import AutoTokenizer

    keys = pieces(np.random.default_rng(1))
    path = write_gguf(tmp_path / "a.gguf", keys, TENSORS)
    ours, theirs = read_tokenizer(GGUFFile(path)), AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name)
    for text in ("abc a.b", "cab 猫é bb", "a🙂b"):
        wanted = theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.encode(text, add_special_tokens=False).ids == wanted


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"model": "bert"}, "the tokenizer is a 'bert', which is not read here; there are: gpt2, llama"),
        ({"pre": "tekken"}, "texts are cut in the way 'tekken', which is not known here"),
        ({"tokens": ["a", "b"]}, "there are 2 tokens, but 4000 token_type"),
        ({"tokens": [], "token_type": []}, "there is no list of tokens"),
        ({"tokens": [1, 2]}, "there is no list of tokens"),
        ({"tokens": ["a", "b", "a"], "token_type": [1, 1, 1]}, "the token 'a' is there twice"),
        ({"merges": ["a b", "no"]}, "the merge '.*' is of tokens that are not there"),
        ({"merges": ["q zzzzz"]}, "the merge 'q zzzzz' is of tokens that are not there"),
        ({"eos_token_id": 49152}, "eos_token_id is 49152, but there are 4000 tokens"),
        ({"model": "llama"}, "there are no scores of tokens"),
        ({"model": "llama", "scores": [0.5]}, "there are 4000 tokens, but 1 scores"),
    ],
)
def test_a_tokenizer_that_cannot_be_read_is_refused_in_one_sentence(tmp_path, file, changed, sentence):
    keys = vocabulary(file, **changed)
    keys = {key: value for key, value in keys.items() if value != []}
    with pytest.raises(ModelError, match=sentence) as told:
        read_tokenizer(GGUFFile(write_gguf(tmp_path / "a.gguf", keys, TENSORS)))
    assert str(told.value).startswith("a.gguf: ")
    assert "\n" not in str(told.value)


def test_a_vocabulary_of_another_size_than_the_embeddings_is_refused(tmp_path, file):
    path = write_gguf(tmp_path / "a.gguf", vocabulary(file), {"token_embd.weight": np.ones((7, 3))})
    with pytest.raises(ModelError, match="there are 4000 tokens, but 7 embeddings"):
        read_tokenizer(GGUFFile(path))
