"""The engine "fast" of a Llama: chosen where it is right, and left where somebody wants to see the modules."""

from copy import deepcopy

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.errors import ConfigError
from regard.models.fast.engine import ENGINE
from tests.models.causal_models import CONFIGS, draw_ids, shaken

pytest.importorskip("numba", reason="needs numba: pip install 'regard[fast]'")
from regard.models.fast.model_state import FastModelState


def build(name="llama"):
    return deepcopy(shaken(CONFIGS[name].build())).float()


@torch.no_grad()
def test_it_writes_what_the_modules_write():
    model, ids = build(), draw_ids(3, 7)
    limits = regard.Limits(longest=9, end=None, never=())
    fast, plain = (regard.greedy(model.begin(ids, engine=name), 3, limits=limits) for name in ("fast", "plain"))
    assert [one.ids for one in fast] == [one.ids for one in plain]
    fast, plain = (regard.beam(model.begin(ids, engine=name), 3, limits=limits) for name in ("fast", "plain"))
    assert [[one.ids for one in row] for row in fast] == [[one.ids for one in row] for row in plain]


@pytest.mark.parametrize("name", ["llama", "mistral"])
@torch.no_grad()
def test_who_begins_to_watch_in_the_middle_sees_the_modules_go_on(name):
    model, ids = build(name), draw_ids(2, 12)
    state, plain = (model.begin(ids[:, :9], engine=name) for name in ("fast", "plain"))
    for part in (ids[:, :9], ids[:, 9:10]):
        assert_close(state(part), plain(part), rtol=1e-4, atol=1e-4)
    state.reorder(torch.tensor([1, 0, 1]))
    plain.reorder(torch.tensor([1, 0, 1]))
    with regard.watch(model) as trace:
        logits = state(ids[[1, 0, 1], 10:11])
    assert_close(logits, plain(ids[[1, 0, 1], 10:11]), rtol=1e-4, atol=1e-4)
    assert len(trace.layers) == len(model.blocks)
    assert state.seen == 11


def test_it_says_what_it_cannot_compute():
    model = build()
    assert ENGINE.find_obstacle(model) is None
    assert ENGINE.find_obstacle(model.double()) == "its weights are not all float32"
    assert ENGINE.find_obstacle(build("gpt2")) == "it computes a Llama, and this is a Gpt2"
    assert ENGINE.find_obstacle(build().train()) == "the model is in training mode"
    with pytest.raises(ConfigError, match="the engine 'fast' cannot be used: it computes a Llama, and this is a GPT"):
        build("gpt rotary").begin(draw_ids(1, 2), engine="fast")


def test_steps_may_stand_inside_and_outside_of_inference_mode():
    model, ids = build(), draw_ids(2, 140)
    with torch.no_grad():
        expected = model(ids)
    with torch.inference_mode():
        state = model.begin(ids[:, :130], engine="fast")
    for start, stop, mode in ((0, 130, False), (130, 131, True), (131, 139, False), (139, 140, True)):
        with torch.no_grad(), torch.inference_mode(mode):
            logits = state(ids[:, start:stop])
        assert_close(logits, expected[:, stop - 1], rtol=1e-4, atol=1e-4)
        state.reorder(torch.tensor([0, 1]))


@torch.no_grad()
def test_a_window_with_sinks_is_left_to_the_lean_engine():
    model, ids = build(), draw_ids(1, 30)
    states = [model.begin(ids, window=5, sinks=2, engine=name) for name in ("fast", "plain")]
    assert not isinstance(states[0], FastModelState)
    fast, plain = (state(ids) for state in states)
    assert_close(fast, plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["llama", "mistral"])
@torch.no_grad()
def test_a_long_prompt_is_read_by_torch_and_gone_on_from(name):
    model = build(name)
    prompt = [draw_ids(1, length, seed=length)[0] for length in (139, 150)]
    state, plain = (model.begin(prompt, engine=engine) for engine in ("fast", "plain"))
    for _ in range(2):
        assert_close(state(state.take_prompt(2, 9)), plain(plain.take_prompt(2, 9)), rtol=1e-4, atol=1e-4)
        for at in range(3):
            ids = draw_ids(2, 1, seed=at)
            assert_close(state(ids), plain(ids), rtol=1e-4, atol=1e-4)
        state.crop(0)
        plain = model.begin(prompt, engine="plain")
