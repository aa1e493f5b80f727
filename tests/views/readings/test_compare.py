"""Two models read one text: every number is what the model itself gives, found another way."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from transformers import BertModel

from regard.errors import ModelError, TraceError
from regard.models import GPT, Bert, BertConfig, GPTConfig, SentenceEncoderConfig
from regard.views.readings.compare import compare_models, find_telling_head, start_address
from regard.views.readings.language_model import LONGEST
from regard.views.readings.reading import write_types
from tests.views.readings.pairs import TEXT, make_bert, make_gpt, pieces_tokenizer, shake

WRITTEN = 5


@pytest.fixture(scope="module")
def pair():
    """Both in float64, so that other ways to the same numbers need no tolerance of their own."""
    (gpt, words), (bert, pieces) = make_gpt(), make_bert()
    return (gpt.double(), words), (bert.double(), pieces)


@pytest.fixture(scope="module")
def made(pair):
    return compare_models(TEXT, *pair, written=WRITTEN)


def attention_of(model, tokenizer):
    """All weights as `transformers` gives them, (layers, heads, n, n)."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        found = model(torch.tensor([tokenizer(TEXT)["input_ids"]]), output_attentions=True).attentions
    model.set_attn_implementation("sdpa")
    return torch.stack(found)[:, 0].numpy()


@pytest.mark.parametrize("which", [0, 1])
def test_shares_distance_and_entropy_are_those_of_the_weights_that_the_library_gives(pair, made, which):
    weights, reading = attention_of(*pair[which]), made.readings[which]
    n = weights.shape[-1]
    offset = np.arange(n)[None] - np.arange(n)[:, None]
    for name, where in (("back", offset < 0), ("itself", offset == 0), ("ahead", offset > 0)):
        assert getattr(reading, name) == pytest.approx(weights[..., where].sum() / weights.sum(), abs=1e-12)
    assert reading.distance == pytest.approx((weights * abs(offset)).sum(-1).mean(), abs=1e-12)
    logs = np.log2(weights, where=weights > 0, out=np.zeros_like(weights))
    assert reading.entropy == pytest.approx(-(weights * logs).sum(-1).mean(), abs=1e-12)
    assert (reading.layers, reading.tokens) == (weights.shape[0], n)


def test_a_gpt_may_look_at_the_triangle_and_a_bert_at_all(made):
    gpt, bert = made.readings
    assert gpt.may_look == pytest.approx((gpt.tokens + 1) / (2 * gpt.tokens))
    assert (bert.may_look, gpt.ahead) == (1.0, 0.0)
    assert bert.ahead > 0.2
    assert (gpt.objective, bert.objective) == ("next", "masked")


def test_only_what_a_bert_computes_depends_on_what_comes_later(made):
    gpt, bert = made.readings
    assert gpt.change_before == 0
    assert bert.change_before > 0.1


def test_the_log_probability_of_a_gpt_is_the_loss_of_transformers(pair, made):
    (model, tokenizer), reading = pair[0], made.readings[0]
    ids = torch.tensor([tokenizer(TEXT)["input_ids"]])
    with torch.no_grad():
        loss = model(ids, labels=ids).loss
    assert reading.log_prob == pytest.approx(-float(loss), abs=1e-6)  # it adds up in float32
    assert reading.guesses[0] is None
    assert len(reading.guesses) == ids.shape[1]


def test_each_guess_of_a_bert_is_that_of_one_pass_with_this_token_masked(pair, made):
    (model, tokenizer), reading = pair[1], made.readings[1]
    ids = tokenizer(TEXT)["input_ids"]
    assert (reading.guesses[0], reading.guesses[-1]) == (None, None)  # [CLS] and [SEP]
    for at in range(1, len(ids) - 1):
        fed = torch.tensor([[*ids[:at], tokenizer.mask_token_id, *ids[at + 1 :]]])
        with torch.no_grad():
            shares = model(fed).logits[0, at].softmax(-1)
        guess = reading.guesses[at]
        assert guess.log_prob == pytest.approx(math.log(shares[ids[at]]), abs=1e-10)
        assert guess.rank == 1 + int((shares > shares[ids[at]]).sum())
        assert_allclose([one.share for one in guess.top], shares.sort(descending=True).values[:5], rtol=1e-10)
        best = tokenizer.convert_ids_to_tokens(int(shares.argmax())).removeprefix("##")
        assert guess.top[0].name == best


