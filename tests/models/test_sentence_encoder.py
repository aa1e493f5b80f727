"""Texts as vectors: each pooling against loops over single texts, watched, edited and stored."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import regard
from regard.errors import ModelError
from regard.models import SentenceEncoder, SentenceEncoderConfig, store
from regard.models.kinds import kind_of

V, M, H, LAYERS, HIDDEN, B, T = 23, 12, 3, 2, 20, 5, 9
LENGTHS = [T, 4, 7, 1, 2]


def make(**options):
    model = SentenceEncoderConfig(V, M, H, LAYERS, context=17, hidden=HIDDEN, **options).build()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.double().eval()


def draw_batch(pad=0):
    ids = torch.randint(4, V, (B, T))
    for row, length in enumerate(LENGTHS):
        ids[row, length:] = pad
    return ids


@pytest.mark.parametrize("normalize", [True, False], ids=["normalized", "as they are"])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@torch.no_grad()
def test_vectors_of_a_padded_batch_are_those_of_the_states_of_each_text(pooling, normalize):
    model = make(pooling=pooling, normalize=normalize)
    ids = draw_batch()
    found = model(ids)
    for row, length in enumerate(LENGTHS):
        states = model.hidden(ids[row : row + 1, :length])[0]
        wanted = {"mean": states.mean(0), "cls": states[0], "max": states.max(0).values}[pooling]
        wanted = wanted / wanted.square().sum().sqrt() if normalize else wanted
        assert_close(found[row], wanted, rtol=1e-10, atol=1e-10)


@torch.no_grad()
def test_lengths_say_what_is_padding_where_the_ids_do_not():
    model = make()
    ids = draw_batch()
    other = torch.where(ids == 0, 5, ids)
    assert_close(model(other, lengths=LENGTHS), model(ids), rtol=1e-10, atol=1e-10)
    assert_close(model(other, lengths=torch.tensor(LENGTHS)), model(ids), rtol=1e-10, atol=1e-10)
    assert (model(other) - model(ids)).abs().max() > 1e-3


def test_gradients_flow_through_every_pooling():
    for pooling in ("mean", "cls", "max"):
        model = make(pooling=pooling).train()
        model(draw_batch())[:, 0].sum().backward()
        assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


def test_a_folder_of_ours_keeps_it(tmp_path):
    model = make(pooling="max", normalize=False).float()
    store.write(tmp_path, model, model.config, {})
    again = store.read(tmp_path)
    assert isinstance(again, SentenceEncoder)
    assert again.config == model.config
    assert kind_of(again).name == "sentence_encoder"
    ids = draw_batch()
    assert_close(again(ids), model(ids), rtol=0, atol=0)


def test_what_is_no_sentence_encoder_is_refused():
    with pytest.raises(ValueError, match="pooling is 'sum'; choose one of 'mean', 'cls', 'max'"):
        make(pooling="sum")
    with pytest.raises(ModelError, match="head is 'span', but a sentence encoder pools hidden states"):
        make(head="span")


@torch.no_grad()
def test_it_is_watched_and_a_head_can_be_muted():
    model, twin = make(), make()
    twin.load_state_dict(model.state_dict())
    twin.blocks[0].attention.to_out.weight.unflatten(1, (H, -1))[:, 1] = 0
    ids = draw_batch()
    with regard.watch(model) as trace:
        model(ids)
    assert [proof.status for proof in trace.verify()] == ["verified", "verified"]
    weights = trace.layers[0].weights.dense()
    assert_close(weights.sum(-1), torch.ones(B, H, T).double())
    assert weights.masked_select((ids == 0)[:, None, None]).eq(0).all()
    with regard.edit(model) as editor:
        editor.mute("blocks.0.attention", heads=[1])
        assert_close(model(ids), twin(ids), rtol=1e-10, atol=1e-10)
    ranked = regard.importance(model, ids, metric=lambda vectors: vectors[0] @ vectors[1], progress=False)
    assert len(ranked.rows) == LAYERS * H
