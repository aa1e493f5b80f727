"""Joined weights: the parameters of a model stay what they are, and what is written into them shows."""

import copy

import pytest
import torch
from torch.testing import assert_close

from regard.models import store
from regard.models.lean.joined import join_weights
from tests.models.causal_models import CONFIGS, HIDDEN, LAYERS, M, draw_ids, shaken


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def model(request):
    return shaken(request.param.build())


def test_parameters_keep_identity_names_and_numbers(model):
    before = {name: (parameter, parameter.detach().clone()) for name, parameter in model.named_parameters()}
    ids = draw_ids(2, 9)
    wanted = model(ids)
    joined = join_weights(model)
    assert len(joined.layers) == LAYERS
    after = dict(model.named_parameters())
    assert list(before) == list(after)
    for name, (parameter, numbers) in before.items():
        assert after[name] is parameter
        assert torch.equal(parameter, numbers)
    assert torch.equal(model(ids), wanted)


def test_joined_matrices_are_the_parameters_one_after_the_other(model):
    joined = join_weights(model)
    for block, layer in zip(model.blocks, joined.layers, strict=True):
        attention, network = block.attention, getattr(block, "feed_forward", None)
        rows = torch.cat([attention.to_q.weight, attention.to_k.weight, attention.to_v.weight])
        assert torch.equal(layer.qkv.weight, rows)
        assert layer.qkv.weight.data_ptr() == attention.to_q.weight.data_ptr()
        assert layer.qkv.weight.is_contiguous()
        if network is not None:
            ways = [one.weight for one in (network.to_gate, network.to_hidden) if one is not None]
            assert torch.equal(layer.gate_up.weight, torch.cat(ways))
            assert layer.down.weight.shape == (M, HIDDEN)
        if attention.to_q.bias is not None:
            biases = [attention.to_q.bias, attention.to_k.bias, attention.to_v.bias]
            assert torch.equal(layer.qkv.bias, torch.cat(biases))


def test_what_is_written_into_a_parameter_shows_and_joining_again_moves_nothing(model):
    first = join_weights(model)
    places = [parameter.data_ptr() for parameter in model.parameters()]
    model.load_state_dict({name: tensor + 1 for name, tensor in model.state_dict().items()})
    block = model.blocks[1].attention
    assert torch.equal(first.layers[1].qkv.weight[:24][-3:], block.to_q.weight[:24][-3:])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(draw_ids(2, 5)).sum().backward()
    optimizer.step()
    again = join_weights(model)
    assert torch.equal(again.layers[1].qkv.weight, first.layers[1].qkv.weight)
    assert [parameter.data_ptr() for parameter in model.parameters()] == places


def test_a_model_that_was_cast_copied_or_stored_is_joined_anew(model, tmp_path):
    ids = draw_ids(2, 7)
    join_weights(model)
    copied = copy.deepcopy(model)
    assert torch.equal(join_weights(copied).layers[0].qkv.weight, join_weights(model).layers[0].qkv.weight)
    assert copied.embed.weight.data_ptr() != model.embed.weight.data_ptr()
    copied.float()
    assert join_weights(copied).layers[0].qkv.weight.dtype is torch.float32
    assert_close(copied(ids), model(ids).float(), rtol=1e-3, atol=1e-3)
    store.write(tmp_path, copied, copied.config, {})
    assert torch.equal(store.read(tmp_path)(ids), copied(ids))