def test_writing_gives_the_greedy_tokens_of_transformers_and_counts_what_was_computed(pair, made):
    (model, tokenizer), reading = pair[0], made.readings[0]
    ids = torch.tensor([tokenizer(TEXT)["input_ids"]])
    how = {"do_sample": False, "pad_token_id": 0, "suppress_tokens": tokenizer.all_special_ids}
    written = model.generate(ids, max_new_tokens=WRITTEN, min_new_tokens=WRITTEN, **how)
    assert reading.writing.text.split() == tokenizer.convert_ids_to_tokens(written[0, ids.shape[1] :].tolist())
    n = ids.shape[1]
    assert (reading.writing.positions, reading.writing.cached) == (n + WRITTEN - 1, True)
    n = made.readings[1].tokens
    costs = made.readings[1].writing
    assert costs.positions == sum(n + 1 + step for step in range(WRITTEN))  # a mask more, then a word more each time
    assert not any(name in costs.text for name in ("[SEP]", "[UNK]", "[MASK]"))
    assert (costs.passes, costs.cached, costs.seconds > 0) == (WRITTEN, False, True)


class WithoutCache(nn.Module):
    """A GPT of which nothing but its forward pass is known."""

    def __init__(self, model: GPT) -> None:
        super().__init__()
        self.inner = model

    def forward(self, ids: Tensor) -> Tensor:
        return self.inner(ids)


def test_a_model_without_a_cache_writes_the_same_and_reads_all_again():
    tokenizer = pieces_tokenizer()
    gpt = shake(GPT(GPTConfig(vocab_size=len(tokenizer), width=20, heads=5, layers=2, context=30)), 3)
    made = compare_models(TEXT, (gpt, tokenizer), (WithoutCache(gpt), tokenizer), written=3)
    one, two = (reading.writing for reading in made.readings)
    n = made.readings[0].tokens - 1  # it goes on before [SEP]
    assert (one.text, one.positions, one.cached) == (two.text, n + 2, True)
    assert (two.positions, two.cached) == (n + n + 1 + n + 2, False)


def test_tokens_that_both_guess_are_those_of_the_same_characters(made):
    gpt, bert = made.readings
    shared = [TEXT[slice(*span)] for span in gpt.spans if span in bert.spans]
    assert shared == ["the", "sat", "on", "the", "mat"]  # not "unseen" and "cats", which a BERT has in pieces
    assert gpt.common.tokens == bert.common.tokens == 4  # and not the first word, before which a GPT sees nothing
    assert bert.common.log_prob == pytest.approx(np.mean([bert.guesses[at].log_prob for at in (6, 7, 8, 9)]))
    assert gpt.common.first == pytest.approx(np.mean([gpt.guesses[at].rank == 1 for at in (3, 4, 5, 6)]))


def test_models_of_our_own_read_and_guess():
    tokenizer = pieces_tokenizer()
    sizes = {"vocab_size": len(tokenizer), "layers": 2, "context": 30}
    gpt = shake(GPT(GPTConfig(width=20, heads=5, **sizes)), 3)
    bert = shake(Bert(BertConfig(width=18, heads=3, head="masked_words", **sizes)), 4)
    one, two = compare_models(TEXT, (gpt, tokenizer), (bert, tokenizer), written=3).readings
    assert (one.objective, two.objective, one.common.tokens) == ("next", "masked", 9)
    assert (one.writing.positions, two.writing.positions) == (
        one.tokens - 1 + 2,
        sum(two.tokens + i for i in (1, 2, 3)),
    )


