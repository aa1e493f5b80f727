"""Does attention show what a captioner looks at? On scenes never seen: where is the peak of a noun's map?

Three maps of the same model on the same scenes: its attention; attention rolled out through the convolutions, spread
over what each location sees; and gradient × attention of the word's own log-probability, above 0. Beside them, what
chance gives: the share of the picture that the boxes take.

    python benchmarks/pointing.py [RUN or MODEL] [--scenes N]
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.caption_sets import CaptionSet, make_shapes
from regard.data.special import END
from regard.layers.listen import listen
from regard.tasks.judge_captions import judge_captions
from regard.tasks.picture_captioner import PictureCaptioner, open_captioner
from regard.tasks.pointing import PointingCount, point
from regard.tasks.write_captions import pad_captions

AT_ONCE = 50  # scenes
OTHER_SEED = 1_000_003  # of scenes that no training has drawn


def receptive_share(opened: PictureCaptioner) -> Tensor:
    """How much each location sees of each through the convolutions, were all their weights alike; rows add to one."""
    config = opened.model.config
    rows, columns = config.image_height // config.stride, config.image_width // config.stride
    spread = torch.eye(rows * columns).view(-1, 1, rows, columns)
    for stride in config.strides:
        if stride == 1:  # what comes before has pixels finer than a location
            spread = F.conv2d(spread, torch.ones(1, 1, 3, 3), padding=1)
    flat = spread.flatten(1)
    return flat / flat.sum(1, keepdim=True)


def maps_of(opened: PictureCaptioner, scenes: CaptionSet) -> dict[str, Tensor]:
    """Each kind of map, (b, t, s), of the right captions."""
    config = opened.model.config
    pixels = scenes.pictures.load(config.image_height, config.image_width, config.channels, crop=True)
    texts = [scenes.captions_of(at)[0] for at in range(len(scenes))]
    fed, targets = pad_captions([[*ids, END] for ids in opened.words.encode_batch(texts)])
    pictures = opened.scaling.scale(pixels)
    with torch.no_grad():
        weights = opened.model.write(pictures, fed).weights
    assert weights is not None
    return {
        "attention": weights,
        "attention rolled out through the convolutions": weights @ receptive_share(opened),
        "gradient × attention": gradient_maps(opened, pictures, fed, targets),
    }


def gradient_maps(opened: PictureCaptioner, pictures: Tensor, fed: Tensor, targets: Tensor) -> Tensor:
    """w ∂ log p / ∂ w of the word that each row writes, above 0: a backward pass a row, of all scenes at once."""
    found = []
    for row in range(fed.shape[1]):
        with listen() as heard:
            logits = opened.model(pictures, fed[:, : row + 1])
        _, attended = heard[row]
        log_p = logits[:, row].log_softmax(-1).gather(1, targets[:, row, None]).sum()
        (into_mix,) = torch.autograd.grad(log_p, attended.mix)  # b 1 1 d
        assert attended.v is not None
        into_weights = (into_mix @ attended.v.mT)[:, 0, 0]  # b s: ∂ log p / ∂ w
        weights = attended.weights.dense()[:, 0, 0]
        centred = into_weights - (into_weights * weights).sum(-1, keepdim=True)  # weights add to one
        found.append((weights * centred).clamp_min(0).detach())
    return torch.stack(found, 1)


def main() -> None:
    named = [one for one in sys.argv[1:] if not one.startswith("-")]
    count = int(sys.argv[sys.argv.index("--scenes") + 1]) if "--scenes" in sys.argv else 500
    where = next((one for one in named if not one.isdecimal()), "shapes-captioner")
    torch.set_num_threads(1)
    opened = open_captioner(where)
    scenes = make_shapes(count, seed=OTHER_SEED, part="test")
    for beams in (5,):
        found = judge_captions(
            opened.model, scenes, opened.words, opened.scaling, crop=opened.crop, longest=opened.longest, beams=beams
        )
        print(f"{count} scenes, beams {beams}: " + "  ".join(f"{name} {one:.4g}" for name, one in found.scores.items()))
    totals: dict[str, list[PointingCount]] = {}
    config = opened.model.config
    for first in range(0, count, AT_ONCE):
        some = scenes.select(np.arange(first, min(count, first + AT_ONCE)))
        for name, maps in maps_of(opened, some).items():
            totals.setdefault(name, []).extend(
                point(maps[at], some.things_of(at), config.stride, config.image_width) for at in range(len(some))
            )
    area = config.image_height * config.image_width
    covered = [
        sum((t.box[2] - t.box[0]) * (t.box[3] - t.box[1]) for t in scenes.things_of(at) if t.word == word) / area
        for at in range(count) for word in {thing.word for thing in scenes.things_of(at)}
    ]  # fmt: skip
    print("\n| map | nouns | peak in the box |\n|---|---|---|")
    for name, every in totals.items():
        nouns = sum(one.nouns for one in every)
        print(f"| {name} | {nouns} | {sum(one.hits for one in every) / nouns:.1%} |")
    print(f"| a place at random | {len(covered)} | {float(np.mean(covered)):.1%} |")


if __name__ == "__main__":
    main()
