"""What every decoder-only model does: caches, rows of different lengths, windows, and what it refuses."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.models.causal_inputs import pad_left
from tests.models.causal_models import CONFIGS, LAYERS, V, draw_ids, shaken

ROWS = [[3, 1, 4, 1, 5, 9, 2, 6], [5, 3], [8, 9, 7, 9, 3]]


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def model(request):
    return shaken(request.param.build())


def exactly(steps):
    return regard.Limits(longest=steps, end=None, never=())


@torch.no_grad()
def test_reading_with_a_cache_equals_one_pass_over_the_text(model):
    ids = draw_ids(4, 17)
    cache = model.make_cache()
    parts = [model(part, cache) for part in ids.split([7, 1, 1, 5, 3], 1)]
    assert_close(torch.cat(parts, 1), model(ids))
    assert [one.seen for one in cache] == [17] * LAYERS


@torch.no_grad()
def test_a_row_in_a_padded_batch_gives_what_it_gives_alone(model):
    batch, left = pad_left(ROWS)
    together = model(batch, left_padding=left)
    after = draw_ids(3, 9)
    cache = model.make_cache()
    model(batch, cache, left_padding=left)
    later = [model(part, cache, left_padding=left) for part in after.split([1, 4, 1, 3], 1)]
    for row, ids in enumerate(ROWS):
        whole = torch.tensor([[*ids, *after[row].tolist()]])
        alone = model(whole)[0]
        assert_close(together[row, -len(ids) :], alone[: len(ids)])
        assert_close(torch.cat(later, 1)[row], alone[len(ids) :])


@torch.no_grad()
@pytest.mark.parametrize("way", [regard.greedy, regard.sample, regard.beam])
def test_a_batch_of_prompts_says_what_each_says_alone(model, way):
    options = {"generator": [torch.Generator().manual_seed(seed) for seed in range(3)]} if way is regard.sample else {}
    together = way(model.begin(ROWS), 3, limits=exactly(7), **options)
    for row, ids in enumerate(ROWS):
        options = {"generator": torch.Generator().manual_seed(row)} if way is regard.sample else {}
        [alone] = way(model.begin([ids]), 1, limits=exactly(7), **options)
        mine, right = (one[0] if isinstance(one, list) else one for one in (together[row], alone))
        assert mine.ids == right.ids
        assert mine.score == pytest.approx(right.score)


def test_rows_that_are_none_are_refused_in_words():
    model = CONFIGS["llama"].build()
    for prompt, sentence in (
        ([], "a prompt of nothing came"),
        ([[3, 1], []], "row 1 of the prompt has no token to begin with"),
        ([torch.ones(1, 2, dtype=torch.long)], r"a prompt of \(1, 2\) came, wanted a list of rows"),
        ([[3, V]], f"an id is {V}, but this model knows {V} tokens"),
    ):
        with pytest.raises(regard.errors.ShapeError, match=sentence):
            model.begin(prompt)
    ids = draw_ids(2, 5)
    for left, sentence in (
        (torch.tensor([1]), r"left_padding came as torch.int64 of shape \(1,\), wanted one whole number"),
        (torch.tensor([0.0, 1.0]), "left_padding came as torch.float32"),
        (torch.tensor([0, 5]), "left_padding is 5 for a row of 5 tokens; give 0 to 4"),
        (torch.tensor([-1, 0]), "left_padding is -1"),
    ):
        with pytest.raises(regard.errors.ShapeError, match=sentence):
            model(ids, left_padding=left)


def test_engines_and_windows_that_cannot_be_are_refused_in_words():
    model, prompt = CONFIGS["llama"].build(), draw_ids(2, 5)
    with pytest.raises(regard.errors.ConfigError, match="engine is 'quick'; choose one of 'plain'"):
        model.begin(prompt, engine="quick")
    for options in ({"window": 0}, {"sinks": 2}, {"window": 3, "sinks": -1}):
        with pytest.raises(regard.errors.ConfigError, match="they count tokens; give a window of 1 or more"):
            model.begin(prompt, **options)
    with pytest.raises(regard.errors.PositionError, match="the learned positions of this model end at 40"):
        CONFIGS["gpt2"].build().begin(prompt, window=3)
    with pytest.raises(regard.errors.ShapeError, match="2 sinks came with prompts of different lengths"):
        model.begin(ROWS, window=3, sinks=2)
    with pytest.raises(ValueError, match="rope_scaling is 'yarn'; choose one of 'none', 'linear', 'llama3'"):
        type(model.config)(**{**vars(model.config), "rope_scaling": "yarn"}).build()


def test_every_kind_is_stored_and_read_back(model, tmp_path):
    from regard.models import store

    store.write(tmp_path / "one", model.float(), model.config, {})
    again = store.read(tmp_path / "one")
    assert type(again) is type(model)
    assert again.config == model.config
    ids = draw_ids(2, 7)
    assert torch.equal(again(ids), model(ids))
