"""A few pictures that differ in what a model must see: bars that stand, bars that lie, and squares, in noise."""

import numpy as np
from PIL import Image

NAMES = ("lies", "square", "stands")  # as folders are sorted


def draw_pictures(count=120, size=12, seed=0):
    """Bytes (n, size, size), and the number of the class of each."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, count)
    images = random.integers(0, 60, (count, size, size), dtype=np.uint8)
    for image, label in zip(images, labels):
        height, width = {0: (2, 8), 1: (4, 4), 2: (8, 2)}[int(label)]
        y, x = random.integers(0, size - height + 1), random.integers(0, size - width + 1)
        image[y : y + height, x : x + width] = 230
    return images, labels


def write_archive(path, **options):
    images, labels = draw_pictures(**options)
    test = draw_pictures(count=31, seed=1)
    np.savez(path, x_train=images, y_train=labels, x_test=test[0], y_test=test[1])
    return path


def write_class_folders(path, **options):
    for at, (image, label) in enumerate(zip(*draw_pictures(**options))):
        folder = path / NAMES[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{at:03}.png")
    return path
