"""Which maps of a picture are of a part of it, such as a window: told by their sizes, never by a name."""

from collections.abc import Sequence

from regard.trace.record.findings import LayerState
from regard.trace.record.layer import Layer


def tell_windows(layers: Sequence[Layer], pixels: tuple[int, ...] | None) -> None:
    """Note it at every layer of these whose maps are of parts of the picture of this shape, (b, c, height, width)."""
    if pixels is None:
        return
    sizes = [(layer.weights.shape[0], layer.weights.shape[-2]) for layer in layers]
    for layer, part in zip(layers, in_windows(sizes, pixels[0])):
        if part:
            layer.mark(LayerState.PARTS_OF_PICTURE)


def in_windows(sizes: Sequence[tuple[int, int]], images: int) -> list[bool]:
    """For each layer that reads a picture, (batch, queries): whether its maps are of parts of the picture.

    They are where the batch holds several entries for each picture. Where windows stand on another axis, as that of
    the heads, one layer alone does not show it; but then its queries are more than all parts of another layer have
    together, and nothing says that its map is of the whole picture.

    >>> in_windows([(8, 49), (8, 49), (2, 49)], images=2)  # Swin: four windows, then one that is the whole
    [True, True, False]
    >>> in_windows([(2, 50), (2, 50)], images=2)
    [False, False]
    """
    parts = [batch > images and batch % images == 0 for batch, _ in sizes]
    least = min((batch // images * queries for (batch, queries), part in zip(sizes, parts) if part), default=None)
    return [part or (least is not None and queries > least) for (_, queries), part in zip(sizes, parts)]
