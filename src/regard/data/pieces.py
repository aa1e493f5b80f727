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
from regard.data.unigram import unigram
from regard.errors import ConfigError

SPACE = "▁"
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
LETTER = r"[\p{L}\p{M}\p{N}]"
WORD = rf"{SPACE}?{LETTER}+(?:['’]{LETTER}+)*|{SPACE}?[^{SPACE}]"  # a word, or one other sign, and the space before it


def characters(texts: Sequence[str], size: int, lower: bool, byte_fallback: bool) -> Tokenizer:
    """Each character is a token, a space too: the most frequent ones."""
    rest = room("characters", size, byte_fallback)
    names = [*base(byte_fallback), SPACE, *frequent(letters(texts, lower), rest - 1, but=SPACE)]
    model = models.BPE(numbered(names), [], unk_token=SPECIAL[UNKNOWN], byte_fallback=byte_fallback)
    return dressed(model, lower, words=False)


def words(texts: Sequence[str], size: int, lower: bool, byte_fallback: bool) -> Tokenizer:
    """Each word and each other sign is a token: the most frequent ones."""
    if byte_fallback:
        raise ConfigError("words are never spelled in bytes; leave byte_fallback away, or choose kind='bpe'")
    names = [*SPECIAL, *frequent(counted(texts, lower), room("words", size, False))]
    return dressed(models.WordLevel(numbered(names), unk_token=SPECIAL[UNKNOWN]), lower)


def bpe(texts: Sequence[str], size: int, lower: bool, byte_fallback: bool) -> Tokenizer:
    """Pieces of words, merged from characters, the most frequent pair first (Sennrich et al. 2016)."""
    rest = room("bpe", size, byte_fallback)
    alphabet = alphabet_of(letters(texts, lower), rest)
    trained = dressed(models.BPE(), lower)
    trainer = trainers.BpeTrainer(
        vocab_size=rest,
        min_frequency=2,
        show_progress=False,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),  # without it characters of equal frequency would be dropped at random
    )
    trained.train_from_iterator(texts, trainer, length=len(texts))
    told = state(trained)
    names = [*base(byte_fallback), *sorted(told["vocab"], key=told["vocab"].__getitem__)]
    merges = [(left, right) for left, right in told["merges"]]
    model = models.BPE(numbered(names), merges, unk_token=SPECIAL[UNKNOWN], byte_fallback=byte_fallback)
    return dressed(model, lower)


def likely(texts: Sequence[str], size: int, lower: bool, byte_fallback: bool) -> Tokenizer:
    """Pieces of words by how likely they make the texts (Kudo 2018)."""
    rest = room("unigram", size, byte_fallback)
    found = counted(texts, lower)
    pieces = unigram(found, alphabet_of(spelled(found), rest), rest)
    least = min(score for _, score in pieces)
    scored = [(name, least) for name in base(byte_fallback)] + pieces
    return dressed(models.Unigram(scored, unk_id=UNKNOWN, byte_fallback=byte_fallback), lower)


KINDS: dict[str, Callable[[Sequence[str], int, bool, bool], Tokenizer]] = {
    "bpe": bpe,
    "unigram": likely,
    "characters": characters,
    "words": words,
}


def dressed(model: Any, lower: bool, *, words: bool = True) -> Tokenizer:
    """The tokenizer around a model: what is done to a text before it and to its tokens after it."""
    tokenizer = Tokenizer(model)
    steps = [normalizers.Replace(SPACE, "_"), *([normalizers.Lowercase()] if lower else []), normalizers.NFC()]
    steps += [normalizers.Replace(Regex(r"[\s\x1c-\x1f]+"), " "), normalizers.Strip()]
    tokenizer.normalizer = normalizers.Sequence(steps)
    scheme = "always" if words else "never"
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
    return [SPACE, *frequent(counts, max(1, rest // 2) - 1, but=SPACE)]


def letters(texts: Sequence[str], lower: bool) -> Counter[str]:
    """How often each character is there after normalising, spaces as `▁`."""
    normalise = dressed(models.BPE(), lower).normalizer.normalize_str
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(normalise(text))
    counts[SPACE] = counts.pop(" ", 0)
    return counts


def counted(texts: Sequence[str], lower: bool) -> Counter[str]:
    """How often each word is there, with its `▁`."""
    tokenizer = dressed(models.BPE(), lower)
    normalise, split = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
    return Counter(word for text in texts for word, _ in split(normalise(text)))


def spelled(found: Counter[str]) -> Counter[str]:
    """How often each character is in these words."""
    counts: Counter[str] = Counter()
    for word, count in found.items():
        for letter in word:
            counts[letter] += count
    return counts


def frequent(counts: Counter[str], most: int, but: str = "") -> list[str]:
    """The most frequent ones, equally frequent ones in the order of their code points."""
    ranked = sorted((-count, name) for name, count in counts.items() if name != but and count)
    return [name for _, name in ranked[:most]]


def numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names)}


def state(tokenizer: Tokenizer) -> dict[str, Any]:
    """The trained model as its file would say it."""
    model: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    return model
