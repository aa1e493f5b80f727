import math
from dataclasses import FrozenInstanceError

import pytest
import torch
from torch.testing import assert_close
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from regard.positions import LinearScaling, Llama3Scaling, NTKScaling, Rotary, Scaling, YarnScaling

WIDTHS = (8, 64, 96, 128)
BASES = (10000.0, 500000.0)


def theirs(kind, width, base, length=None, *, trained=2048, **parameters):
    """The frequencies and the attention factor of transformers."""
    config = LlamaConfig(
        hidden_size=2 * width,
        num_attention_heads=2,
        head_dim=width,
        max_position_embeddings=trained,
        rope_parameters={"rope_type": kind, "rope_theta": base, **parameters},
    )
    return ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), seq_len=length)


def compare(scaling, width, base, wanted):
    found = torch.tensor(Rotary(width, base=base, scaling=scaling).frequencies, dtype=torch.float64)
    frequencies, magnitude = wanted
    assert_close(found, frequencies.double(), rtol=2e-6, atol=0)  # theirs are float32
    assert scaling.magnitude == pytest.approx(magnitude, rel=1e-12)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("factor", [1.0, 2.5, 8.0])
class TestAgainstTransformers:
    def test_linear(self, width, base, factor):
        compare(LinearScaling(factor), width, base, theirs("linear", width, base, factor=factor))

    @pytest.mark.parametrize("length", [100, 2048, 3000, 20_000])
    def test_dynamic_ntk_at_a_length(self, width, base, factor, length):
        scaling = NTKScaling.at(length, factor=factor, original=2048)
        compare(scaling, width, base, theirs("dynamic", width, base, length, factor=factor))

    @pytest.mark.parametrize("original", [40, 2048, 32768])
    @pytest.mark.parametrize("betas", [(32, 1), (8, 2), (1.01, 1)])
    def test_yarn(self, width, base, factor, original, betas):
        fast, slow = betas
        wanted = theirs(
            "yarn",
            width,
            base,
            factor=factor,
            original_max_position_embeddings=original,
            beta_fast=fast,
            beta_slow=slow,
        )
        compare(YarnScaling(factor, original, fast, slow), width, base, wanted)

    def test_yarn_with_a_given_attention_factor(self, width, base, factor):
        wanted = theirs(
            "yarn",
            width,
            base,
            factor=factor,
            original_max_position_embeddings=2048,
            attention_factor=0.7,
        )
        compare(YarnScaling(factor, 2048, attention_factor=0.7), width, base, wanted)

    @pytest.mark.parametrize("original", [40, 8192])
    @pytest.mark.parametrize("ends", [(1.0, 4.0), (2.0, 3.0)])
    def test_llama3(self, width, base, factor, original, ends):
        low, high = ends
        wanted = theirs(
            "llama3",
            width,
            base,
            factor=factor,
            low_freq_factor=low,
            high_freq_factor=high,
            original_max_position_embeddings=original,
        )
        compare(Llama3Scaling(factor, low, high, original), width, base, wanted)


def test_partial_turning_scales_over_the_channels_that_turn():
    wanted = theirs("yarn", 64, 10000.0, factor=4.0, original_max_position_embeddings=2048, partial_rotary_factor=0.5)
    scaled = Rotary(64, rotated=32, scaling=YarnScaling(4, 2048))
    assert_close(torch.tensor(scaled.frequencies), wanted[0], rtol=2e-6, atol=0)


def test_yarn_is_the_published_code_in_loops():
    width, base, factor, original, fast, slow = 20, 10000.0, 4.0, 2048, 32.0, 1.0
    low = max(math.floor(width * math.log(original / (fast * 2 * math.pi)) / (2 * math.log(base))), 0)
    high = min(math.ceil(width * math.log(original / (slow * 2 * math.pi)) / (2 * math.log(base))), width - 1)
    wanted = []
    for i in range(width // 2):
        plain = base ** (-2 * i / width)
        if i <= low:
            wanted.append(plain)
        elif i >= high:
            wanted.append(plain / factor)
        else:
            share = (i - low) / (high - low)
            wanted.append(share * plain / factor + (1 - share) * plain)
    found = Rotary(width, base=base, scaling=YarnScaling(factor, original)).frequencies
    assert found == pytest.approx(wanted, rel=1e-14)
    assert 0 < low < high < width // 2  # all three kinds were seen


def test_llama3_is_the_published_code_in_loops():
    wanted, kinds = [], set()
    for i in range(64):
        plain = 500000.0 ** (-2 * i / 128)
        wavelength = 2 * math.pi / plain
        if wavelength < 8192 / 4:
            wanted.append(plain)
            kinds.add("kept")
        elif wavelength > 8192 / 1:
            wanted.append(plain / 8)
            kinds.add("slowed")
        else:
            smooth = (8192 / wavelength - 1) / (4 - 1)
            wanted.append((1 - smooth) * plain / 8 + smooth * plain)
            kinds.add("between")
    scaling = Llama3Scaling(factor=8, low_frequency=1, high_frequency=4, original=8192)
    assert Rotary(128, base=500000.0, scaling=scaling).frequencies == pytest.approx(wanted, rel=1e-14)
    assert kinds == {"kept", "between", "slowed"}


def test_ntk_is_the_formula_of_the_larger_base_in_loops():
    base = 10000.0 * 8 ** (64 / 62)
    wanted = [base ** (-2 * i / 64) for i in range(32)]
    found = Rotary(64, scaling=NTKScaling(8)).frequencies
    assert found == pytest.approx(wanted, rel=1e-13)
    assert found[0] == 1.0
    assert found[-1] == pytest.approx(10000.0 ** (-62 / 64) / 8)  # the slowest pair is interpolated fully


def test_a_single_pair_is_left_alone_by_ntk():
    assert Rotary(2, scaling=NTKScaling(8)).frequencies == (1.0,)


@pytest.mark.parametrize(
    "scaling",
    [LinearScaling(1), NTKScaling(1), YarnScaling(1, 2048), Llama3Scaling(1, 1, 4, 8192)],
    ids=lambda each: type(each).__name__,
)
def test_a_factor_of_one_changes_nothing(scaling):
    assert isinstance(scaling, Scaling)
    assert Rotary(64, scaling=scaling).frequencies == pytest.approx(Rotary(64).frequencies, rel=1e-15)
    assert scaling.magnitude == 1.0


def test_settings_that_make_no_sense_are_refused_with_advice():
    for make in (LinearScaling, NTKScaling, lambda f: YarnScaling(f, 9), lambda f: Llama3Scaling(f, 1, 4, 9)):
        with pytest.raises(ValueError, match=r"factor 0\.5 came; wanted how many times longer"):
            make(0.5)
    with pytest.raises(ValueError, match="beta_slow 32 and beta_fast 1 came; wanted 0 < beta_slow < beta_fast"):
        YarnScaling(2, 2048, beta_fast=1, beta_slow=32)
    with pytest.raises(ValueError, match="low_frequency 4 and high_frequency 4 came"):
        Llama3Scaling(2, 4, 4, 2048)


def test_scalings_cannot_be_changed_and_compare_by_value():
    assert YarnScaling(2, 2048) == YarnScaling(factor=2, original=2048)
    with pytest.raises(FrozenInstanceError):
        LinearScaling(2).factor = 3
