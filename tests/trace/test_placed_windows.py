"""Windows stand on the whole text or picture that they were cut from: one map for each head, against explicit loops."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

import regard
from regard.errors import TraceError
from tests.trace.watched import MODES, watched

B, H, D = 2, 3, 4  # batch, heads, channels of a head
SIDE = 6  # patches along each side of the picture


def heads(x: Tensor) -> Tensor:
    return x.unflatten(-1, (H, D)).transpose(-2, -3)


class Windows(nn.Module):
    """Attention within windows that somebody else has cut, (b · w, n, m)."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads, self.qkv = H, nn.Linear(H * D, 3 * H * D)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads(part) for part in self.qkv(x).chunk(3, -1))
        return ((q @ k.mT).softmax(-1) @ v).transpose(1, 2).flatten(2)


class Block(nn.Module):
    """Blocks, or a lattice, of a picture with channels last, which may be rolled and padded before."""

    def __init__(self, window: int, shift: int = 0, lattice: bool = False) -> None:
        super().__init__()
        self.window, self.shift, self.lattice = window, shift, lattice
        self.norm, self.attention = nn.LayerNorm(H * D), Windows()

    def cut(self, x: Tensor) -> Tensor:
        w = self.window
        x = F.pad(x, (0, 0, 0, -x.shape[2] % w, 0, -x.shape[1] % w)).roll((-self.shift, -self.shift), (1, 2))
        b, rows, columns, m = x.shape
        if self.lattice:
            x = x.reshape(b, w, rows // w, w, columns // w, m).permute(0, 2, 4, 1, 3, 5)
        else:
            x = x.reshape(b, rows // w, w, columns // w, w, m).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(-1, w * w, m)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attention(self.cut(self.norm(x))).mean()


class Picture(nn.Module):
    """Patches of a picture, then one block."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.patch, self.block = nn.Conv2d(3, H * D, 4, 4), block

    def forward(self, pixel_values: Tensor) -> Tensor:
        return self.block(self.patch(pixel_values).permute(0, 2, 3, 1))


def sharp(model: nn.Module) -> nn.Module:
    torch.manual_seed(1)
    for p in model.parameters():
        nn.init.normal_(p, std=0.7)
    return model.eval()


def by_hand(block: Block, x: Tensor) -> Tensor:
    """The map over all positions, and one more column for padding: each window put where its positions are."""
    numbers = (
        block.cut(torch.arange(1, SIDE * SIDE + 1).view(1, SIDE, SIDE, 1).double())[..., 0].long() - 1
    )  # −1: padding
    q, k, _ = (heads(part) for part in block.attention.qkv(block.cut(block.norm(x))).chunk(3, -1))
    maps = (q @ k.mT).softmax(-1).unflatten(0, (B, -1))
    whole = torch.zeros(B, H, SIDE * SIDE, SIDE * SIDE + 1)
    for w, places in enumerate(numbers):
        for i, row in enumerate(places.tolist()):
            for j, column in enumerate(places.tolist()):
                if row >= 0:
                    whole[:, :, row, column] += maps[:, w, :, i, j]
    return whole


@MODES
@pytest.mark.parametrize("block", [(3,), (3, 1), (2, 0, True), (4,), (4, 2)], ids=str)
def test_windows_of_a_picture_are_one_map_of_it(block: tuple[int, ...], mode: object, tmp_path: Path) -> None:
    model = sharp(Picture(Block(*block)))
    pixels = torch.randn(B, 3, 4 * SIDE, 4 * SIDE)
    with mode():  # type: ignore[operator]
        trace = watched(model, pixels)
        wanted = by_hand(model.block, model.patch(pixels).permute(0, 2, 3, 1))
    padded = SIDE % block[0] > 0
    whole = trace[0].whole()
    assert_close(whole.weights.dense(), wanted if padded else wanted[..., :-1])
    assert_close(whole.head(2, batch=1)[5], (wanted if padded else wanted[..., :-1])[1, 2, 5])
    assert whole.queries is not None
    assert whole.keys is not None
    assert whole.queries[1].grid == (SIDE, SIDE)
    assert whole.keys[1].shown[-1] == ("[PAD]" if padded else f"{SIDE - 1},{SIDE - 1}")
    assert bool((whole.weights.allowed[:] == (whole.weights.dense() > 0)).all())  # elsewhere nothing is looked at
    assert trace.verify(), trace.verify()
    trace.save(tmp_path / "windows.trace")
    again = regard.load(tmp_path / "windows.trace")[0].whole()
    assert torch.equal(again.weights.dense(), whole.weights.dense())
    assert again.keys == whole.keys


class Local(nn.Module):
    """Blocks of a text that the module itself cuts; keys may reach into the blocks beside."""

    def __init__(self, window: int, halo: int, kernel: bool) -> None:
        super().__init__()
        self.num_heads, self.window, self.halo, self.kernel = H, window, halo, kernel
        self.qkv = nn.Linear(H * D, 3 * H * D, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        q, k, v = (heads(part) for part in self.qkv(hidden).chunk(3, -1))
        q = q.unflatten(2, (-1, self.window)).transpose(1, 2).flatten(0, 1)
        size = self.window + 2 * self.halo
        k, v = (
            F.pad(x, (0, 0, self.halo, self.halo)).unfold(2, size, self.window).transpose(1, 2).flatten(0, 1).mT
            for x in (k, v)
        )
        mix = F.scaled_dot_product_attention(q, k, v) if self.kernel else (q @ k.mT / D**0.5).softmax(-1) @ v
        return mix.unflatten(0, (len(hidden), -1)).transpose(1, 2).flatten(2, 3).transpose(1, 2).flatten(2)


class Text(nn.Module):
    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.embedding, self.attention = nn.Embedding(30, H * D), attention

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.attention(self.embedding(input_ids))


@pytest.mark.parametrize("kernel", [True, False], ids=["kernel", "by hand"])
@pytest.mark.parametrize("halo", [0, 2])
def test_blocks_of_a_text_are_one_map_of_it_with_its_tokens(halo: int, kernel: bool) -> None:
    model, n = sharp(Text(Local(5, halo, kernel))), 15
    ids = torch.stack([torch.randperm(30)[:n] for _ in range(B)])
    with torch.no_grad():
        trace = watched(model, ids)
        q, k, _ = (heads(part) for part in model.attention.qkv(model.embedding(ids)).chunk(3, -1))
    scores, wanted = q @ k.mT / D**0.5, torch.zeros(B, H, n, n + 1)
    for i in range(n):
        first, stop = i // 5 * 5 - halo, i // 5 * 5 + 5 + halo
        beyond = (stop - first) - (min(stop, n) - max(first, 0))
        seen = torch.cat([scores[:, :, i, max(first, 0) : stop], torch.zeros(B, H, beyond)], -1).softmax(-1)
        wanted[:, :, i, max(first, 0) : min(stop, n)] = seen[..., : min(stop, n) - max(first, 0)]
        wanted[:, :, i, n] = seen[..., seen.shape[-1] - beyond :].sum(-1)
    whole = trace[0].whole()
    assert_close(whole.weights.dense(), wanted if halo else wanted[..., :-1])
    assert whole.queries is not None
    assert [list(one.ids or ()) for one in whole.queries] == ids.tolist()
    assert bool(trace.verify())


def test_positions_that_look_alike_are_not_placed() -> None:
    model = sharp(Picture(Block(3)))
    with torch.no_grad():
        trace = watched(model, torch.ones(B, 3, 4 * SIDE, 4 * SIDE))
    with pytest.raises(TraceError, match="was not found"):
        trace[0].whole()
    with pytest.raises(TraceError, match="no windows"):
        regard.from_weights(torch.eye(3)[None, None])[0].whole()


class Unrolled(nn.Module):
    """As in Hiera: positions are put into an order of their own before windows are cut, and stay in it."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.first, self.second = nn.Conv2d(3, H * D, 4, 4), Windows(), Windows()

    def cut(self, x: Tensor) -> Tensor:
        return x.unflatten(1, (9, -1)).transpose(1, 2).flatten(0, 1)

    def forward(self, pixel_values: Tensor) -> Tensor:
        x = self.patch(pixel_values).unflatten(2, (2, 3)).unflatten(4, (2, 3))  # b m 2 3 2 3
        x = x.permute(0, 3, 5, 2, 4, 1).flatten(1, 4)  # the same place of each block stands together
        return self.inner(x)

    def inner(self, x: Tensor) -> Tensor:
        return self.stage(x)


class Stage(nn.Module):
    def __init__(self, cut: object) -> None:
        super().__init__()
        self.cut, self.first, self.second = cut, Windows(), Windows()

    def forward(self, x: Tensor) -> Tensor:
        return self.second(x) + self.first(self.cut(x)).mean()  # type: ignore[operator]


def test_positions_in_another_order_than_row_by_row_are_no_patches() -> None:
    model = Unrolled()
    model.stage = Stage(model.cut)
    model = sharp(model)
    with torch.no_grad():
        trace = watched(model, torch.randn(B, 3, 4 * SIDE, 4 * SIDE))
    whole = trace["stage.first"].whole()
    assert whole.weights.shape == (B, H, SIDE * SIDE, SIDE * SIDE)
    assert whole.queries is None
    assert trace["stage.second"].queries is None


class Bare(nn.Module):
    """Windows and heads on axes of their own, (b, w, h, n, d), and nothing that says how many heads there are."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(H * D, 3 * B * D)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(1, (-1, 5)).unflatten(-1, (3, B, D)).permute(3, 0, 1, 4, 2, 5)
        return F.scaled_dot_product_attention(q, k, v).transpose(2, 3).flatten(3).flatten(1, 2)


def test_heads_are_not_taken_for_windows_at_the_same_place() -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        (layer,) = watched(Bare(), torch.randn(B, 15, H * D)).layers
    assert layer.weights.shape == (B * 3, B, 5, 5)
    assert layer.whole().weights.shape == (B, B, 15, 15)
