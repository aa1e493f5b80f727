"""Maps of windows are not taken for maps of the whole picture; those of the whole keep their grid."""

import pytest
import torch
from torch import nn

from regard.tokens import patches
from regard.trace.record.findings import LayerState
from regard.trace.watch import watch

SWIN = {"image_size": 56, "patch_size": 4, "embed_dim": 12, "depths": [2, 2], "num_heads": [2, 3], "window_size": 7}
SMALL = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3}
SAM = {"image_size": 64, "patch_size": 4, "window_size": 7, "global_attn_indexes": [1], "num_pos_feats": 6}
HIERA = {"image_size": [64, 64], "embed_dim": 12, "depths": [1, 1, 1], "num_heads": [1, 2, 4]}
HIERA |= {"num_query_pool": 2, "masked_unit_size": [4, 4], "masked_unit_attention": [True, True, False]}


class Blocks(nn.Module):
    """As in MaxViT: first within blocks of 4 × 4 patches, then over a coarse grid of one patch from each block."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, 12, 4, stride=4)
        self.near, self.far = (nn.MultiheadAttention(12, 2, batch_first=True) for _ in range(2))

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        x = self.cut(pixel_values)  # b c 8 12
        b, c, rows, columns = x.shape
        blocks = x.reshape(b, c, rows // 4, 4, columns // 4, 4)
        x = blocks.permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, c)
        x = self.near(x, x, x)[0]
        x = x.reshape(b, rows * columns // 16, 16, c).transpose(1, 2).reshape(-1, rows * columns // 16, c)
        return self.far(x, x, x)[0]


def seen(model, height, width, images=2, tokens=None):
    torch.manual_seed(0)
    with torch.no_grad(), watch(model.eval(), tokens) as trace:
        model(torch.randn(images, 3, height, width))
    return [
        (
            layer.weights.shape[0],
            layer.queries[0].grid if layer.queries else None,
            LayerState.PARTS_OF_PICTURE in layer.states,
        )
        for layer in trace.layers
    ]


@pytest.fixture(scope="module")
def t():
    return pytest.importorskip("transformers")


@pytest.mark.parametrize("images", [1, 3])
def test_windows_of_swin_have_no_place_on_the_picture_until_one_window_is_all_of_it(t, images):
    for made in (t.SwinModel(t.SwinConfig(**SWIN)), t.Swinv2Model(t.Swinv2Config(**SWIN))):
        parts, whole = (4 * images, None, True), (images, (7, 7), False)
        assert seen(made, 56, 56, images) == [parts, parts, whole, whole]


def test_windows_beside_layers_that_see_all_as_in_sam(t):
    model = t.SamVisionModel(t.SamVisionConfig(**SMALL, **SAM, output_channels=8, mlp_dim=9))
    assert seen(model, 64, 64) == [(18, None, True), (2, (16, 16), False)]


def test_blocks_and_coarse_grids_as_in_maxvit():
    assert seen(Blocks(), 32, 48) == [(12, None, True), (32, None, True)]


def test_windows_that_stand_on_the_axis_of_heads_as_in_hiera(t):
    found = seen(t.HieraModel(t.HieraConfig(**HIERA, query_stride=[2, 2])), 64, 64)
    assert [(grid, note) for _, grid, note in found] == [(None, True)] * 3


def test_names_that_were_given_stay_but_the_windows_are_told(t):
    found = seen(t.SwinModel(t.SwinConfig(**SWIN)), 56, 56, tokens=patches(7, 7))
    assert [note for _, _, note in found] == [True, True, False, False]


@pytest.mark.parametrize("images", [1, 3])
def test_a_plain_vision_transformer_keeps_its_grid(t, images):
    vit = t.ViTModel(t.ViTConfig(**SMALL, image_size=56, patch_size=8, intermediate_size=7))
    assert seen(vit, 56, 56, images) == [(images, (7, 7), False)] * 2
    more = t.Dinov2WithRegistersConfig(**SMALL, image_size=56, patch_size=14, num_register_tokens=4)
    assert seen(t.Dinov2WithRegistersModel(more), 56, 56, images) == [(images, (4, 4), False)] * 2
