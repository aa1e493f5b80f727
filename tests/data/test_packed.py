"""Packed documents: every token once, in any order of the documents, in two bytes each."""

import numpy as np
import pytest

from regard.data.byte_level import train_byte_level
from regard.data.packed import PackedDocuments
from regard.data.special import BEGIN, END, PAD
from regard.errors import DataError

DOCUMENTS = [[11, 12, 13, 14], [21], [31, 32, 33, 34, 35, 36, 37], [41, 42]]


def chain_plainly(order):
    return [token for at in order for token in (BEGIN, *DOCUMENTS[at], END)]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]])
@pytest.mark.parametrize("context", [2, 5, 9, 21, 50])
def test_rows_are_windows_of_one_long_list(order, context):
    texts, plain = PackedDocuments(DOCUMENTS, context=context), chain_plainly(order)
    for row, ids in enumerate(texts.read(range(texts.rows), order).tolist()):
        window = plain[row * context : (row + 1) * context + 1]
        assert ids == window + [PAD] * (context + 1 - len(window))
    assert texts.rows == max(1, (len(plain) - 1) // context)


@pytest.mark.parametrize("context", [2, 5, 9, 21, 50])
def test_a_whole_text_leaves_no_token_out(context):
    texts, plain = PackedDocuments(DOCUMENTS, context=context, whole=True), chain_plainly(range(4))
    followed = [token for ids in texts.read(range(texts.rows)).tolist() for token in ids[1:] if token != PAD]
    assert followed == plain[1:]


@pytest.mark.parametrize("context", [2, 3, 6, 9, 50])
def test_pieces_are_the_documents_cut_where_they_are_too_long(context):
    plain = [[BEGIN, *ids, END] for ids in DOCUMENTS]
    wanted = [ids[at : at + context] for ids in plain for at in range(0, len(ids), context)]
    pieces = PackedDocuments(DOCUMENTS, context=context).pieces()
    assert [pieces[at] for at in range(len(pieces.lengths))] == wanted
    assert pieces.pad(np.array([0]))[0].tolist() == wanted[0]


def test_tokens_take_two_bytes_where_they_fit():
    assert PackedDocuments([[2**16 - 1]], context=4).flat.dtype == np.uint16
    large = PackedDocuments([[2**16, 7]], context=4)
    assert large.flat.dtype == np.int32
    assert large.document(0) == [BEGIN, 2**16, 7, END]


def test_texts_are_encoded_as_they_stand_whatever_they_spell():
    tokenizer = train_byte_level(["the cat sat", "the cats"] * 2, 270)
    texts = PackedDocuments.encode((text for text in ["the <eos> cat", "猫"]), tokenizer, context=4)
    assert tokenizer.decode(texts.document(0)[1:-1]) == "the <eos> cat"
    assert END not in texts.document(0)[1:-1]
    assert tokenizer.decode(texts.document(1)) == "猫"


def test_nothing_to_read_is_refused():
    with pytest.raises(DataError, match="no document is left to read"):
        PackedDocuments([], context=4)
