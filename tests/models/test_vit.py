"""A Vision Transformer against one put together from torch's own layers, and what a watch says of its patches."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import regard
from regard.errors import DtypeError, ShapeError
from regard.models import VitConfig, store
from regard.models.kinds import kind_of
from regard.positions.grid import SIDE, LearnedGrid, RotaryGrid, SinusoidGrid, grid_places
from tests.models.convert.common import shaken

SIZES = {"image_height": 8, "image_width": 12, "patch_size": 4, "width": 16, "heads": 2, "layers": 3, "channels": 5}


def picture(b=3, height=8, width=12):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(b, 5, height, width, dtype=torch.float64, generator=generator)


def make(**options):
    torch.manual_seed(0)
    model = VitConfig(**SIZES | {"labels": 7} | options).build().double().eval()
    return shaken(model)


def by_torch(model, x):
    """The same from loops over patches and `nn.TransformerEncoderLayer`, which has no layer scale."""
    one = model.config
    size, kernel = one.patch_size, model.patches.weight.flatten(1)
    cut = [
        x[:, :, r : r + size, c : c + size].flatten(1)
        for r in range(0, x.shape[2], size)
        for c in range(0, x.shape[3], size)
    ]
    tokens = torch.stack([patch @ kernel.T + model.patches.bias for patch in cut], 1)
    if model.cls_token is not None:
        tokens = torch.cat([model.cls_token.expand(len(x), 1, -1), tokens], 1)
    tokens = tokens + model.added.weight
    for block in model.blocks:
        layer = nn.TransformerEncoderLayer(
            one.width, one.heads, block.feed_forward.to_hidden.out_features, 0.0, "gelu", one.norm_eps, True, True
        ).double().eval()  # fmt: skip
        ours = block.attention.to_torch().state_dict()
        layer.self_attn.load_state_dict(ours)
        for theirs, mine in (
            (layer.linear1, block.feed_forward.to_hidden), (layer.linear2, block.feed_forward.to_out),
            (layer.norm1, block.around_attention.norm), (layer.norm2, block.around_feed_forward.norm),
        ):  # fmt: skip
            theirs.load_state_dict(mine.state_dict())
        tokens = layer(tokens)
    return model.norm(tokens)


@pytest.mark.parametrize("pooling", ["cls", "mean", "cls_mean"])
def test_logits_equal_those_of_layers_of_torch(pooling):
    model, x = make(pooling=pooling, cls_token=pooling != "mean", hidden=20), picture()
    hidden = by_torch(model, x)
    patches = hidden if pooling == "mean" else hidden[:, 1:]
    pooled = {"cls": hidden[:, 0], "mean": patches.mean(1), "cls_mean": torch.cat([hidden[:, 0], patches.mean(1)], -1)}
    with torch.no_grad():
        assert_close(model(x), pooled[pooling] @ model.classifier.weight.T + model.classifier.bias)


def test_without_positions_the_order_of_patches_does_not_matter_and_with_any_it_does():
    x, moved = picture(), picture().roll(4, -1)
    for positions in ("none", "learned", "sinusoid", "rotary"):
        model = make(positions=positions)
        with torch.no_grad():
            same = torch.allclose(model(x), model(moved))
        assert same == (positions == "none"), positions


@pytest.mark.parametrize("positions", ["learned", "sinusoid", "rotary"])
def test_pictures_of_other_sizes_are_read(positions):
    with torch.no_grad():
        assert make(positions=positions, registers=2)(picture(2, 20, 4)).shape == (2, 7)


def test_registers_stand_between_and_are_no_patches():
    model = make(registers=2, pooling="mean")
    with torch.no_grad():
        hidden = model.hidden(picture())
        assert hidden.shape == (3, 1 + 2 + 6, 16)
        assert_close(model(picture()), hidden[:, 3:].mean(1) @ model.classifier.weight.T + model.classifier.bias)


def test_layer_scale_multiplies_what_each_sublayer_adds():
    model = make(layer_scale=1.0)
    for block in model.blocks:
        for around in (block.around_attention, block.around_feed_forward):
            nn.init.zeros_(around.scale)
    x = picture()
    with torch.no_grad():
        tokens = torch.cat([model.cls_token.expand(3, 1, -1), model.patches(x).flatten(2).mT], 1) + model.added.weight
        assert_close(model.hidden(x), model.norm(tokens))


@pytest.mark.parametrize("positions", ["learned", "sinusoid", "rotary", "none"])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_watch_is_verified_and_names_patches_by_row_and_column(positions, channels):
    model = make(positions=positions, dist_token=True, registers=1, channels=channels, layer_scale=0.5).float()
    with torch.no_grad(), regard.watch(model) as trace:
        model(torch.randn(2, channels, 12, 8))
    names = ("[CLS]", "[DIST]", "[REG]", *(f"{row},{column}" for row in range(3) for column in range(2)))
    assert [layer.name for layer in trace.layers] == [f"blocks.{i}.attention" for i in range(3)]
    for layer in trace.layers:
        assert layer.queries[1].shown == layer.keys[1].shown == names
        assert layer.queries[1].grid == (3, 2)
    assert {proof.status for proof in trace.verify()} == {"verified"}
    assert not trace.missed


def test_it_is_stored_and_read(tmp_path):
    model = make(positions="rotary", layer_scale=0.1).float()
    store.write(tmp_path, model, model.config, {})
    again = store.read(tmp_path)
    assert kind_of(again).name == "vit"
    assert again.config == model.config
    with torch.no_grad():
        assert_close(again(picture().float()), model(picture().float()), rtol=0, atol=0)


def test_what_is_no_picture_is_refused():
    model = make()
    for x, said in (
        (picture()[0], "with shape \\(5, 8, 12\\), but this model reads \\(b, 5, height, width\\)"),
        (picture()[:, :3], "with shape \\(3, 3, 8, 12\\)"),
        (picture(2, 8, 13), "8 × 13 pixels do not split into patches of 4"),
    ):
        with pytest.raises(ShapeError, match=said):
            model(x)
    with pytest.raises(DtypeError, match="scale the pixels first"):
        model(torch.zeros(1, 5, 8, 12, dtype=torch.uint8))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"image_width": 13}, "8 × 13 pixels do not split into patches of 4"),
        ({"cls_token": False}, "there is no class token"),
        ({"head": "distilled"}, "reads two tokens"),
        ({"registers": -1}, "registers is -1"),
        ({"positions": "alibi"}, "positions is 'alibi'"),
        ({"head": "boxes"}, "head is 'boxes'"),
        ({"width": 12, "positions": "rotary"}, "multiple of 4"),
        ({"labels": 0}, "labels is 0"),
    ],
)
def test_what_cannot_be_is_refused(options, said):
    with pytest.raises((ShapeError, ValueError), match=said):
        VitConfig(**SIZES | {"labels": 7} | options).build()


def test_rotary_scores_depend_on_how_many_rows_and_columns_lie_between_alone():
    generator = torch.Generator().manual_seed(2)
    q, k = torch.randn(2, 8, dtype=torch.float64, generator=generator)
    turn = RotaryGrid(8)

    def score(here, there):
        at = torch.tensor([row * SIDE + column for row, column in (here, there)])
        one, other = turn(torch.stack([q, k]), at)
        return one @ other

    assert_close(score((2, 7), (5, 3)), score((12, 17), (15, 13)))
    assert not torch.isclose(score((2, 7), (5, 3)), score((2, 7), (3, 5)))
    angle = torch.tensor([1.0, 0.1], dtype=torch.float64)  # 100^(−2i/4)
    turned = turn(q[None], torch.tensor([3 * SIDE + 4]))[0]
    for at, by in enumerate(torch.cat([3 * angle, 4 * angle])):
        one, other = q[at], q[at + 4]
        assert_close(turned[at], one * by.cos() - other * by.sin())
        assert_close(turned[at + 4], one * by.sin() + other * by.cos())


def test_tables_say_when_tokens_do_not_fit_the_grid():
    for where in (LearnedGrid(2, 3, 8, before=1), SinusoidGrid(8, before=1)):
        with pytest.raises(
            ShapeError, match="8 tokens came for a grid of 2 × 3 patches and 1 tokens before it; give 7"
        ):
            where(torch.zeros(8, 8), 2, 3)
    assert grid_places(2, 3, before=2).tolist()[:3] == [0, 0, SIDE + 1]
