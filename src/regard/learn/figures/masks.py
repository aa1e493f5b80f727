"""Masks side by side: which cells of a map exist at all."""

import numpy as np
import torch

from regard.attention.mask import Mask, bigbird, causal, longformer, padding, prefix, window
from regard.learn.figures.panels import HeatPanel, LessonFigure, Wording

NAMES = {
    "causal": Wording("causal: itself and what came before", "因果：自己和之前的位置"),
    "padding": Wording("padding: only the first 5 are real", "填充：只有前 5 个是真实词元"),
    "window": Wording("window: 2 before, itself", "窗口：前 2 个和自己"),
    "prefix": Wording("prefix: the first 3 see each other, the rest is causal", "前缀：前 3 个互相可见，其余为因果"),
    "longformer": Wording("Longformer: 1 to each side, token 0 global", "Longformer：左右各 1 个，0 号为全局"),
    "bigbird": Wording("BigBird: neighbours, ends, some at random", "BigBird：邻居、首尾、若干随机"),
}


def show_masks(names: list[str] | None = None, size: int = 8) -> LessonFigure:
    """Each mask as a grid: dark may be looked at, a dot may not.

    >>> [int(np.nansum(panel.values)) for panel in show_masks(["causal", "window"], 4).panels]
    [10, 9]
    """
    masks: dict[str, Mask] = {
        "causal": causal(),
        "padding": padding(torch.tensor([5])),
        "window": window(before=2, after=0),
        "prefix": prefix(3),
        "longformer": longformer(1, global_at=[0]),
        "bigbird": bigbird(1, random=1),
    }
    labels = [str(place) for place in range(size)]
    panels = []
    for name in names or ["causal", "padding", "window"]:
        seen = masks[name].dense(size, batch=1).reshape(size, size).numpy()
        panels.append(HeatPanel(NAMES[name], np.where(seen, 1.0, np.nan), labels, labels))
    return LessonFigure(tuple(panels))
