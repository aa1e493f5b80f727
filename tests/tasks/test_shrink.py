"""A small encoder with the words of a large one: what it keeps, and what it cannot."""

import json

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.testing import assert_close

from regard.errors import ConfigError, DataError, ModelError
from regard.models import embedded, store
from regard.models.bert_config import BertConfig
from regard.models.open.load_model import load_model
from regard.tasks.encoder_tokens import EncoderTokenizer
from regard.tasks.imitate import command, imitate, pair_layers, read_rows
from regard.tasks.shrink import SPREAD, cut_vocabulary, parse_layers, reduce_rank, shrink_encoder

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


def test_layers_that_are_kept_compute_what_they_did_with_the_channels_that_are_kept():
    torch.manual_seed(0)
    large = BertConfig(vocab_size=30, width=16, heads=2, layers=4, hidden=24).build().eval()
    network = large.blocks[3].feed_forward
    with torch.no_grad():
        network.to_out.weight[:, [1, 5, 20]] *= 1e-3  # channels that say least
    config = BertConfig(vocab_size=20, width=16, heads=2, layers=2, hidden=21, embed_width=4)
    small = shrink_encoder(large, config, keep_layers=[0, 3]).eval()
    x = torch.randn(2, 7, 16)
    assert_close(small.blocks[1](x), large.blocks[3](x), rtol=0, atol=1e-3)
    assert small.blocks[0].attention.to_q.weight.equal(large.blocks[0].attention.to_q.weight)
    with torch.no_grad():
        network.to_out.weight[:, [1, 5, 20]] = 0
    small = shrink_encoder(large, config, keep_layers=[2, 3]).eval()
    assert_close(small.blocks[1](x), large.blocks[3](x))


def test_layers_that_cannot_be_kept_are_refused_in_a_sentence():
    large = BertConfig(vocab_size=30, width=16, heads=2, layers=3, hidden=24).build()
    sizes = {"vocab_size": 20, "width": 16, "heads": 2, "layers": 2, "hidden": 24, "embed_width": 4}
    for change, keep, message in (
        ({}, [0, 3], "layers 0, 3 were to be kept, but the large model has layers 0 to 2 and the small one 2 layers"),
        ({}, [1], "layers 1 were to be kept"),
        ({"heads": 4}, [0, 1], "layers of 16 channels, 2 heads cannot be kept in a model of 16 channels, 4 heads"),
        ({"hidden": 25}, [0, 1], "hidden is 25, but the layers that are kept have 24; ask for fewer"),
    ):
        with pytest.raises(ModelError, match=message):
            shrink_encoder(large, BertConfig(**sizes | change), keep_layers=keep)
    with pytest.raises(ConfigError, match="keep_layers is 'all', but numbers such as 0,3,5 were wanted"):
        parse_layers("all")


@pytest.mark.parametrize("width", [16, 10])
def test_a_small_encoder_learns_the_states_of_a_large_one(tmp_path, width):
    torch.manual_seed(0)
    tokens = EncoderTokenizer.wrap(embedded.tokenizer("filler"))
    path = tmp_path / "text.txt"
    path.write_text(
        "\n\n".join(f"A cat sat on mat {n} of the red house and did not look at {n * 7} dogs." for n in range(30))
    )
    rows = read_rows(path, tokens, 14)
    assert rows.ids.lengths.max() == 14
    large = BertConfig(vocab_size=4096, width=16, heads=2, layers=3, hidden=24).build()
    small = BertConfig(vocab_size=4096, width=width, heads=2, layers=1, hidden=20, embed_width=6).build()
    state = {name: value.clone() for name, value in large.state_dict().items()}
    drawn = torch.get_rng_state()
    first = imitate(small, large, rows, [(0, 2)], steps=1, lr=1e-9)
    last = imitate(small, large, rows, [(0, 2)], steps=60, lr=1e-2, batch_tokens=200)
    assert last < 0.6 * first
    assert_close(dict(large.state_dict()), state, rtol=0, atol=0)
    assert torch.get_rng_state().equal(drawn)
    assert not large.blocks[0]._forward_hooks
    assert not small.blocks[0]._forward_hooks


def test_questions_are_imitated_as_a_model_that_answers_reads_them(tmp_path):
    asked = [{"id": "1", "question": "Who sat?", "answers": [{"text": "A cat", "answer_start": 0}]}]
    told = {"data": [{"title": "cats", "paragraphs": [{"context": "A cat sat there.", "qas": asked}]}]}
    (tmp_path / "asked.json").write_text(json.dumps(told))
    tokens = EncoderTokenizer.wrap(embedded.tokenizer("filler"))
    rows = read_rows(tmp_path / "asked.json", tokens, 80, match=True)
    assert rows.types is not None
    assert (rows.types[0].count(2), rows.types[0][0]) == (1, 0)  # "sat" stands in both
    assert len(rows.ids[0]) == len(rows.types[0])
    large, small = (
        BertConfig(vocab_size=4096, width=8, heads=2, layers=n, token_types=3, embed_width=4).build() for n in (2, 1)
    )
    before = small.types.weight[2].clone()
    imitate(small, large, rows, [(0, 1)], steps=3, lr=1e-2)
    assert not small.types.weight[2].equal(before)


def test_a_text_without_lines_to_learn_from_is_refused(tmp_path):
    (tmp_path / "text.txt").write_text("a\n\nb\n")
    with pytest.raises(DataError, match="has no line of 8 tokens to learn from; name a longer text"):
        read_rows(tmp_path / "text.txt", EncoderTokenizer.wrap(embedded.tokenizer("filler")), 14)


def test_the_command_writes_the_encoder_that_has_learned(tmp_path, capsys):
    torch.manual_seed(0)
    files = {"tokenizer.json": embedded.tokenizer("filler").to_str().encode()}
    for name, layers in (("large", 3), ("small", 2)):
        config = BertConfig(vocab_size=4096, width=8, heads=2, layers=layers, hidden=12, context=20)
        store.write(tmp_path / name, config.build(), config, {"name": name}, files)
    (tmp_path / "text.txt").write_text("A cat sat on the mat and looked at all the red dogs.\n" * 9)
    large, small = str(tmp_path / "large"), str(tmp_path / "small")
    command(large, small, tmp_path / "out", tmp_path / "text.txt", layers="0,2", steps=4)
    assert "mean square of the difference" in capsys.readouterr().out
    before, after = (load_model(tmp_path / name).model.state_dict() for name in ("small", "out"))
    assert not before["blocks.0.attention.to_q.weight"].equal(after["blocks.0.attention.to_q.weight"])
    with pytest.raises(ModelError, match="writer is a GPT, but an encoder was wanted; name a BERT"):
        command("writer", small, tmp_path / "out", tmp_path / "text.txt")
    with pytest.raises(ConfigError, match="layers is '0,7', but one of 0 to 2 was wanted for each of the 2 layers"):
        pair_layers("0,7", load_model(small).model, load_model(large).model)
