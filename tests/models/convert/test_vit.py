"""ViT, DeiT and DINOv2 of another library: the same answers, the same tensors back, and folders that it reads."""

import json

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch.testing import assert_close

import regard
from regard.errors import ModelError, ShapeError
from regard.models import Vit
from regard.models.convert import convert_config, export_config, from_transformers, to_transformers
from regard.models.convert.families import find_table
from tests.models.convert.common import ERROR, must_be_same, shaken

SIZES = {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2, "num_channels": 2, "num_labels": 5}
GRID = {"image_size": [15, 20], "patch_size": 5}
ARCHITECTURES = {
    "vit": ("ViTModel", "ViTForImageClassification"),
    "deit": ("DeiTModel", "DeiTForImageClassification", "DeiTForImageClassificationWithTeacher"),
    "dinov2": ("Dinov2Model", "Dinov2ForImageClassification"),
}
ALL = [(family, name) for family, names in ARCHITECTURES.items() for name in names]


def make(family, architecture, **options):
    """A model of theirs with weights far from where they start; DINOv2 always interpolates, so its grid is square."""
    made = {"vit": transformers.ViTConfig, "deit": transformers.DeiTConfig, "dinov2": transformers.Dinov2Config}[family]
    hidden = {} if family == "dinov2" else {"intermediate_size": 28}
    grid = {"image_size": 15, "patch_size": 5} if family == "dinov2" else GRID
    theirs = shaken(getattr(transformers, architecture)(made(**SIZES | grid | hidden | options)))
    theirs.config.architectures = [architecture]
    return theirs


def picture(theirs, b=4, *, more=0):
    size = theirs.config.image_size
    height, width = size if isinstance(size, list | tuple) else (size, size)
    patch, dtype = theirs.config.patch_size, next(theirs.parameters()).dtype
    return torch.randn(b, theirs.config.num_channels, height + more * patch, width + 2 * more * patch, dtype=dtype)


@torch.no_grad()
def run(theirs, pixels, **options):
    out = theirs(pixel_values=pixels, **options)
    return out.logits if "logits" in out else out.last_hidden_state


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@settings(max_examples=8)
@given(
    which=st.sampled_from(ALL),
    head=st.integers(1, 5),
    patch=st.integers(1, 5),
    rows=st.integers(1, 4),
    options=st.fixed_dictionaries(
        {
            "num_attention_heads": st.integers(1, 4),
            "num_hidden_layers": st.integers(1, 3),
            "num_channels": st.integers(1, 4),
            "num_labels": st.integers(1, 7),
            "hidden_act": st.sampled_from(["gelu", "gelu_new", "relu"]),
            "qkv_bias": st.booleans(),
            "layer_norm_eps": st.sampled_from([1e-12, 1e-5]),
        }
    ),
)
def test_answers_equal_those_of_transformers_whatever_the_config(dtype, which, head, patch, rows, options):
    family, architecture = which
    grid = {"image_size": rows * patch if family == "dinov2" else [rows * patch, 3 * patch], "patch_size": patch}
    own = {"mlp_ratio": 3} if family == "dinov2" else {"intermediate_size": 17}
    width = head * options["num_attention_heads"]
    theirs = make(family, architecture, hidden_size=width, **grid | own | options).to(dtype)
    ours = from_transformers(theirs.config.to_dict(), theirs.state_dict())
    pixels = picture(theirs, 3)
    with torch.no_grad():
        assert_close(ours(pixels), run(theirs, pixels), rtol=ERROR[dtype], atol=ERROR[dtype])


