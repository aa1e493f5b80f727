"""How fast are models of pictures? Training beside plain loops around transformers, and what a watch of one costs.

A step of training is forward, loss, backward and update, in float32, each contestant with the same sizes and the same
batch: ours as `regard train picture` does it (fused AdamW), the others as one writes them (AdamW as it comes).

- vit: 64 pictures of 28 × 28, patches of 4, width 96, 4 heads, 6 layers, hidden 384, 10 classes
- swin: the attention of a Swin-T's first stage, shift and windows and all, forward and backward: 56 × 56 cells of width
  96, 3 heads, windows of 7, with and without a shift, 4 pictures
- glimpse: 256 pictures of 28 × 28, 6 glimpses of 8 × 8, state 256; the loop cuts out one picture after the other
- watch: a ViT-Ti/16 of 2 layers at 1024 × 1024 pixels, 4,097 tokens, forward only, watched or not

Contestants take turns, and what counts is the least time of each.

    python benchmarks/picture_speed.py                 wall time (about a minute on an idle machine)
    python benchmarks/picture_speed.py --cpu           processor time of one thread: for a machine that others use, too
    python benchmarks/picture_speed.py --only swin     one of them; --rounds 3 is quicker
"""

import argparse
import math
import time
from collections.abc import Callable
from unittest import mock

import torch
import torch.nn.functional as F
from tools.measure import Row, report
from torch import Tensor, nn

from regard import watch
from regard.layers.windows import WindowAttention
from regard.models import GlimpseConfig, VitConfig, glimpse
from regard.tasks.glimpse_loss import reward_locations

CLASSES = 10
Call = Callable[[], object]
Clock = Callable[[], float]


def take_turns(calls: dict[str, Call], rounds: int, clock: Clock) -> dict[str, float]:
    """The least time of each call; they take turns, in an order that turns too."""
    least = dict.fromkeys(calls, math.inf)
    names = list(calls)
    for turn in range(rounds + 1):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = clock()
            calls[name]()
            if turn:  # the first time is for warming up
                least[name] = min(least[name], clock() - start)
    return least


