"""Classes of texts: each pooling against loops over single texts, its map against softmax by hand, and stored."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import regard
from regard.errors import ModelError
from regard.models import TextClassifier, TextClassifierConfig, store
from regard.models.kinds import kind_of

V, M, H, LAYERS, HIDDEN, B, T, CLASSES = 23, 12, 3, 2, 20, 5, 9, 4
LENGTHS = [T, 4, 7, 1, 2]
POOLINGS = ("attention", "mean", "max", "cls")


def make(**options):
    model = TextClassifierConfig(V, M, H, LAYERS, context=17, hidden=HIDDEN, labels=CLASSES, **options).build()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.double().eval()


def draw_batch(pad=0):
    ids = torch.randint(4, V, (B, T))
    for row, length in enumerate(LENGTHS):
        ids[row, length:] = pad
    return ids


def shares_of(model, states):
    """What the query of the pooling takes of each token, by the formula (Yang et al. 2016, eqs. 5 and 6)."""
    pooling = model.pooling
    scores = [float(pooling.query @ torch.tanh(pooling.to_k.weight @ state + pooling.to_k.bias)) for state in states]
    powers = [torch.tensor(score, dtype=torch.float64).exp() for score in scores]
    return torch.stack([power / sum(powers) for power in powers])


@pytest.mark.parametrize("pooling", POOLINGS)
@torch.no_grad()
def test_logits_of_a_padded_batch_are_those_of_the_states_of_each_text(pooling):
    model = make(pooling=pooling)
    ids = draw_batch()
    found = model(ids)
    assert found.shape == (B, CLASSES)
    for row, length in enumerate(LENGTHS):
        states = model.hidden(ids[row : row + 1, :length])[0]
        vector = {"mean": states.mean(0), "cls": states[0], "max": states.max(0).values}.get(pooling)
        if vector is None:
            vector = sum(share * state for share, state in zip(shares_of(model, states), states))
        assert_close(found[row], model.classifier.weight @ vector + model.classifier.bias, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("pooling", POOLINGS)
@torch.no_grad()
def test_lengths_say_what_is_padding_where_the_ids_do_not(pooling):
    model = make(pooling=pooling)
    ids = draw_batch()
    other = torch.where(ids == 0, 5, ids)
    assert_close(model(other, lengths=LENGTHS), model(ids), rtol=1e-10, atol=1e-10)
    if pooling != "cls":
        assert (model(other) - model(ids)).abs().max() > 1e-3


@torch.no_grad()
def test_the_map_of_the_pooling_is_heard_with_its_shares():
    model = make()
    ids = draw_batch()[:1]
    names = [f"word {at}" for at in range(T)]
    with regard.watch(model, names) as trace:
        model(ids)
    assert [layer.name for layer in trace.layers] == ["blocks.0.attention", "blocks.1.attention", "pooling"]
    layer = trace["pooling"]
    assert layer.weights.shape == (1, 1, 1, T)
    assert_close(layer.weights[0, 0, 0], shares_of(model, model.hidden(ids)[0]), rtol=1e-10, atol=1e-10)
    assert layer.keys[0].shown == tuple(names)


def test_before_training_every_token_counts_the_same():
    model = TextClassifierConfig(V, M, H, LAYERS, labels=3).build().double().eval()
    other = TextClassifierConfig(V, M, H, LAYERS, labels=3, pooling="mean").build().double().eval()
    other.load_state_dict({name: x for name, x in model.state_dict().items() if not name.startswith("pooling")})
    ids = draw_batch()
    assert_close(model(ids), other(ids))


def test_gradients_reach_every_parameter():
    for pooling in POOLINGS:
        model = make(pooling=pooling).train()
        model(draw_batch()).log_softmax(-1)[:, 1].sum().backward()
        assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


def test_a_folder_of_ours_keeps_it(tmp_path):
    model = make(pooling="attention").float()
    store.write(tmp_path, model, model.config, {})
    again = store.read(tmp_path)
    assert isinstance(again, TextClassifier)
    assert again.config == model.config
    assert kind_of(again).name == "classifier"
    ids = draw_batch()
    assert_close(again(ids), model(ids), rtol=0, atol=0)


def test_what_is_no_classifier_is_refused():
    with pytest.raises(ValueError, match="pooling is 'sum'; choose one of 'attention', 'mean', 'cls', 'max'"):
        make(pooling="sum")
    with pytest.raises(ModelError, match="head is 'tags', but a text classifier has its own"):
        make(head="tags")
