"""A small encoder with the words of a large one: what it keeps, and what it cannot."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.testing import assert_close

from regard.errors import ModelError
from regard.models import embedded
from regard.models.bert_config import BertConfig
from regard.tasks.shrink import SPREAD, cut_vocabulary, reduce_rank, shrink_encoder

WORDS = ["[PAD]", "[UNK]", "a", "##a", "cat", "##s", "catalogue", "[CLS]"]


def word_pieces():
    vocabulary = {word: at for at, word in enumerate(WORDS)}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return made


def test_the_largest_directions_are_those_of_a_singular_value_decomposition():
    torch.manual_seed(0)
    table = torch.randn(23, 11, dtype=torch.float64) * torch.logspace(0, -2, 11, dtype=torch.float64) + 3
    u, s, _ = torch.linalg.svd(table - table.mean(0), full_matrices=False)
    wanted = u[:, :5] * s[:5]
    found = reduce_rank(table, 5)
    assert float(found.std()) == pytest.approx(SPREAD)
    assert_close(torch.cdist(found, found) * (wanted.std() / SPREAD), torch.cdist(wanted, wanted))


def test_all_but_the_embeddings_is_drawn_by_the_seed_and_nothing_else_is_drawn():
    large = BertConfig(vocab_size=30, width=16, heads=2, layers=1).build()
    config = BertConfig(vocab_size=20, width=12, heads=3, layers=2, embed_width=4)
    state = torch.get_rng_state()
    one, same, other = (shrink_encoder(large, config, seed=seed).state_dict() for seed in (1, 1, 2))
    assert torch.get_rng_state().equal(state)
    assert_close(one, same, rtol=0, atol=0)
    assert one["embed.weight"].equal(other["embed.weight"])
    assert not one["blocks.1.attention.to_q.weight"].equal(other["blocks.1.attention.to_q.weight"])
    turned = one["project.weight"]
    assert_close(turned.mT @ turned, torch.eye(4), rtol=0, atol=1e-5)


def test_a_word_that_is_cut_off_becomes_pieces_and_others_stay():
    found = cut_vocabulary(word_pieces(), 6)
    assert found.get_vocab_size() == 6
    assert found.encode("cats a").tokens == word_pieces().encode("cats a").tokens == ["cat", "##s", "a"]
    assert word_pieces().encode("catalogue").tokens == ["catalogue"]
    assert found.encode("cataa catalogue").tokens == ["cat", "##a", "##a", "[UNK]"]


def test_what_cannot_be_cut_is_refused_in_a_sentence():
    large = BertConfig(vocab_size=30, width=16, heads=2, layers=1).build()
    for sizes, asked in (({"vocab_size": 31}, "31 embeddings of width 8"), ({"embed_width": 17}, "of width 17")):
        config = BertConfig(**{"vocab_size": 20, "width": 12, "heads": 3, "layers": 1, "embed_width": 8} | sizes)
        with pytest.raises(ModelError, match=f"{asked}.*, but there are 30 of width 16; ask for fewer"):
            shrink_encoder(large, config)
    with pytest.raises(ModelError, match="a tokenizer of kind BPE came, but word pieces can be cut; name a BERT"):
        cut_vocabulary(embedded.tokenizer("filler"), 100)
    special = word_pieces()
    special.add_special_tokens(["[CLS]"])
    with pytest.raises(ModelError, match=r"\[CLS\] is not among the first 6 tokens, but is special"):
        cut_vocabulary(special, 6)
