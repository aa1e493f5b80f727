"""Which words mattered: re-runs without each word, autograd by hand, and Spearman's correlation as scipy has it."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import nn
from torch.testing import assert_close

from regard.data.examples import RaggedArray
from regard.layers.multihead import merge_heads, split_heads
from regard.models import BertConfig, TextClassifierConfig
from regard.tasks.encoder import train_tokenizer
from regard.tasks.encoder_tokens import EncoderTokenizer
from regard.tasks.explanation_agreement import ExplanationAgreement, agreement_sentence, measure_agreement
from regard.tasks.labelled_examples import frame_texts
from regard.tasks.rank_correlation import rank_correlation
from regard.tasks.trained_classifier import TrainedClassifier
from regard.tasks.word_importance import explain_ids, find_log_odds, word_groups
from regard.tokens import read

TEXTS = ["A gripping, funny film", "the plot is unbelievably dull", "so-so\n\nand far too long , I'd say", "fine"]
POOLINGS = ("attention", "mean", "max", "cls")


def make(pooling="attention", labels=3):
    tokens = EncoderTokenizer.wrap(train_tokenizer(TEXTS[:2], 275, lowercase=False, prefix_space=True))
    sizes = {"vocab_size": tokens.tokenizer.get_vocab_size(), "width": 12, "heads": 3, "layers": 2, "hidden": 20}
    torch.manual_seed(3)
    if pooling == "bert":
        model = BertConfig(**sizes, context=64, labels=labels, head="classify").build()
    else:
        model = TextClassifierConfig(**sizes, context=64, labels=labels, pooling=pooling).build()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    names = [f"class {number}" for number in range(labels)]
    return TrainedClassifier("one", model.double().eval(), tokens, names, 64)


def ids_of(opened, text):
    return frame_texts(opened.tokens, [text], opened.max_length)[0][0]


def odds(logits, chosen):
    shares = logits.softmax(-1)
    return (shares[chosen] / (1 - shares[chosen])).log()


def test_log_odds_are_those_of_the_probability():
    logits = torch.randn(7, 4, dtype=torch.float64)
    for chosen in range(4):
        assert_close(find_log_odds(logits, chosen), torch.stack([odds(row, chosen) for row in logits]))
    assert_close(find_log_odds(torch.tensor([80.0, -80.0, -81.0]), 0).isfinite(), torch.tensor(True))


def test_words_are_whole_and_special_tokens_and_blanks_are_none():
    opened = make()
    for text, wanted in zip(TEXTS[:3], (
        ["A", "gripping", ",", "funny", "film"],
        ["the", "plot", "is", "unbelievably", "dull"],
        ["so", "-", "so", "and", "far", "too", "long", ",", "I'd", "say"],
    )):  # fmt: skip
        ids = ids_of(opened, text)
        found = explain_ids(opened, ids)
        assert list(found.words) == wanted
        assert [len(side) for side in found[1:4]] == [len(wanted)] * 3
        assert any(one.stop - one.start > 1 for one in word_groups(read(opened.tokens.tokenizer, ids)))


@pytest.mark.parametrize("pooling", [*POOLINGS, "bert"])
def test_leave_one_out_is_what_runs_without_each_word_say(pooling):
    opened = make(pooling)
    ids = ids_of(opened, TEXTS[2])
    pieces = word_groups(read(opened.tokens.tokenizer, ids))
    with torch.no_grad():
        whole = opened.model(torch.tensor([ids]))[0]
        for chosen in (None, 0, 2):
            found = explain_ids(opened, ids, chosen=chosen, batch_tokens=50)
            number = int(whole.argmax()) if chosen is None else chosen
            for one, value in zip(pieces, found.leave_one_out, strict=True):
                without = opened.model(torch.tensor([ids[: one.start] + ids[one.stop :]]))[0]
                assert_close(value, odds(whole, number) - odds(without, number), rtol=1e-8, atol=1e-10)


def weights_by_hand(opened, ids):
    """The weights of the layer that is pooled from, as a leaf, and the logits that follow from it."""
    model = opened.model
    if opened.pooling == "attention":
        hidden = model.hidden(torch.tensor([ids]))[0].detach()
        keys = torch.tanh(hidden @ model.pooling.to_k.weight.T + model.pooling.to_k.bias)
        leaf = (keys @ model.pooling.query).softmax(0)[None, None].detach().requires_grad_()  # h q k
        return leaf, model.classifier((leaf @ hidden)[0, 0])
    x = model._embed(torch.tensor([ids]), None)
    for block in model.blocks[:-1]:
        x = block(x)
    block, leaves = model.blocks[-1], []

    def attend(y):
        q, k, v = (
            split_heads(layer(y), 3) for layer in (block.attention.to_q, block.attention.to_k, block.attention.to_v)
        )
        leaves.append((q @ k.mT / 2.0).softmax(-1).detach().requires_grad_())  # 4 channels a head
        return block.attention.to_out(merge_heads(leaves[0] @ v))

    x = block.around_feed_forward(block.around_attention(x.detach(), attend), block.feed_forward)
    if opened.pooling == "cls" and model.config.head == "classify":
        return leaves[0], model.apply_head(x)[0]
    vector = {"mean": x[0].mean(0), "max": x[0].amax(0), "cls": x[0, 0]}[opened.pooling]
    return leaves[0], model.classifier(vector)


@pytest.mark.parametrize("pooling", [*POOLINGS, "bert"])
def test_attention_and_its_gradient_are_those_of_autograd_by_hand(pooling):
    opened = make(pooling)
    ids = ids_of(opened, TEXTS[0])
    found = explain_ids(opened, ids, chosen=1)
    leaf, logits = weights_by_hand(opened, ids)
    (slope,) = torch.autograd.grad(odds(logits, 1), leaf)
    tokens = len(ids)
    product = (leaf * slope).reshape(-1, leaf.shape[-2], tokens).sum((0, 1)).detach()
    heads = leaf.reshape(-1, leaf.shape[-2], tokens).mean(0).detach()  # q k
    if pooling == "max":
        with torch.no_grad():
            states = opened.model.hidden(torch.tensor([ids]))[0]
        winners = states.argmax(0).tolist()
        shares = sum(heads[winner] for winner in winners) / len(winners)
    else:
        shares = heads.mean(0) if pooling in ("mean", "attention") else heads[0]
    pieces = word_groups(read(opened.tokens.tokenizer, ids))
    for at, one in enumerate(pieces):
        assert_close(found.gradient[at], product[one].sum(), rtol=1e-8, atol=1e-10)
        assert_close(found.attention[at], shares[one].sum(), rtol=1e-8, atol=1e-10)
    assert found.attention.sum() < 1
    assert ("pooling layer" in found.source) == (pooling == "attention")


def test_explaining_leaves_the_model_as_it_was():
    opened = make()
    opened.model.embed.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in opened.model.state_dict().items()}
    with torch.inference_mode():
        explain_ids(opened, ids_of(opened, TEXTS[0]))
    assert_close(opened.model.state_dict(), before, rtol=0, atol=0)
    assert all(parameter.grad is None for parameter in opened.model.parameters())
    assert not opened.model.embed.weight.requires_grad


def test_rank_correlation_is_that_of_scipy():
    random = np.random.default_rng(0)
    for size in (3, 4, 17, 60):
        for ties in (100, 3):
            first, second = random.integers(0, ties, size) / 7, random.random(size)
            wanted = float(spearmanr(first, second).statistic)
            assert rank_correlation(first, second) == pytest.approx(wanted, nan_ok=True)
    assert np.isnan(rank_correlation(np.ones(5), np.arange(5)))


def test_agreement_is_the_mean_over_texts_of_what_scipy_finds():
    opened = make()
    rows = RaggedArray([np.asarray(ids_of(opened, text), dtype=np.int32) for text in TEXTS])
    found = measure_agreement(opened, rows)
    each = []
    for text in TEXTS[:3]:  # the last has one word
        one = explain_ids(opened, ids_of(opened, text))
        attention, gradient, change = (side.numpy() for side in one[1:4])
        each.append([
            spearmanr(attention, abs(change)).statistic,
            spearmanr(abs(gradient), abs(change)).statistic,
            spearmanr(gradient, change).statistic,
        ])  # fmt: skip
    assert found.texts == 3
    assert found.words == pytest.approx((5 + 5 + 10) / 3)
    assert found[2:5] == pytest.approx(np.mean(each, axis=0).tolist())
    assert measure_agreement(opened, rows) == found
    assert measure_agreement(opened, rows, texts=2).texts == 2
    assert found.error == pytest.approx(np.std([one[0] for one in each], ddof=1) / 3**0.5)


def test_leave_one_out_agrees_with_itself_and_chance_with_nothing(monkeypatch):
    """A law: what is compared with its own size correlates at 1; random numbers at 0."""
    import regard.tasks.explanation_agreement as module

    opened, plain = make(), explain_ids

    def perfect(opened, ids, **more):
        one = plain(opened, ids, **more)
        return one._replace(attention=one.leave_one_out.abs(), gradient=one.leave_one_out)

    monkeypatch.setattr(module, "explain_ids", perfect)
    words = [f"w{at}" for at in range(12)]
    random = np.random.default_rng(1)
    texts = [" ".join(random.permutation(words)) for _ in range(40)]
    rows = RaggedArray([np.asarray(ids_of(opened, text), dtype=np.int32) for text in texts])
    found = measure_agreement(opened, rows)
    assert found[2:5] == pytest.approx([1.0, 1.0, 1.0])
    assert abs(found.random) < 0.25


def test_where_nothing_can_be_measured_that_is_said():
    opened = make()
    rows = RaggedArray([np.asarray(ids_of(opened, "fine"), dtype=np.int32)])
    found = measure_agreement(opened, rows)
    assert isinstance(found, ExplanationAgreement)
    assert found.texts == 0
    assert agreement_sentence(found.to_json()).startswith("No held-out text has three words")
