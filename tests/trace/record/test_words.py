"""Words instead of pieces, and one sentence looking at another."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.errors import TraceError
from regard.tokens import Tokens
from regard.trace.record.layer import Layer
from regard.trace.record.weights import from_weights
from regard.trace.record.words import merge_words, select, sentences

PIECES = Tokens.of(["[CLS]", "un", "##seen", "cat", "##s", "##y", "[SEP]"])
OTHERS = Tokens.of(["[CLS]", "a", "b", "c", "##d", "e", "[SEP]"])
PAIR = Tokens.of(["[CLS]", "how", "old", "[SEP]", "six", "years", "##old", "[SEP]", "[PAD]"])


def layer(*tokens, heads=3, mask=None):
    size = len(tokens[0])
    q, k = (torch.randn(len(tokens), heads, size, 5, dtype=torch.float64) for _ in range(2))
    return Layer("block.0", "self", regard.attend(q, k, k, mask=mask).weights, queries=tokens, keys=tokens)


def test_words_have_the_mean_of_their_rows_and_the_sum_of_their_columns():
    one = layer(PIECES)
    merged = merge_words(one)
    assert merged.queries[0].shown == merged.keys[0].shown == ("[CLS]", "unseen", "catsy", "[SEP]")
    groups = [[0], [1, 2], [3, 4, 5], [6]]
    whole = one.weights.dense()
    for i, rows in enumerate(groups):
        for j, columns in enumerate(groups):
            assert_close(merged.weights[:, :, i, j], whole[:, :, rows][..., columns].sum(-1).mean(-1))
    assert_close(merged.weights.dense().sum(-1), torch.ones(1, 3, 4, dtype=torch.float64))


def test_each_batch_entry_has_its_own_words():
    one = layer(PIECES, OTHERS)
    second = merge_words(one, batch=1)
    assert second.queries[0].shown == ("[CLS]", "a", "b", "cd", "e", "[SEP]")
    assert_close(second.weights[0, 2, 0, 3], one.weights[1, 2, 0, 3:5].sum())


def test_causal_words_stay_causal():
    seen = merge_words(layer(PIECES, mask=regard.causal())).weights.allowed[0, 0, :, :]
    assert seen.tolist() == torch.ones(4, 4).tril().bool().tolist()


def test_a_map_takes_its_tokens():
    one = layer(PIECES).weights[0, 1]
    merged = merge_words(one, PIECES)
    assert merged.tokens == (("[CLS]", "unseen", "catsy", "[SEP]"),) * 2
    assert merged.kind == "merged from computed"
    with pytest.raises(TraceError, match="a map does not know its words; give its tokens"):
        merge_words(one)
    with pytest.raises(TraceError, match="9 tokens came for 7 positions"):
        merge_words(one, PAIR)


def test_a_layer_without_tokens_says_how_to_get_some():
    bare = from_weights(torch.full((2, 3, 3), 1 / 3)).layers[0]
    with pytest.raises(TraceError, match=r"layer\.0 has no tokens to make words of; watch with a tokenizer"):
        merge_words(bare)


def test_nothing_is_computed_before_somebody_looks(monkeypatch):
    one = layer(PIECES)
    monkeypatch.setattr("regard.attention.map.computed.Computed.scores", lambda *_: pytest.fail("computed"))
    select(merge_words(one), rows=[1])


def test_special_tokens_part_sentences():
    assert sentences(PAIR) == [range(1, 3), range(4, 7)]
    assert sentences(Tokens(("a", "b"))) == [range(2)]


def test_offsets_that_begin_anew_part_sentences():
    offsets = ((0, 3), (4, 7), (0, 2), (3, 5), (6, 8))
    assert sentences(Tokens(("How", "old", "He", "is", "6."), offsets=offsets)) == [range(2), range(2, 5)]


def test_sentence_a_looking_at_sentence_b():
    one = layer(PAIR)
    part = select(one, "A", "B")
    assert (part.queries[0].shown, part.keys[0].shown) == (("how", "old"), ("six", "years", "old"))
    assert_close(part.weights.dense(), one.weights.dense()[:, :, 1:3, 4:7])
    assert part.weights.kind == "part of computed"
    with pytest.raises(TraceError, match="sentence 'C' was asked for, but there are A, B"):
        select(one, "C")


@pytest.mark.parametrize(
    ("rows", "wanted"), [(slice(2, 5), [2, 3, 4]), ([5, 0], [5, 0]), (-1, [8]), (torch.tensor([3]), [3])]
)
def test_rows_by_slice_list_or_number(rows, wanted):
    one = layer(PAIR)
    part = select(one, rows)
    assert part.queries[0].shown == tuple(PAIR.shown[place] for place in wanted)
    assert_close(part.weights.dense(), one.weights.dense()[:, :, wanted])


def test_a_choice_of_nothing_or_of_what_is_not_there_is_refused():
    one = layer(PAIR)
    with pytest.raises(TraceError, match="no column of 9 was chosen; give at least one"):
        select(one, None, slice(4, 4))
    with pytest.raises(TraceError, match="there is no row 9"):
        select(one, [9])
    with pytest.raises(TraceError, match="saw a batch of 1, but entry 3 was asked for"):
        select(one, batch=3)
    with pytest.raises(TraceError, match="sentence 'A' was asked for, but the tokens are not known"):
        select(from_weights(torch.eye(4)).layers[0], "A")