def step_of(model: nn.Module, loss: Callable[[], Tensor], *, fused: bool) -> Call:
    """A step of training."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def vit() -> dict[str, Call]:
    from transformers import ViTConfig, ViTForImageClassification

    pictures, labels = torch.randn(64, 1, 28, 28), torch.randint(0, CLASSES, (64,))
    ours = VitConfig(28, 28, patch_size=4, width=96, heads=4, layers=6, channels=1, labels=CLASSES).build()
    theirs = ViTForImageClassification(
        ViTConfig(
            image_size=28, patch_size=4, num_channels=1, hidden_size=96, num_attention_heads=4, num_hidden_layers=6,
            intermediate_size=384, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=CLASSES,
        )
    ).train()  # fmt: skip
    return {
        "ours": step_of(ours, lambda: F.cross_entropy(ours(pictures), labels), fused=True),
        "theirs": step_of(theirs, lambda: F.cross_entropy(theirs(pictures).logits, labels), fused=False),
    }


def swin(shift: int) -> dict[str, Call]:
    from transformers import SwinConfig
    from transformers.models.swin.modeling_swin import SwinLayer, window_partition, window_reverse

    side, width, heads, window = 56, 96, 3, 7
    ours = WindowAttention(width, heads, window, shift=shift)
    config = SwinConfig(window_size=window, attention_probs_dropout_prob=0.0)
    config._attn_implementation = "sdpa"  # what it takes by itself
    layer = SwinLayer(config, width, (side, side), heads, shift_size=shift).train()
    cells = torch.randn(4, side, side, width, requires_grad=True)

    def theirs() -> None:  # what `SwinLayer.forward` does around its attention
        windows = window_partition(layer.cyclic_shift(cells), window).view(-1, window**2, width)
        mask = layer.get_attn_mask(side, side, dtype=cells.dtype, device=cells.device)
        mixed = layer.attention(windows, mask)[0].view(-1, window, window, width)
        layer.cyclic_shift(window_reverse(mixed, window, side, side), reverse=True).square().mean().backward()

    return {"ours": lambda: ours(cells).square().mean().backward(), "theirs": theirs}


def crop_in_turn(pictures: Tensor, locations: Tensor, size: int, scales: int) -> Tensor:
    """The same numbers as `crop_glimpses`, one picture after the other."""
    far = size * 2 ** (scales - 1)
    made = []
    for picture, place in zip(pictures, locations):
        padded = F.pad(picture, (far, far, far, far))
        sides = torch.tensor(picture.shape[-2:])
        row, column = ((place + 1) / 2 * sides).round().long().tolist()
        seen = []
        for scale in range(scales):
            side = size * 2**scale
            top, left = (at + far - far // 2 + (far - side) // 2 for at in (row, column))
            seen.append(F.avg_pool2d(padded[:, top : top + side, left : left + side], 2**scale))
        made.append(torch.stack(seen))
    return torch.stack(made)


def glimpses() -> dict[str, Call]:
    pictures, labels = torch.randn(256, 1, 28, 28), torch.randint(0, CLASSES, (256,))
    model = GlimpseConfig(28, 28, channels=1, labels=CLASSES).build()
    places = torch.rand(256, 2) * 2 - 1
    torch.testing.assert_close(crop_in_turn(pictures, places, 6, 2), glimpse.crop_glimpses(pictures, places, 6, 2))

    def loss() -> Tensor:
        path = model(pictures, paths=True)
        return F.cross_entropy(path.logits, labels) + reward_locations(path, labels, 0.01) / len(labels)

    plain = step_of(model, loss, fused=False)

    def theirs() -> None:
        with mock.patch.object(glimpse, "crop_glimpses", crop_in_turn):
            plain()

    return {"ours": step_of(model, loss, fused=True), "theirs": theirs}


def watching() -> dict[str, Call]:
    model = VitConfig(1024, 1024, patch_size=16, width=192, heads=3, layers=2, labels=CLASSES).build().eval()
    picture = torch.randn(1, 3, 1024, 1024)

    def plain() -> None:
        with torch.no_grad():
            model(picture)

    def watched() -> None:
        with torch.no_grad(), watch(model) as trace:
            model(picture)
        assert trace.layers[-1].weights.shape == (1, 3, 4097, 4097)

    return {"plain": plain, "watched": watched}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", choices=("vit", "swin", "glimpse", "watch"))
    parser.add_argument("--cpu", action="store_true")
    given = parser.parse_args()
    torch.manual_seed(0)
    if given.cpu:
        torch.set_num_threads(1)
    clock = time.process_time if given.cpu else time.perf_counter
    rows: list[Row] = []

    def compare(name: str, calls: dict[str, Call], limit: float | None) -> dict[str, float]:
        taken = take_turns(calls, given.rounds, clock)
        slow, fast = ("watched", "plain") if "plain" in taken else ("theirs", "ours")
        rows.append(Row(name, taken[slow] / taken[fast], limit, least=slow == "theirs"))
        rows.extend(Row(f"  milliseconds, {one}", 1000 * spent, unit="ms") for one, spent in taken.items())
        return taken

    if given.only in (None, "vit"):
        compare("ViT, a step of training: transformers / ours", vit(), 1.2)
    if given.only in (None, "swin"):
        whole = {"ours": 0.0, "theirs": 0.0}
        for shift in (0, 3):
            for name, spent in compare(f"Swin, windows shifted by {shift}", swin(shift), None).items():
                whole[name] += spent
        rows.append(Row("Swin, both: transformers / ours", whole["theirs"] / whole["ours"], 1.5, least=True))
    if given.only in (None, "glimpse"):
        compare("glimpses, a step of training: one crop at a time / ours", glimpses(), 2.0)
    if given.only in (None, "watch"):
        compare("watched / unwatched, 4,097 tokens", watching(), 1.05)
    return report("picture_speed" + (f"_{given.only}" if given.only else ""), rows)


if __name__ == "__main__":
    raise SystemExit(main())
