"""A recurrent classifier: against torch's cells in a plain loop over each text, its map by the formula, and stored."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import regard
from regard.errors import ShapeError
from regard.models import RecurrentClassifier, RecurrentClassifierConfig, store
from regard.models.kinds import kind_of

V, M, B, T, CLASSES = 23, 14, 4, 9, 3
LENGTHS = [T, 4, 7, 1]


def make(cell="lstm", layers=1):
    model = RecurrentClassifierConfig(V, M, layers=layers, cell=cell, labels=CLASSES, context=17).build()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.double().eval()


def draw_batch():
    ids = torch.randint(4, V, (B, T))
    for row, length in enumerate(LENGTHS):
        ids[row, length:] = 0
    return ids


def read_one_way(rnn, cell, suffix, vectors):
    """The state after each vector, by torch's cell of one step."""
    kind = {"lstm": nn.LSTMCell, "gru": nn.GRUCell}[cell]
    step = kind(vectors.shape[1], M // 2).double()
    step.load_state_dict({name: getattr(rnn, f"{name}_l0{suffix}") for name in step.state_dict()})
    state, states = None, []
    for vector in vectors:
        state = step(vector[None], state)
        states.append((state[0] if cell == "lstm" else state)[0])
    return torch.stack(states)


def read_text(model, cell, ids):
    """States, shares and logits of one text without padding (Yang et al. 2016, eqs. 5 to 8)."""
    vectors = model.embed.weight[ids]
    there = read_one_way(model.encoder.rnn, cell, "", vectors)
    back = read_one_way(model.encoder.rnn, cell, "_reverse", vectors.flip(0)).flip(0)
    states = torch.cat([there, back], 1)
    pooling = model.pooling
    scores = [pooling.query @ torch.tanh(pooling.to_k.weight @ state + pooling.to_k.bias) for state in states]
    powers = [score.exp() for score in scores]
    shares = torch.stack([power / sum(powers) for power in powers])
    vector = sum(share * state for share, state in zip(shares, states))
    dense = torch.tanh(model.dense.weight @ vector + model.dense.bias)
    return states, shares, model.classifier.weight @ dense + model.classifier.bias


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@torch.no_grad()
def test_a_padded_batch_gives_what_a_loop_over_each_text_gives(cell):
    model, ids = make(cell), draw_batch()
    found, states = model(ids), model.hidden(ids)
    assert found.shape == (B, CLASSES)
    for row, length in enumerate(LENGTHS):
        wanted, _, logits = read_text(model, cell, ids[row, :length])
        assert_close(states[row, :length], wanted, rtol=1e-10, atol=1e-10)
        assert_close(found[row], logits, rtol=1e-10, atol=1e-10)
    other = torch.where(ids == 0, 5, ids)
    assert_close(model(other, lengths=LENGTHS), found, rtol=1e-10, atol=1e-10)


@torch.no_grad()
def test_the_map_of_the_pooling_is_heard_with_its_shares():
    model, ids = make(layers=2), draw_batch()[:1]
    names = [f"word {at}" for at in range(T)]
    with regard.watch(model, names) as trace:
        model(ids)
    assert [layer.name for layer in trace.layers] == ["pooling"]
    assert trace.verify()
    assert trace["pooling"].keys[0].shown == tuple(names)
    one = make()
    with regard.watch(one) as trace:
        one(ids)
    assert_close(trace["pooling"].weights[0, 0, 0], read_text(one, "lstm", ids[0])[1], rtol=1e-10, atol=1e-10)


def test_gradients_reach_every_parameter():
    model = make().train()
    model(draw_batch()).log_softmax(-1)[:, 1].sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


def test_a_folder_of_ours_keeps_it(tmp_path):
    model = make("gru").float()
    store.write(tmp_path, model, model.config, {})
    again = store.read(tmp_path)
    assert isinstance(again, RecurrentClassifier)
    assert again.config == model.config
    assert kind_of(again).name == "recurrent_classifier"
    ids = draw_batch()
    assert_close(again(ids), model(ids), rtol=0, atol=0)


def test_what_it_cannot_read_is_refused():
    with pytest.raises(ShapeError, match="width is 7, but two directions have half of it each"):
        RecurrentClassifierConfig(V, 7).build()
    with pytest.raises(ShapeError, match="came with 18 tokens, but this model reads at most 17"):
        make()(torch.full((2, 18), 5))
