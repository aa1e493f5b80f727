"""A Swin Transformer when watched, stored and given what is no picture; its numbers are compared beside its table."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.errors import ModelError, ShapeError
from regard.layers.windows import number_cells
from regard.models import SwinConfig, store
from regard.models.kinds import kind_of
from regard.trace.record.layer import Layer

SIZES = {"image_height": 12, "image_width": 18, "patch_size": 2, "width": 6, "channels": 1, "labels": 5}
STAGES = {"depths": (2, 1), "heads": (2, 3), "window": 3}


def make(**options):
    torch.manual_seed(0)
    return SwinConfig(**SIZES | STAGES | options).build().eval()


def test_a_watch_is_verified_at_every_stage_and_says_that_maps_are_parts_of_the_picture():
    model = make()
    with torch.no_grad(), regard.watch(model) as trace:
        model(torch.randn(4, 1, 12, 18))
    assert {proof.status for proof in trace.verify()} == {"verified"}
    assert not trace.missed
    assert {layer.name: tuple(layer.weights.shape) for layer in trace.layers} == {
        "stages.0.blocks.0.attention": (4 * 6, 2, 9, 9),
        "stages.0.blocks.1.attention": (4 * 6, 2, 9, 9),
        "stages.1.blocks.0.attention": (4 * 2, 3, 9, 9),  # 3 × 5 cells: a window, and one that is filled up
    }
    shifted = trace.layers[1].weights.dense().unflatten(0, (4, 6))
    cells = number_cells(6, 9, 3, 1)
    assert cells[-1].tolist() == [4 * 9 + 7, 4 * 9 + 8, 4 * 9, 5 * 9 + 7, 5 * 9 + 8, 5 * 9, 7, 8, 0]
    assert shifted[:, -1, :, -1].tolist() == torch.eye(9)[-1].expand(4, 2, 9).tolist()  # the first cell is alone there


@pytest.mark.skipif(not hasattr(Layer, "whole"), reason="runs where a trace puts windows back (Layer.whole)")
@pytest.mark.parametrize("size", [(24, 36), (20, 30)])
@pytest.mark.parametrize("sees_padding", [True, False])
def test_windows_go_back_onto_the_picture_at_every_stage(size, sees_padding):
    model = make(depths=(2, 2), sees_padding=sees_padding)
    with torch.no_grad(), regard.watch(model) as trace:
        model(torch.randn(2, 1, *size))
    for stage in range(2):
        rows, columns = (-(-side // 2 ** (stage + 1)) for side in size)
        for block in range(2):
            layer = trace.layers[2 * stage + block]
            dense, cells = layer.weights.dense().unflatten(0, (2, -1)), number_cells(rows, columns, 3, block)
            whole = torch.zeros(2, layer.heads, rows * columns, rows * columns)
            for window, numbers in enumerate(cells):
                there = numbers >= 0
                at = numbers[there]
                whole[:, :, at[:, None], at] = dense[:, window][:, :, there][..., there]
            assert_close(layer.whole().weights.dense()[..., : rows * columns], whole)


def test_a_shifted_window_sees_nothing_of_the_other_side():
    model = make(depths=(2,), heads=(2,))
    x = torch.randn(1, 1, 12, 18, requires_grad=True)
    block = model.stages[0].blocks[1]
    cells = torch.randn(1, 6, 9, 6, requires_grad=True)
    block(cells)[0, 0, 0].sum().backward()
    seen = {(y, z) for y, z in (cells.grad[0].abs().sum(-1) > 0).nonzero().tolist()}
    assert seen == {(0, 0)}  # shifted by one: the corner is alone
    assert model(x).shape == (1, 5)


@pytest.mark.parametrize("size", [(12, 18), (7, 31), (2, 2), (1, 1)])
def test_pictures_of_any_size_are_read(size):
    with torch.no_grad():
        assert make()(torch.randn(3, 1, *size)).isfinite().all()


def test_it_is_stored_and_read_and_lies_about_its_stages_are_refused(tmp_path):
    model = make(absolute=True)
    store.write(tmp_path, model, model.config, {})
    again = store.read(tmp_path)
    assert kind_of(again).name == "swin"
    assert again.config == model.config
    x = torch.randn(2, 1, 12, 18)
    with torch.no_grad():
        assert_close(again(x), model(x), rtol=0, atol=0)
    manifest = tmp_path / store.MANIFEST
    text = manifest.read_text()
    for lie, said in (("[\n   2,\n   999999999\n  ]", "speaks of"), ('["x"]', "its depths is")):
        told = text.replace('"depths": [\n   2,\n   1\n  ]', f'"depths": {lie}')
        assert told != text
        manifest.write_text(told)
        with pytest.raises(ModelError, match=said):
            store.read(tmp_path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"depths": ()}, "at least one stage"),
        ({"depths": (2, 1, 1)}, "at least one stage"),
        ({"heads": (4, 3)}, "width 6 does not split into 4"),
        ({"head": "boxes"}, "head is 'boxes'"),
        ({"mlp_ratio": 0.1}, "leaves no channels"),
    ],
)
def test_what_cannot_be_is_refused(options, said):
    with pytest.raises((ShapeError, ValueError), match=said):
        make(**options)
