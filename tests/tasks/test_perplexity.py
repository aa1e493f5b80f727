"""Perplexity: against plain loops in float64, and against `transformers` with the same weights."""

import json
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.errors import ConfigError, DataError, ModelError
from regard.models import GPT, GPTConfig, embedded
from regard.models.tokenizer import WordTokenizer
from regard.tasks.perplexity import first_tokens, perplexity, spans, token_losses

WORDS = [f"w{i}" for i in range(23)]
SIZES = {"vocab_size": 23, "width": 20, "heads": 5, "layers": 3, "context": 64}


def make_gpt(**more) -> GPT:
    torch.manual_seed(0)
    model = GPT(GPTConfig(**SIZES | more)).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def make_text(count: int, seed: int = 1) -> str:
    drawn = torch.randint(0, 23, (count,), generator=torch.Generator().manual_seed(seed)).tolist()
    return " ".join(WORDS[i] + ("\n" if n % 7 == 6 else "") for n, i in enumerate(drawn))


def nll_by_loop(model, ids: list[int], window: int, stride: int) -> tuple[float, int]:
    """Each token once, in the first window whose inputs reach the token before it; one forward pass for each."""
    total, count = 0.0, 0
    for at in range(1, len(ids)):
        first = 0
        while first + window < at:
            first += stride
        with torch.no_grad():
            logits = model(torch.tensor([ids[first:at]]))[0, -1]
        total -= float(logits.double().log_softmax(-1)[ids[at]])
        count += 1
    return total, count


@pytest.mark.parametrize(("window", "stride"), [(64, 64), (16, 16), (16, 5), (7, 1), (1, 1), (40, 33)])
def test_it_is_a_plain_loop_over_tokens(window, stride):
    model, text = make_gpt(), make_text(59)
    found = perplexity(model, WordTokenizer(WORDS), text, window=window, stride=stride)
    nll, count = nll_by_loop(model, WordTokenizer(WORDS).encode(text), window, stride)
    assert count == found.tokens == 58
    assert found.nll == pytest.approx(nll, rel=1e-12)
    assert found.per_token == pytest.approx(math.exp(nll / 58), rel=1e-12)
    assert found.per_word == pytest.approx(math.exp(nll / 59), rel=1e-12)
    assert found.per_word_and_line == pytest.approx(math.exp(nll / (59 + 8)), rel=1e-12)
    assert found.bits_per_byte == pytest.approx(nll / math.log(2) / len(text), rel=1e-12)
    assert (found.lines, found.window, found.stride, found.start) == (8, window, stride, None)


def test_a_start_lets_the_first_token_count():
    model, text = make_gpt(), make_text(31)
    ids = WordTokenizer(WORDS).encode(text)
    found = perplexity(model, WordTokenizer(WORDS), text, start=11)
    nll, _ = nll_by_loop(model, [11, *ids], 64, 32)
    assert (found.tokens, found.start) == (31, 11)
    assert found.nll == pytest.approx(nll, rel=1e-12)


def test_what_a_tokenizer_puts_in_front_is_the_start():
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="w4 $A", special_tokens=[("w4", 4)])
    found, given = (perplexity(make_gpt(), one, make_text(13), start=start) for one, start in (
        (tokenizer, None), (WordTokenizer(WORDS), 4),
    ))  # fmt: skip
    assert found == given
    assert (found.start, found.tokens) == (4, 13)


def test_pieces_of_the_head_are_the_head(monkeypatch):
    model, text = make_gpt(tied=False), make_text(50)
    whole = perplexity(model, WordTokenizer(WORDS), text)
    monkeypatch.setattr("regard.tasks.perplexity.CHUNK", 3 * 23)
    assert perplexity(model, WordTokenizer(WORDS), text).nll == pytest.approx(whole.nll, rel=1e-13)


@pytest.mark.parametrize("count", [1, 2, 9, 30])
@pytest.mark.parametrize(("window", "stride"), [(4, 4), (4, 3), (4, 1), (30, 7), (99, 50)])
def test_every_prediction_counts_exactly_once(count, window, stride):
    counted = [at for one in spans(count, window, stride) for at in range(one.stop - one.counted, one.stop)]
    assert counted == list(range(count))
    for number, one in enumerate(spans(count, window, stride)):
        assert one.stop - one.first <= window
        assert number == 0 or (one.stop - one.counted) - one.first >= window - stride


def their_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(2)
    config = GPT2Config(vocab_size=23, n_positions=48, n_embd=20, n_layer=2, n_head=5, bos_token_id=0, eos_token_id=0)
    return GPT2LMHeadModel(config).eval()


