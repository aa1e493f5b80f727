"""Byte-level BPE: any text comes back, and the same texts give the same tokenizer."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.byte_level import LEAST, MASK, RESERVED, encode_plain, read_byte_level, train_byte_level
from regard.data.special import BEGIN
from regard.errors import ConfigError, DataError

TEXTS = ["The cat sat on the mat.", "A man sat on a cat!", "the men and the cats"] * 3
TOKENIZER = train_byte_level(TEXTS, 300)


@given(st.text())
def test_any_text_comes_back(text):
    [ids] = encode_plain(TOKENIZER, [text])
    assert TOKENIZER.decode(ids) == text
    assert all(token >= len(RESERVED) for token in ids)


def test_control_characters_and_emoji_come_back():
    text = "\t\x07 <bos> [MASK]\r\n 👩‍👩‍👧 猫  ﷽"
    [ids] = encode_plain(TOKENIZER, [text])
    assert TOKENIZER.decode(ids) == text


def test_a_prompt_begins_as_a_document_does_and_a_mask_is_a_mask():
    assert TOKENIZER.encode("The cat").ids[0] == BEGIN
    assert TOKENIZER.encode("The [MASK] sat").ids.count(MASK) == 1
    assert TOKENIZER.encode("The [MASK] sat").ids == TOKENIZER.encode("The[MASK] sat").ids


def test_the_order_of_the_texts_does_not_matter():
    mixed = list(TEXTS)
    random.Random(3).shuffle(mixed)
    assert train_byte_level(mixed, 300).to_str() == TOKENIZER.to_str()


def test_bad_files_and_sizes_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=f"size {LEAST - 1} leaves no room"):
        train_byte_level(TEXTS, LEAST - 1)
    path = tmp_path / "tokenizer.json"
    with pytest.raises(DataError, match=r"is no tokenizer\.json"):
        read_byte_level(path)
    path.write_text(TOKENIZER.to_str())
    assert read_byte_level(path).to_str() == TOKENIZER.to_str()
    path.write_text(TOKENIZER.to_str().replace("[MASK]", "[GAP]"))
    with pytest.raises(DataError, match=r"begins with the tokens .* \[GAP\], but .* \[MASK\] were wanted"):
        read_byte_level(path)
