"""Texts → a tokenizer of the `tokenizers` package, in four kinds. The same texts always give the same one.

All kinds normalise alike: NFC, runs of spaces to one, none at the ends. A space is spelled `▁` and belongs to the word
after it, so that decoding gives back what was encoded.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from regard.data.special import SPECIAL, UNKNOWN
from regard.data.unigram import learn_pieces
from regard.errors import ConfigError

SPACE = "▁"
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
LETTER = r"[\p{L}\p{M}\p{N}]"
WORD = rf"{SPACE}?{LETTER}+(?:['’]{LETTER}+)*|{SPACE}?[^{SPACE}]"  # a word, or one other sign, and the space before it


def train_characters(texts: Sequence[str], size: int, lower: bool, byte_fallback: bool) -> Tokenizer:
    """Each character is a token, a space too: the most frequent ones."""
    rest = room("characters", size, byte_fallback)
    names = [*base(byte_fallback), SPACE, *most_frequent(count_letters(texts, lower), rest - 1, but=SPACE)]
    model = models.BPE(number_names(names), [], unk_token=SPECIAL[UNKNOWN], byte_fallback=byte_fallback)
    return wrap_model(model, lower, words=False)


def train_words(
    texts: Iterable[str], size: int, lower: bool, byte_fallback: bool, *, around_special: bool = False
) -> Tokenizer:
    """Each word and each other sign is a token: the most frequent ones. `wrap_model` says what `around_special` is."""
    if byte_fallback:
        raise ConfigError("words are never spelled in bytes; leave byte_fallback away, or choose kind='bpe'")
    names = [*SPECIAL, *most_frequent(count_words(texts, lower), room("words", size, False))]
    model = models.WordLevel(number_names(names), unk_token=SPECIAL[UNKNOWN])
    return wrap_model(model, lower, around_special=around_special)


def train_bpe(texts: Sequence[str], size: int, lower: bool, byte_fallback: bool) -> Tokenizer:
    """Pieces of words, merged from characters, the most frequent pair first (Sennrich et al. 2016)."""
    rest = room("bpe", size, byte_fallback)
    alphabet = alphabet_of(count_letters(texts, lower), rest)
    trained = wrap_model(models.BPE(), lower)
    trainer = trainers.BpeTrainer(
        vocab_size=rest,
        min_frequency=2,
        show_progress=False,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),  # without it characters of equal frequency would be dropped at random
    )
    trained.train_from_iterator(texts, trainer, length=len(texts))
    learnt = state(trained)
    names = [*base(byte_fallback), *sorted(learnt["vocab"], key=learnt["vocab"].__getitem__)]
    merges = [(left, right) for left, right in learnt["merges"]]
    model = models.BPE(number_names(names), merges, unk_token=SPECIAL[UNKNOWN], byte_fallback=byte_fallback)
    return wrap_model(model, lower)


def train_unigram(texts: Sequence[str], size: int, lower: bool, byte_fallback: bool) -> Tokenizer:
    """Pieces of words by how likely they make the texts (Kudo 2018)."""
    rest = room("unigram", size, byte_fallback)
    counts = count_words(texts, lower)
    pieces = learn_pieces(counts, alphabet_of(count_letters_of(counts), rest), rest)
    least = min(score for _, score in pieces)
    scored = [(name, least) for name in base(byte_fallback)] + pieces
    return wrap_model(models.Unigram(scored, unk_id=UNKNOWN, byte_fallback=byte_fallback), lower)


KINDS: dict[str, Callable[[Sequence[str], int, bool, bool], Tokenizer]] = {
    "bpe": train_bpe,
    "unigram": train_unigram,
    "characters": train_characters,
    "words": train_words,
}


def wrap_model(model: Any, lower: bool, *, words: bool = True, around_special: bool = False) -> Tokenizer:
    """The tokenizer around a model: what is done to a text before it and to its tokens after it.

    With `around_special` special tokens such as [MASK] may stand in a text, and what follows one is read with the space
    before it or without: each part of a text would else be stripped, and begin with a space.
    """
    tokenizer = Tokenizer(model)
    steps = [normalizers.Replace(SPACE, "_"), *([normalizers.Lowercase()] if lower else []), normalizers.NFC()]
    steps += [normalizers.Replace(Regex(r"[\s\x1c-\x1f]+"), " "), normalizers.Strip(left=not around_special)]
    tokenizer.normalizer = normalizers.Sequence(steps)
    scheme = ("first" if around_special else "always") if words else "never"
    spaces = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme, split=words)
    splits = [pre_tokenizers.Split(Regex(WORD), "isolated")] if words else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([spaces, *splits])
    metaspace = decoders.Metaspace(replacement=SPACE, prepend_scheme=scheme)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), metaspace])
    if tokenizer.get_vocab_size():
        tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    return tokenizer


def base(byte_fallback: bool) -> tuple[str, ...]:
    """What every vocabulary begins with."""
    return (*SPECIAL, *BYTES) if byte_fallback else SPECIAL


def room(kind: str, size: int, byte_fallback: bool) -> int:
    """How many tokens may still be chosen."""
    rest = size - len(base(byte_fallback))
    if rest < 2:
        bytes_too = f" and {len(BYTES)} bytes (byte_fallback)" if byte_fallback else ""
        raise ConfigError(
            f"size {size} leaves no room beside the {len(SPECIAL)} special tokens{bytes_too} for kind {kind!r}; "
            f"give at least {size - rest + 2}"
        )
    return rest


def alphabet_of(counts: Counter[str], rest: int) -> list[str]:
    """The characters that pieces are made of: at most half of what may be chosen, the most frequent."""
    return [SPACE, *most_frequent(counts, max(1, rest // 2) - 1, but=SPACE)]


def count_letters(texts: Sequence[str], lower: bool) -> Counter[str]:
    """How often each character is there after normalising, spaces as `▁`."""
    normalise = wrap_model(models.BPE(), lower).normalizer.normalize_str
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(normalise(text))
    counts[SPACE] = counts.pop(" ", 0)
    return counts


def count_words(texts: Iterable[str], lower: bool) -> Counter[str]:
    """How often each word is there, with its `▁`."""
    tokenizer = wrap_model(models.BPE(), lower)
    normalise, split = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
    return Counter(word for text in texts for word, _ in split(normalise(text)))


def count_letters_of(words: Counter[str]) -> Counter[str]:
    """How often each character is in these words."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for letter in word:
            counts[letter] += count
    return counts


def most_frequent(counts: Counter[str], most: int, but: str = "") -> list[str]:
    """The most frequent ones, equally frequent ones in the order of their code points."""
    ranked = sorted((-count, name) for name, count in counts.items() if name != but and count)
    return [name for _, name in ranked[:most]]


def number_names(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names)}


def state(tokenizer: Tokenizer) -> dict[str, Any]:
    """The trained model as its file would say it."""
    model: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    return model
