"""Byte-level BPE: any text ↔ ids, nothing unknown and nothing lost (Radford et al. 2019, §2.2)."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from regard.data.special import BEGIN, SPECIAL
from regard.errors import ConfigError, DataError

MASK = len(SPECIAL)  # the id of the token that hides a word
MASK_TOKEN = "[MASK]"  # noqa: S105  # no secret
RESERVED = (*SPECIAL, MASK_TOKEN)
LEAST = len(RESERVED) + 256 + 1


def train_byte_level(texts: Iterable[str], size: int) -> Tokenizer:
    """A tokenizer of at most `size` tokens for these texts: 5 special ones, 256 bytes, and what is merged from them.

    The same texts, in any order, give the same one. `<bos>` stands before each text that it encodes with special
    tokens. Decoding gives back what was encoded, to the byte.

    >>> tokenizer = train_byte_level(["the cat sat", "the cats"] * 2, 270)
    >>> tokenizer.encode("the cat").tokens
    ['<bos>', 'the', 'Ġcat']
    >>> tokenizer.decode(tokenizer.encode(" 猫\\t🐈 ").ids)
    ' 猫\\t🐈 '
    """
    if size < LEAST:
        raise ConfigError(f"size {size} leaves no room beside {LEAST - 1} special tokens and bytes; give more")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[reserve_token(name) for name in RESERVED],
    )
    tokenizer.train_from_iterator(texts, trainer)
    first = SPECIAL[BEGIN]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{first} $A", special_tokens=[(first, BEGIN)])
    return tokenizer


def reserve_token(name: str) -> AddedToken:
    """A token that no text is split into; the mask stands for the space before it, too."""
    return AddedToken(name, special=True, normalized=False, lstrip=name == MASK_TOKEN)


def read_byte_level(path: Path) -> Tokenizer:
    """The tokenizer in a file, if its first tokens are the special ones of `train_byte_level`."""
    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # tokenizers raises plain exceptions
        raise DataError(f"{path} is no tokenizer.json ({error}); give the one of a run of write or fill") from error
    names = tuple(tokenizer.id_to_token(number) for number in range(len(RESERVED)))
    if names != RESERVED:
        raise DataError(
            f"{path} begins with the tokens {' '.join(map(str, names))}, but {' '.join(RESERVED)} were wanted; "
            "give the tokenizer.json of a run of write or fill"
        )
    return tokenizer


def encode_plain(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """The ids of each text, without `<bos>`; what is spelled like a special token is text."""
    before = tokenizer.encode_special_tokens
    tokenizer.encode_special_tokens = True
    try:
        return [one.ids for one in tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]
    finally:
        tokenizer.encode_special_tokens = before