def test_a_model_of_transformers_gives_what_its_own_loss_gives():
    model, text = their_gpt2().double(), make_text(41)
    ids = torch.tensor([WordTokenizer(WORDS).encode(text)])
    found = perplexity(model, WordTokenizer(WORDS), text)
    with torch.no_grad():
        theirs = float(model(ids, labels=ids).loss)
    assert found.nll / found.tokens == pytest.approx(theirs, rel=1e-6)  # they sum in float32
    nll, _ = nll_by_loop(lambda some: model(some).logits, ids[0].tolist(), 48, 24)
    assert found.nll == pytest.approx(nll, rel=1e-12)
    assert found.window == 48  # its context


def test_only_rows_that_count_are_made_and_the_mode_is_put_back():
    model, made = their_gpt2().train(), []
    model.lm_head.register_forward_hook(lambda _, __, logits: made.append(logits.shape[1]))
    perplexity(model, WordTokenizer(WORDS), make_text(41), window=16, stride=4)
    assert model.training
    assert made[2:] == [16, 4, 4, 4, 4, 4, 4]  # the first two ask whether it looks ahead


def test_losses_are_those_of_each_token():
    model, ids = make_gpt(), WordTokenizer(WORDS).encode(make_text(37))
    losses = torch.cat(list(token_losses(model, ids, window=64, stride=64)))
    with torch.no_grad():
        right = F.cross_entropy(model(torch.tensor([ids]))[0, :-1], torch.tensor(ids[1:]), reduction="none")
    torch.testing.assert_close(losses, right)


def test_half_precision_is_summed_in_float32():
    model, text = make_gpt().float(), make_text(47)
    exact = perplexity(model, WordTokenizer(WORDS), text)
    head = model.head_weight

    class Rounded(nn.Module):
        def forward(self, ids):
            return F.linear(model.hidden(ids), head).half()

    assert perplexity(Rounded(), WordTokenizer(WORDS), text).nll == pytest.approx(exact.nll, rel=2e-3)


def test_it_says_everything_it_depends_on():
    found = perplexity(make_gpt(), WordTokenizer(WORDS), make_text(29), window=8, stride=3)
    assert "28 tokens, 29 words (white space between them), 4 line ends" in str(found)
    assert "windows of 8 tokens, stride 3; the first token is given" in str(found)
    facts = json.loads(json.dumps(found.to_json()))
    assert facts["per_word"] == pytest.approx(found.per_word)
    assert (facts["window"], facts["stride"], facts["start"]) == (8, 3, None)


def test_the_beginning_of_a_text_has_so_many_tokens():
    text, tokenizer = make_text(20), WordTokenizer(WORDS)
    assert tokenizer.encode(first_tokens(text, tokenizer, 9)) == tokenizer.encode(text)[:9]
    assert text.startswith(first_tokens(text, tokenizer, 9))
    assert first_tokens(text, tokenizer, 99) == text


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"window": 0}, ConfigError, "window is 0 and stride 1, but both count tokens; give 1 or more"),
        ({"window": 8, "stride": 9}, ConfigError, "stride is 9 and window 8, so tokens between windows would never"),
        ({"window": 65}, ModelError, "window is 65, but the model takes at most 64 tokens; give a smaller window"),
        ({"text": "w1"}, DataError, "the text has 1 tokens, and nothing to predict; give at least two words"),
        ({"text": ""}, DataError, "the text has 0 tokens"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_sentence(wrong, error, said):
    given = {"text": make_text(12)} | wrong
    with pytest.raises(error, match=said):
        perplexity(make_gpt(), WordTokenizer(WORDS), **given)


def test_a_model_that_looks_ahead_is_refused():
    from transformers import BertConfig, BertForMaskedLM, BertModel

    sizes = {"vocab_size": 23, "hidden_size": 20, "num_hidden_layers": 1, "num_attention_heads": 5}
    for made, said in ((BertForMaskedLM, "BertForMaskedLM looks ahead"), (BertModel, "BertModel gives no logits")):
        with pytest.raises(ModelError, match=said):
            perplexity(made(BertConfig(**sizes)), WordTokenizer(WORDS), make_text(12))
    with pytest.raises(ModelError, match="Translator does not write on where a text ends"):
        perplexity(embedded.load("en-zh-grammar"), WordTokenizer(WORDS), make_text(12))


def test_a_number_that_is_none_is_refused():
    model = make_gpt()
    nn.init.constant_(model.norm.weight, math.nan)
    with pytest.raises(ModelError, match="gives 11 of 11 tokens no finite log-likelihood"):
        perplexity(model, WordTokenizer(WORDS), make_text(12))
