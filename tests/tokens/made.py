"""Small tokenizers of every kind, trained here on a few lines in many scripts."""

import json
from functools import cache

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LINES = [
    "The cat sat on the mat, and the dog didn't like it: 3.14 cats!",
    "Playing players play playful games; internationalisation is unbelievable.",
    "我喜欢猫和狗，猫不喜欢我。人工智能研究所",
    "القطة تجلس على السجادة والكلب ينام",
    "кошка сидит на коврике, собака спит",
    "猫がマットの上に座っています。",
    "แมวนั่งบนเสื่อ",
    "नमस्ते दुनिया, बिल्ली चटाई पर बैठी है",
    "👩‍👩‍👧 🏳️‍🌈 👍🏽 😀😀 🇩🇪",
    "naïve café Zürich e\u0301te\u0301",
    "def f(x):\n\treturn x == 2\n",
] * 3
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
ALPHABET = pre_tokenizers.ByteLevel.alphabet()


def specials(tokenizer: Tokenizer, first: str, last: str) -> Tokenizer:
    """With a special token at either end of what is encoded."""
    pair = [(name, tokenizer.token_to_id(name)) for name in (first, last)]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{first} $A {last}", special_tokens=pair)
    return tokenizer


@cache
def byte_level() -> Tokenizer:
    """As GPT-2."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=["<|endoftext|>"], initial_alphabet=ALPHABET, show_progress=False
    )
    tokenizer.train_from_iterator(LINES, trainer)
    return tokenizer


@cache
def word_piece() -> Tokenizer:
    """As BERT."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=330, special_tokens=names, show_progress=False)
    tokenizer.train_from_iterator(LINES, trainer)
    return specials(tokenizer, "[CLS]", "[SEP]")


@cache
def unigram() -> Tokenizer:
    """As T5, with bytes for what the vocabulary lacks."""
    trained = Tokenizer(models.Unigram())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    names = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=names, unk_token="<unk>", show_progress=False)
    trained.train_from_iterator(LINES, trainer)
    vocabulary = json.loads(trained.to_str())["model"]["vocab"]
    known = [(piece, score) for piece, score in vocabulary]
    model = models.Unigram([*known, *((byte, -20.0) for byte in BYTES)], unk_id=2, byte_fallback=True)
    tokenizer = Tokenizer(model)
    tokenizer.add_special_tokens(names)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.Metaspace(), decoders.ByteFallback(), decoders.Fuse()])
    return specials(tokenizer, "<pad>", "</s>")


@cache
def sentence_piece(strip: bool) -> Tokenizer:
    """As Llama, whose decoder takes the first space away again, or as Gemma, which adds none."""
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.normalizer = normalizers.Replace(" ", "▁")
    trainer = trainers.BpeTrainer(vocab_size=310, special_tokens=["<unk>", "<s>"], show_progress=False)
    trained.train_from_iterator(LINES, trainer)
    model = json.loads(trained.to_str())["model"]
    vocabulary = dict(model["vocab"])
    for byte in BYTES:
        vocabulary[byte] = len(vocabulary)
    merges = [tuple(pair) for pair in model["merges"]]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.add_special_tokens(["<unk>", "<s>"])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    space = normalizers.Replace(" ", "▁")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), space]) if strip else space
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if strip else steps)
    return tokenizer


@cache
def suffixed() -> Tokenizer:
    """As the first GPT: the end of a word is spelled out."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False
    )
    tokenizer.train_from_iterator(LINES, trainer)
    return tokenizer


@cache
def whole_words() -> Tokenizer:
    """Words, and no decoder."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(LINES, trainers.WordLevelTrainer(special_tokens=["<unk>"], show_progress=False))
    return tokenizer


@cache
def by_regex() -> Tokenizer:
    """A decoder with a step that is known only to its maker: tokens are read by decoding."""
    tokenizer = Tokenizer.from_str(byte_level().to_str())
    from tokenizers import Regex

    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Replace(Regex("Q{9}"), "")])
    return tokenizer


REVERSIBLE = {
    "byte-level": byte_level,
    "unigram": unigram,
    "Llama": lambda: sentence_piece(True),
    "Gemma": lambda: sentence_piece(False),
    "by decoding": by_regex,
}
GLUED = {"word pieces": word_piece, "suffixed": suffixed, "whole words": whole_words}
EVERY = REVERSIBLE | GLUED
