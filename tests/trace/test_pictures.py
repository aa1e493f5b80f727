"""Class tokens and registers are asked of the model, and rows that are no patches are not called patches."""

import importlib.util
import json
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import regard
from tests.trace.test_foreign import TIMM as STUB

B = 3


def rows(model: nn.Module, *given: Any, **named: Any) -> list[tuple[str, ...] | None]:
    with torch.no_grad(), regard.watch(model.eval()) as trace:
        model(*given, **named)
    assert trace.layers
    return [None if layer.queries is None else layer.queries[1].shown for layer in trace.layers]


def cells(height: int, width: int) -> tuple[str, ...]:
    return tuple(f"{row},{column}" for row in range(height) for column in range(width))


class Small(nn.Module):
    """Patches of 4, and as many learned tokens before them as there are parameters for."""

    def __init__(self, patch: tuple[int, int] = (4, 4), **tokens: int) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(3, 24, patch, patch)
        self.before = list(tokens)
        for name, count in tokens.items():
            setattr(self, name, nn.Parameter(torch.randn(1, count, 24)))
        self.attention = nn.MultiheadAttention(24, 3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patch_embed(x).flatten(2).mT
        before = [getattr(self, name).expand(len(x), -1, -1) for name in self.before]
        y = torch.cat([*before, patches], 1)
        out: Tensor = self.attention(y, y, y)[0]
        return out


def test_tokens_before_the_patches_are_parameters_of_the_model() -> None:
    picture, grid = torch.randn(B, 3, 12, 20), cells(3, 5)
    assert rows(Small(), picture) == [grid]
    assert rows(Small(cls_token=1), picture) == [("[CLS]", *grid)]
    assert rows(Small(cls_token=1, reg_token=4), picture) == [
        ("[CLS]", "[REG 0]", "[REG 1]", "[REG 2]", "[REG 3]", *grid)
    ]
    assert rows(Small(cls_token=1, dist_token=1), picture) == [("[CLS]", "[DIST]", *grid)]


def test_a_number_alone_makes_no_class_token() -> None:
    """Five strips of 12 × 4 pixels: five is one more than the four squares of 6 that the picture has no need of."""
    assert rows(Small(patch=(12, 4)), torch.randn(B, 3, 12, 20)) == [None]
    assert rows(Small(patch=(4, 2)), torch.randn(B, 3, 12, 10)) == [None]  # 15 rows that no square patches make
    assert rows(Small(patch=(2, 4), cls_token=1), torch.randn(B, 3, 4, 20)) == [None]  # 1 + 10; squares of 2 make 20


class Summed(Small):
    """Sums up its rows by a token that is no parameter of the usual name."""

    def __init__(self) -> None:
        super().__init__(whatever=1)


def test_a_token_that_the_model_does_not_explain_leaves_rows_without_names() -> None:
    assert rows(Summed(), torch.randn(B, 3, 12, 20)) == [None]


class CrossCovariance(nn.Module):
    """Attention of channels over positions, as in XCiT."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.num_heads = nn.Linear(48, 144), 3

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, 3, 16)).permute(2, 0, 3, 4, 1)  # b h d n
        q, k = nn.functional.normalize(q, dim=-1), nn.functional.normalize(k, dim=-1)
        weights = (q @ k.mT).softmax(-1)
        out: Tensor = (weights @ v).permute(0, 3, 1, 2).flatten(2)
        return out


class Covariant(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch_embed, self.attn = nn.Conv2d(3, 48, 4, 4), CrossCovariance()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.attn(self.patch_embed(x).flatten(2).mT)
        return out


def test_channels_are_no_patches() -> None:
    """16 channels of each head, beside 36 patches; but 16 squares of 6 × 6 pixels would fill the picture as well."""
    assert rows(Covariant(), torch.randn(B, 3, 12, 48)) == [None]
    assert rows(Covariant(), torch.randn(B, 3, 16, 64)) == [None]


class Series(nn.Module):
    """A time series or a spectrum with four axes, of which one is a single channel."""

    def __init__(self) -> None:
        super().__init__()
        self.cut, self.attention = nn.Conv2d(1, 24, (4, 4), (4, 4)), nn.MultiheadAttention(24, 3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.cut(x).flatten(2).mT
        out: Tensor = self.attention(y, y, y)[0]
        return out


def test_a_spectrum_is_no_picture() -> None:
    assert rows(Series(), torch.randn(B, 1, 16, 24)) == [None]


TIMM_NAMES = (
    STUB.split("import timm")[0]
    + """
import timm, torch, regard
found = {}
for name in sys.argv[1:]:
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, img_size=64, depth=2).eval()
    with torch.no_grad(), regard.watch(model) as trace:
        model(torch.randn(3, 3, 64, 64))
    found[name] = [None if layer.queries is None else layer.queries[1].shown for layer in trace.layers]
print(json.dumps(found))
"""
)


def test_pictures_of_timm() -> None:
    if importlib.util.find_spec("timm") is None:
        pytest.skip("needs timm: pip install --no-deps timm")
    grid = list(cells(4, 4))
    registers = [f"[REG {n}]" for n in range(4)]
    right: dict[str, list[Any]] = {
        "vit_tiny_patch16_224": [["[CLS]", *grid]] * 2,
        "deit_tiny_distilled_patch16_224": [["[CLS]", "[DIST]", *grid]] * 2,
        "vit_small_patch16_dinov3": [["[CLS]", *registers, *grid]] * 2,
        "vit_base_patch16_gap_224": [grid] * 2,
        "vit_medium_patch16_reg4_gap_256": [[*registers, *grid]] * 2,
        "cait_xxs24_224": [grid, grid, None, None],  # its class token asks alone, at the end
        "xcit_nano_12_p16_224": [None] * 4,  # channels, and again a class token
    }
    done = subprocess.run(
        [sys.executable, "-c", TIMM_NAMES, *right], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == right


class Gathered(nn.Module):
    """Fifteen learned queries gather what sixty patches show; fifteen squares could be patches, too."""

    def __init__(self) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(3, 24, 2, 2)
        self.latents = nn.Parameter(torch.randn(1, 15, 24))
        self.own, self.gather = (nn.MultiheadAttention(24, 3, batch_first=True) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patch_embed(x).flatten(2).mT
        patches = self.own(patches, patches, patches)[0]
        out: Tensor = self.gather(self.latents.expand(len(x), -1, -1), patches, patches)[0]
        return out


def test_learned_queries_are_no_patches() -> None:
    model = Gathered().eval()
    with torch.no_grad(), regard.watch(model) as trace:
        model(torch.randn(B, 3, 12, 20))
    own, gather = trace.layers
    assert gather.kind == "cross"
    assert gather.queries is None
    assert own.queries is not None
    assert gather.keys is not None
    assert own.queries[1].shown == gather.keys[1].shown == cells(6, 10)


class Masked(Small):
    """A masked autoencoder: four of the patches are kept, by chance."""

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patch_embed(x).flatten(2).mT
        y = patches[:, torch.randperm(patches.shape[1])[:4]]
        out: Tensor = self.attention(y, y, y)[0]
        return out


def test_patches_that_were_selected_are_no_smaller_picture() -> None:
    """Four of the nine patches of a square are not its four quarters."""
    assert rows(Small((4, 4)), torch.randn(B, 3, 12, 12)) == [cells(3, 3)]
    assert rows(Small((6, 6)), torch.randn(B, 3, 12, 12)) == [cells(2, 2)]
    assert rows(Masked((4, 4)), torch.randn(B, 3, 12, 12)) == [None]
