"""Swin of another library: the same answers for pictures of any size, the same tensors back, and its folders."""

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch.testing import assert_close

import regard
from regard.errors import ModelError
from regard.models import Swin, store
from regard.models.convert import convert_config, export_config, from_transformers, to_transformers
from tests.models.convert.common import ERROR, must_be_same, shaken

SIZES = {"embed_dim": 6, "depths": [2, 3], "num_heads": [2, 3], "window_size": 3, "num_channels": 4, "num_labels": 5}
ARCHITECTURES = ["SwinModel", "SwinForImageClassification"]


def make(architecture, **options):
    config = transformers.SwinConfig(**SIZES | {"image_size": [24, 36], "patch_size": 2} | options)
    theirs = shaken(getattr(transformers, architecture)(config))
    theirs.config.architectures = [architecture]
    return theirs


@torch.no_grad()
def run(theirs, pixels):
    out = theirs(pixel_values=pixels)
    return out.logits if "logits" in out else out.last_hidden_state


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@settings(max_examples=7)
@given(
    architecture=st.sampled_from(ARCHITECTURES),
    head=st.integers(1, 3),
    heads=st.lists(st.integers(1, 3), min_size=3, max_size=3),
    depths=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    window=st.integers(2, 4),
    cells=st.tuples(st.integers(4, 7), st.integers(8, 13)),
    patch=st.integers(1, 3),
    options=st.fixed_dictionaries(
        {
            "num_channels": st.integers(1, 3),
            "num_labels": st.integers(1, 7),
            "hidden_act": st.sampled_from(["gelu", "gelu_new", "relu"]),
            "qkv_bias": st.booleans(),
            "mlp_ratio": st.sampled_from([1.5, 2.0, 4]),
            "layer_norm_eps": st.sampled_from([1e-12, 1e-5]),
        }
    ),
)
def test_answers_equal_those_of_transformers_whatever_the_config(
    dtype, architecture, head, heads, depths, window, cells, patch, options
):
    """Grids that do not split into windows or pairs are among them; of the last stage none is smaller than a window."""
    scale = 2 ** (len(depths) - 1)
    size = [(cells[0] + window) * scale * patch - 1, (cells[1] + window) * scale * patch]
    sizes = {"num_heads": heads[: len(depths)], "embed_dim": 2 * head * 6, "depths": depths, "window_size": window}
    theirs = make(architecture, image_size=size, patch_size=patch, **sizes | options).to(dtype)
    ours = from_transformers(theirs.config.to_dict(), theirs.state_dict())
    pixels = torch.randn(2, options["num_channels"], *size, dtype=dtype) + torch.tensor([0, 2]).view(2, 1, 1, 1)
    with torch.no_grad():
        said = ours(pixels)
    assert_close(said, run(theirs, pixels), rtol=ERROR[dtype], atol=ERROR[dtype])
    assert not torch.equal(said[0], said[1])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("absolute", [True, False])
def test_folders_open_and_come_back(architecture, absolute, tmp_path):
    theirs = make(architecture, use_absolute_embeddings=absolute)
    theirs.save_pretrained(tmp_path / "theirs")
    ours, _ = regard.open_model(tmp_path / "theirs")
    assert isinstance(ours, Swin)
    assert ours.config.depths == (2, 3)
    pixels = torch.randn(2, 4, 24, 36)
    with torch.no_grad():
        assert_close(ours(pixels), run(theirs, pixels), rtol=1e-4, atol=1e-4)
    to_transformers(ours, tmp_path / "ours")
    again, info = getattr(transformers, architecture).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert_close(run(again.eval(), pixels), run(theirs, pixels), rtol=0, atol=0)
    must_be_same(*(load_file(tmp_path / name / "model.safetensors") for name in ("ours", "theirs")))
    store.write(tmp_path / "stored", ours, ours.config, {})
    must_be_same(store.read(tmp_path / "stored").state_dict(), ours.state_dict())


def test_what_ours_cannot_be_is_refused_by_name():
    theirs = make("SwinForImageClassification")
    config, state = theirs.config.to_dict(), theirs.state_dict()
    for change, said in (
        ({"depths": [2, 10**9]}, "by the config depths is"),
        ({"depths": [2, "x"]}, r"depths=\(2, 'x'\), wanted tuple"),
        ({"depths": [1] * 99}, "99 stages"),
        ({"num_heads": [2]}, "depths .* and heads .* came"),
        ({"surprise": 3}, "surprise=3, which the table of 'swin' does not know"),
    ):
        with pytest.raises(ModelError, match=said):
            from_transformers(config | change, state)
    assert convert_config("swin", export_config("swin", from_transformers(config, state).config))