@pytest.mark.parametrize(("family", "architecture"), ALL)
def test_folders_open_and_come_back(family, architecture, tmp_path):
    theirs = make(family, architecture)
    theirs.save_pretrained(tmp_path / "theirs")
    ours, tokenizer = regard.open_model(tmp_path / "theirs")
    assert isinstance(ours, Vit)
    assert tokenizer is None
    pixels = picture(theirs)
    with torch.no_grad():
        assert_close(ours(pixels), run(theirs, pixels), rtol=1e-4, atol=1e-4)
    must_be_same(from_transformers(theirs.config.to_dict(), theirs.state_dict()).state_dict(), ours.state_dict())
    to_transformers(ours, tmp_path / "ours")
    again, info = getattr(transformers, architecture).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["unexpected_keys"]
    assert all("mask_token" in name for name in info["missing_keys"])
    assert_close(run(again.eval(), pixels), run(theirs, pixels), rtol=0, atol=0)
    stored = load_file(tmp_path / "theirs" / "model.safetensors")
    must_be_same(
        load_file(tmp_path / "ours" / "model.safetensors"),
        {name: tensor for name, tensor in stored.items() if "mask_token" not in name},
    )


@pytest.mark.parametrize("more", [1, -1])
@pytest.mark.parametrize("family", ARCHITECTURES)
def test_positions_are_interpolated_to_pictures_of_other_sizes(family, more):
    theirs = make(family, ARCHITECTURES[family][-1], image_size=15).double()
    ours = from_transformers(theirs.config.to_dict(), theirs.state_dict())
    pixels = picture(theirs, more=max(0, more))[..., : 15 + 5 * more, :]
    options = {} if family == "dinov2" else {"interpolate_pos_encoding": True}
    error = 1e-5 if family == "dinov2" else 1e-9  # theirs interpolates in float32
    with torch.no_grad():
        assert_close(ours(pixels), run(theirs, pixels, **options), rtol=error, atol=error)


def test_the_pooler_of_a_body_is_the_same():
    theirs = make("vit", "ViTModel")
    ours = from_transformers(theirs.config.to_dict(), theirs.state_dict())
    pixels = picture(theirs)
    with torch.no_grad():
        assert_close(ours.pool(ours(pixels)), theirs(pixels).pooler_output, rtol=1e-5, atol=1e-5)
        bare = from_transformers(
            theirs.config.to_dict(), {k: v for k, v in theirs.state_dict().items() if "pool" not in k}
        )
        assert_close(bare(pixels), ours(pixels), rtol=0, atol=0)
    with pytest.raises(ShapeError, match="no pooler"):
        bare.pool(bare(pixels))


@pytest.mark.parametrize("width", [12, 24])
def test_the_gated_network_of_a_giant_is_the_same(width, tmp_path):
    theirs = make("dinov2", "Dinov2ForImageClassification", hidden_size=width, use_swiglu_ffn=True, mlp_ratio=3)
    theirs.save_pretrained(tmp_path)
    pixels = picture(theirs)
    for ours in (regard.open_model(tmp_path)[0], from_transformers(theirs.config.to_dict(), theirs.state_dict())):
        with torch.no_grad():
            assert_close(ours(pixels), run(theirs, pixels), rtol=1e-4, atol=1e-4)
    back = export_config("dinov2", ours.config)
    assert (back["use_swiglu_ffn"], convert_config("dinov2", back)) == (True, ours.config)


def test_what_ours_cannot_be_is_refused_by_name():
    theirs = make("vit", "ViTForImageClassification")
    config, state = theirs.config.to_dict(), theirs.state_dict()
    for change, said in (
        ({"patch_size": [5, 4]}, "patches of 5 × 4 pixels, but ours are square"),
        ({"image_size": "big"}, "image_size='big'"),
        ({"image_size": [16, 20]}, "do not split into patches of 5"),
        ({"hidden_act": "selu"}, "hidden_act='selu'"),
        ({"surprise": 3}, "surprise=3, which the table of 'vit' does not know"),
        ({"architectures": ["ViTForMaskedImageModeling"]}, "architecture='ViTForMaskedImageModeling'"),
    ):
        with pytest.raises(ModelError, match=said):
            from_transformers(config | change, state)
    with pytest.raises(ModelError, match=r"lack 1 tensors .* 'vit\.embeddings\.cls_token'"):
        from_transformers(config, {name: one for name, one in state.items() if "cls_token" not in name})
    assert find_table("deit").family == "deit"
    assert json.dumps(export_config("vit", from_transformers(config, state).config))
