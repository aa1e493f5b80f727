"""Pictures with their captions: a .jsonl beside them, or scenes of shapes that are drawn here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt8

from regard.data.lines import refuse, stream_objects
from regard.data.picture_sets import PictureSet, name_listed, read_listed
from regard.data.shapes import Thing, make_scene
from regard.errors import DataError

FILE_FIELDS, TEXT_FIELDS = ("file", "image", "picture"), ("caption", "captions", "text")


@dataclass(frozen=True)
class CaptionSet:
    """Pictures, and all right captions of each; the number of the captions of a picture stands in its label.

    `things` are the objects of each picture, where they are known.
    """

    pictures: PictureSet
    captions: Sequence[tuple[str, ...]]
    things: Sequence[tuple[Thing, ...]] | None = None

    def __len__(self) -> int:
        return len(self.pictures)

    def captions_of(self, at: int) -> tuple[str, ...]:
        """The right captions of one of the pictures."""
        return self.captions[int(self.pictures.labels[at])]

    def things_of(self, at: int) -> tuple[Thing, ...]:
        """The objects of one of the pictures; none where they are not known."""
        return () if self.things is None else self.things[int(self.pictures.labels[at])]

    def select(self, rows: Int[np.ndarray, " m"]) -> "CaptionSet":
        """Some of them, in this order."""
        return replace(self, pictures=self.pictures.select(rows))

    def with_pictures(self, change: Callable[[PictureSet], PictureSet]) -> "CaptionSet":
        """The same with the pictures otherwise."""
        return replace(self, pictures=change(self.pictures))


def make_shapes(count: int, *, seed: int, part: str) -> CaptionSet:
    """So many scenes of shapes, of one part: "train", "validation" or "test".

    >>> scenes = make_shapes(3, seed=7, part="test")
    >>> scenes.captions_of(1), scenes.pictures.read(1, 3).shape
    (('a large pink ring',), (48, 48, 3))
    """
    scenes = [make_scene(seed, part, number) for number in range(count)]
    images = [scene.pixels for scene in scenes]
    pictures = PictureSet((), np.arange(count), partial(read_drawn, images), partial(name_drawn, part), False)
    return CaptionSet(pictures, [(scene.caption,) for scene in scenes], [scene.things for scene in scenes])


def read_captions(path: Path) -> CaptionSet:
    """The pictures that a .jsonl (.gz too) names, with their captions: `{"file": "a.png", "caption": "a red bus"}`.

    Files are named from the folder of the .jsonl on. `captions`, a list, holds several right ones for a picture.
    """
    files: list[Path] = []
    captions: list[tuple[str, ...]] = []
    if not path.exists():
        raise DataError(f"{path} is not there; give 'shapes', or a .jsonl with a file and a caption in each line")
    for number, one in stream_objects(path):
        if one is None:
            continue
        name = next((one[field] for field in FILE_FIELDS if field in one), None)
        said = next((one[field] for field in TEXT_FIELDS if field in one), None)
        texts = [said] if isinstance(said, str) else said
        if not isinstance(name, str) or not name:
            refuse(path, number, f"there is no {' or '.join(FILE_FIELDS)}; name the picture of each line")
        if (
            not isinstance(texts, list)
            or not texts
            or not all(isinstance(text, str) and text.strip() for text in texts)
        ):
            refuse(path, number, "there is no caption; give a text as caption, or a list of texts as captions")
        files.append(path.parent / name)
        captions.append(tuple(" ".join(text.split()) for text in texts))
    if not files:
        raise DataError(f"{path} holds no picture with a caption; give at least one")
    missing = next((file for file in files if not file.is_file()), None)
    if missing is not None:
        raise DataError(f"{path} names {missing}, which is not there; name pictures from the folder of {path.name} on")
    pictures = PictureSet((), np.arange(len(files)), partial(read_listed, files), partial(name_listed, files), False)
    return CaptionSet(pictures, captions)


# Functions of a module: what a set is read by may be sent to processes that load data.


def read_drawn(images: Sequence[UInt8[np.ndarray, "y x c"]], at: int, channels: int) -> UInt8[np.ndarray, "y x c"]:
    return images[at]


def name_drawn(part: str, at: int) -> str:
    return f"scene {at} of {part}"