def test_a_model_without_a_head_over_words_shows_its_maps_and_predicts_nothing(pair):
    bert, tokenizer = pair[1]
    plain = BertModel(bert.config).double().eval()
    reading = compare_models(TEXT, pair[0], (plain, tokenizer)).readings[1]
    assert (reading.objective, reading.log_prob, reading.common, reading.writing) == (None, None, None, None)
    assert reading.may_look == 1.0
    assert "no token" in str(compare_models(TEXT, pair[0], (plain, tokenizer)))


def test_an_encoder_of_sentences_shows_what_its_tokens_look_at(pair):
    tokenizer = pieces_tokenizer()
    config = SentenceEncoderConfig(vocab_size=len(tokenizer), width=18, heads=3, layers=2, context=30)
    made = compare_models(TEXT, pair[0], (shake(config.build(), 5), tokenizer))
    assert (made.readings[1].objective, made.readings[1].heads) == (None, [3, 3])
    assert made.readings[1].change_before > 0.1
    assert len(made.traces[1].runs) == 1
    assert made.tokens[1][:3] == ("[CLS]", "the", "un")


def test_the_tables_say_the_numbers(made):
    shown = str(made)
    gpt, bert = made.readings
    (line,) = (line for line in shown.splitlines() if line.startswith("perplexity  "))
    assert re.findall(r"[\d,.]+", line) == [f"{math.exp(-one.log_prob):,.1f}" for one in (gpt, bert)]
    assert line.endswith("(pseudo)")
    *_, line = (line for line in shown.splitlines() if line.startswith("sat "))
    assert line.split()[1] == f"{100 * math.exp(gpt.guesses[3].log_prob):.1f}"
    assert max(map(len, shown.splitlines())) < 120


def test_small_maps_stand_above_the_tables_and_the_triangle_is_seen(made):
    lines = made.maps().splitlines()
    assert lines[0].startswith("GPT2LMHeadModel: layer ")
    rows = [re.split(r" {2,}", line) for line in lines[1 : 1 + made.readings[0].tokens]]
    blocks = [[row[1][2 * at] for at in range(len(rows))] for row in rows]
    assert [[one == "·" for one in row] for row in blocks] == [
        [at > i for at in range(len(rows))] for i in range(len(rows))
    ]
    assert "·" not in "".join(row[3] for row in rows)  # a BERT may look everywhere
    assert str(made).startswith(made.maps())


def test_the_page_begins_at_a_head_that_looks_ahead_where_the_model_may(made):
    layer, head = find_telling_head(made.traces[1])
    weights = made.traces[1].layers[layer].weights[0, head].dense()
    assert weights.triu(1).sum() / weights.sum() >= 0.2
    assert f"layer={find_telling_head(made.traces[0])[0]}&" in start_address(made.traces)
    assert start_address(made.traces).endswith(f"beside={layer},{head}")


def test_two_models_of_one_name_are_told_apart(pair):
    names = [one.name for one in compare_models("the cats", pair[0], pair[0], written=0).readings]
    assert names == ["GPT2LMHeadModel (1)", "GPT2LMHeadModel (2)"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the text is empty"),
        ("the " * 41, "the text has 41 tokens, but GPT2LMHeadModel takes at most 40; give a shorter one"),
    ],
)
def test_bad_texts_are_refused_in_one_sentence(pair, text, said):
    with pytest.raises((ModelError, TraceError), match=said):
        compare_models(text, *pair)


def test_a_long_text_is_refused_because_each_word_is_masked_once():
    gpt = shake(GPT(GPTConfig(vocab_size=len(pieces_tokenizer()), width=4, heads=1, layers=1, context=600)), 3)
    with pytest.raises(ModelError, match=f"at most {LONGEST} are compared"):
        compare_models("the " * (LONGEST + 1), (gpt, pieces_tokenizer()), (gpt, pieces_tokenizer()))


def test_a_model_without_a_tokenizer_is_refused(pair):
    with pytest.raises(ModelError, match="has no tokenizer"):
        compare_models(TEXT, pair[0], (pair[1][0], None))


def test_typescript_knows_the_same_words():
    file = Path(__file__).parents[3] / "web/src/trace/reading.ts"
    assert file.read_text(encoding="utf-8") == write_types()
